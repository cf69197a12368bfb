"""Read lessons and items from files: documents, tables, cartridges and assessments."""

from .finding import find_files
from .items import InputFile, Item, SkippedFile
from .reading import ItemReader

__all__ = ["InputFile", "Item", "ItemReader", "SkippedFile", "find_files"]
