"""SHA-256 digests of what a report was made from: catalog, model, settings and input.

Equal digests mean equal standards, model, settings and files.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from importlib import metadata, resources
from typing import IO, Any, Final

from standards_mcp_catalog import Catalog, StandardRecord

_CHUNK: Final = 1 << 20
_MODEL_FILE: Final = "minilm.onnx"


@dataclass(frozen=True, slots=True)
class Provenance:
    """The digests of one report, each 64 hexadecimal digits.

    Attributes:
        catalog: Digest of all standards of the catalog, or of its list of sets, see
            `catalog_digest`.
        catalog_records: Number of standards in the catalog.
        model: Digest of the file of the built-in text encoder, or of the name of another encoder.
        model_name: Name of the encoder, or ``none`` for searches by words only.
        settings: Digest of the settings of the report.
        inputs: Digest of each input by its name.
        version: Version of this distribution.
    """

    catalog: str
    catalog_records: int
    model: str
    model_name: str
    settings: str
    inputs: Mapping[str, str] = field(default_factory=dict[str, str])
    version: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return the digests as JSON-ready data."""
        return asdict(self)


async def provenance_of(
    catalog: Catalog, settings: Mapping[str, Any], inputs: Mapping[str, str]
) -> Provenance:
    """Return the digests of a report.

    Args:
        settings: The settings of the report, as JSON-ready data.
        inputs: The digest of each input by its name, see `digest_of` and `digest_of_file`.

    Raises:
        CatalogError: The catalog cannot be read.
    """
    stats = await catalog.stats()
    model = stats.model or "none"
    return Provenance(
        catalog=await catalog_digest(catalog),
        catalog_records=stats.records,
        model=_model_digest(model),
        model_name=model,
        settings=digest_of(settings),
        inputs=dict(inputs),
        version=metadata.version("standards-mcp-alignment"),
    )


def digest_of(data: Any) -> str:
    """Return the digest of a text, of bytes, or of other JSON-ready data.

    The order of the keys of an object does not matter.
    """
    if not isinstance(data, bytes | str):
        data = json.dumps(data, sort_keys=True, separators=(",", ":"))
    if isinstance(data, str):
        data = data.encode("utf-8", "surrogatepass")
    return hashlib.sha256(data).hexdigest()


def digest_of_file(file: IO[bytes]) -> str:
    """Return the digest of an open file from its beginning, and rewind it."""
    file.seek(0)
    digest = hashlib.sha256()
    while chunk := file.read(_CHUNK):
        digest.update(chunk)
    file.seek(0)
    return digest.hexdigest()


def records_digest(records: Iterable[StandardRecord]) -> str:
    """Return the digest of every field of these standards, independent of their order."""
    return digest_of(sorted(digest_of(record.to_dict()) for record in records))


async def catalog_digest(catalog: Catalog) -> str:
    """Return the digest of all standards of a catalog, see `records_digest`.

    A catalog on a server cannot be read as a whole, so only its list of sets counts, with the
    number of records of each.

    Raises:
        CatalogError: The catalog cannot be read.
    """
    sets = sorted((await catalog.sets()).sets, key=lambda item: item.id)
    if (await catalog.stats()).backend != "local":
        return digest_of([item.to_dict() for item in sets])
    digests: list[str] = []
    for item in sets:
        # Set by set, so that a large catalog is never in memory as a whole.
        records = await catalog.select({"standard_set_id": item.id}, item.records)
        digests.append(records_digest(records))
    return digest_of(digests)


def _model_digest(name: str) -> str:
    from standards_mcp_encoders import is_minilm  # noqa: PLC0415  - costs start-up time

    if not is_minilm(name):
        return digest_of(name)
    return digest_of((resources.files("standards_mcp_encoders") / _MODEL_FILE).read_bytes())
