"""Makes the products of a file those that searches find."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final

import filelock

from standards_mcp import ApiError, InvalidInputError
from standards_mcp_products.service import Catalogue
from standards_mcp_products.store import translated

from .columns import Columns, Names, columns_of
from .files import Row, delimiter, read_heading, read_rows
from .products import Products, read_products
from .work import Encodes, Progress, Report, Work

if TYPE_CHECKING:
    from chromadb.api.client import Client

_LOCK: Final = "build.lock"
_SECONDS: Final = 120.0


@dataclass(frozen=True, slots=True)
class Options:
    """How to build.

    Attributes:
        limit: How many rows are read; None: all.
        dry_run: Only tell what would be done.
        patience: How many seconds to wait for another build to end.
    """

    limit: int | None = None
    dry_run: bool = False
    patience: float = 0


def build(
    catalogue: Catalogue,
    file: Path,
    mapping: Names,
    encoder: Encodes,
    options: Options = Options(),
    progress: Progress = lambda _done, _total: None,
) -> Report:
    """Make the products of a file those that searches find.

    Args:
        mapping: As `read_mapping` returns it.
        progress: Is told how many products of how many are stored.

    Raises:
        InvalidInputError: The file cannot be read, or has no product.
        ApiError: The store fails, or another build runs.
    """
    columns = columns_of(read_heading(file), mapping)
    rows = partial(_rows, file, columns, options.limit)
    products = read_products(rows, columns, delimiter(file))
    if not products.found:
        raise InvalidInputError(f"{file} has no products. {_reasons(products)}")
    with (
        _alone(catalogue, options.patience),
        translated(catalogue.place, catalogue.name),
        _client(catalogue, options) as client,
    ):
        work = Work(catalogue, client, encoder, products)
        return work.report() if options.dry_run else work.run(file.name, progress)


def _rows(file: Path, columns: Columns, limit: int | None) -> Iterator[Row]:
    return islice(read_rows(file, columns), limit)


@contextmanager
def _client(catalogue: Catalogue, options: Options) -> Generator[Client | None]:
    """Open the store; a dry run makes none."""
    if options.dry_run and catalogue.place.is_empty():
        yield None
        return
    # A server takes longer to store a batch than to answer a question.
    place = replace(catalogue.place, timeout=max(_SECONDS, catalogue.place.timeout))
    client = place.open()
    try:
        yield client
    finally:
        place.close(client)


@contextmanager
def _alone(catalogue: Catalogue, patience: float) -> Generator[None]:
    """Let one process at a time build."""
    folder = catalogue.file.folder
    folder.mkdir(parents=True, exist_ok=True)
    lock = filelock.FileLock(folder / _LOCK, timeout=patience)
    try:
        lock.acquire()
    except filelock.Timeout:
        raise ApiError("Another build is running. Try again when it is done.") from None
    try:
        yield
    finally:
        lock.release()


def _reasons(products: Products) -> str:
    if not products.skipped:
        return "It has no rows."
    first = products.skipped[0]
    return f"All {products.read} rows were skipped; row {first['row']} {first['reason']}."
