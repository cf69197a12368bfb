"""Where the products are: a folder of Chroma's or a Chroma server, and which build is active."""

from .active import Active, ActiveFile
from .client import Place, place_of
from .errors import NotBuiltError, translated
from .orphans import remove_orphans
from .store import Store

__all__ = [
    "Active",
    "ActiveFile",
    "NotBuiltError",
    "Place",
    "Store",
    "place_of",
    "remove_orphans",
    "translated",
]
