"""Make a dataset of a folder of documents: read, cut into passages, encode, write as a whole.

`build_dataset` imports no heavy library. It calls a `Work` for them, whose implementation runs the
functions of `worker` in another process.
"""

from .build import build_dataset
from .options import BuildError, BuildOptions, BuildReport, Vectors

__all__ = ["BuildError", "BuildOptions", "BuildReport", "Vectors", "build_dataset"]
