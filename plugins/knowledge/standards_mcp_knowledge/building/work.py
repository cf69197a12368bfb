"""What a build needs of another process."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import numpy as np
import numpy.typing as npt

from .document import Document

Vectors = npt.NDArray[np.float32]


class Work(Protocol):
    """Heavy work, done in a worker process. All but `encode` are the functions of `worker`.

    A failure that is not named here ends the build and reaches its caller as it is.
    """

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Return a row of length 1 for each text; there is one text at least."""
        ...

    def read_pdf(self, path: Path) -> Document:
        """Read a PDF file.

        Raises:
            DocumentError: It cannot be read, also because the worker ended or took too long.
        """
        ...

    def read_docx(self, path: Path) -> Document:
        """Read a Word document. Raises as `read_pdf` does."""
        ...

    def read_vectors(self, path: Path) -> Vectors:
        """Return the vectors of an index that `write_index` wrote.

        Raises:
            OSError: It cannot be read, also because the worker ended or took too long.
        """
        ...

    def write_index(self, vectors: Vectors, path: Path) -> None:
        """Write a new file with an exact index by inner product.

        Raises:
            OSError: It cannot be written.
        """
        ...
