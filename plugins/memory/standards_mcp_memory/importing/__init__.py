"""Files of memories: read, and written by an export."""

from .files import Source, Split, read_source
from .jsonl import line_of

__all__ = ["Source", "Split", "line_of", "read_source"]
