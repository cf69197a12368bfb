"""Make a dataset of a folder of documents: read, cut into passages, encode and write them.

FAISS, the text encoders and the readers of documents run in other processes.
"""

from .build import build_dataset
from .options import BuildError, BuildOptions, BuildReport

__all__ = ["BuildError", "BuildOptions", "BuildReport", "build_dataset"]
