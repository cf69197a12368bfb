"""Makes products of files, and collections of products."""

from .build import Options, build
from .columns import Columns, read_mapping, shown
from .files import SUFFIXES
from .products import Skipped
from .work import Report

__all__ = ["SUFFIXES", "Columns", "Options", "Report", "Skipped", "build", "read_mapping", "shown"]
