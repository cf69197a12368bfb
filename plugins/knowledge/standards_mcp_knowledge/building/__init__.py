"""Make a dataset of a folder of documents: read, cut into passages, encode and write them.

`build_dataset` imports no heavy library. Only the functions of `worker` do, and a `BuildWorkers`
runs them in another process.
"""

from .build import build_dataset
from .options import BuildError, BuildOptions, BuildReport, Vectors

__all__ = ["BuildError", "BuildOptions", "BuildReport", "Vectors", "build_dataset"]
