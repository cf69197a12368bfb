"""Makes a dataset of a folder of documents: read, cut into passages, encoded, written as a whole.

`build_dataset` stays free of heavy libraries. What needs one is asked of a `Work`, whose
implementation runs the functions of `worker` in another process.
"""

from .build import build_dataset
from .document import Document, DocumentError
from .options import BuildError, BuildOptions, BuildReport, Skipped
from .work import Vectors, Work

__all__ = [
    "BuildError",
    "BuildOptions",
    "BuildReport",
    "Document",
    "DocumentError",
    "Skipped",
    "Vectors",
    "Work",
    "build_dataset",
]
