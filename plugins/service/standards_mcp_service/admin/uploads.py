"""Receive the form of an import, and its file, without holding the file in memory."""

from __future__ import annotations

import shutil
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final, NamedTuple

from anyio import to_thread
from starlette.datastructures import FormData, UploadFile
from starlette.exceptions import HTTPException
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import Request

from standards_mcp.files import open_private
from standards_mcp.transports import reason_of
from standards_mcp_service.bodies import media_type
from standards_mcp_service.wire import EXTEND

FORM: Final = "multipart/form-data"
_FORM_BYTES: Final = 65_536
_FIELD_BYTES: Final = 4096
_MAX_FIELDS: Final = 20
_SECONDS: Final = 600.0
_LONGEST_NAME: Final = 80
_MB: Final = 2**20


class Upload(NamedTuple):
    """The form of an import.

    Attributes:
        fields: The texts that are not empty.
        file: The file, under the name that its owner gave it; None without one.
    """

    fields: dict[str, str]
    file: Path | None


async def receive(request: Request, folder: Path, max_bytes: int) -> Upload:
    """Read a form into a private folder.

    Raises:
        HTTPException: The body is not a form, is too large, or cannot be saved.
    """
    if media_type(request) != FORM:
        raise HTTPException(415, "This address accepts forms of the page only.")
    extend: Callable[[int, float], None] = request.scope["state"][EXTEND]
    extend(max_bytes + _FORM_BYTES, _SECONDS)
    parser = MultiPartParser(
        request.headers,
        _bounded(request, max_bytes),
        max_files=1,
        max_fields=_MAX_FIELDS,
        max_part_size=_FIELD_BYTES,
    )
    fields, file = dict[str, str](), None
    try:
        async with _parsed(parser) as form:
            for name, value in form.multi_items():
                if not isinstance(value, UploadFile):
                    fields |= {name: value.strip()} if value.strip() else {}
                elif value.filename:
                    file = folder / _safe_name(value.filename)
                    await to_thread.run_sync(_copy, value, file)
    except MultiPartException as exc:
        raise HTTPException(400, f"This form cannot be read: {exc.message}") from None
    except OSError as exc:
        raise HTTPException(507, f"The file cannot be saved: {reason_of(exc)}.") from None
    return Upload(fields, file)


async def _bounded(request: Request, max_bytes: int) -> AsyncGenerator[bytes]:
    size = 0
    async for chunk in request.stream():
        size += len(chunk)
        if size > max_bytes + _FORM_BYTES:
            most = f"The file is too large: at most {max_bytes // _MB:,} MB are accepted here."
            raise HTTPException(413, f"{most} Import it with a command on the service's machine.")
        yield chunk


@asynccontextmanager
async def _parsed(parser: MultiPartParser) -> AsyncGenerator[FormData]:
    form = await parser.parse()
    try:
        yield form
    finally:
        await form.close()


def _copy(upload: UploadFile, target: Path) -> None:
    # Starlette's file has no name, and vanishes with this process.
    with open_private(target) as file:
        shutil.copyfileobj(upload.file, file, _MB)


def _safe_name(name: str) -> str:
    """Return the last part of a name that a browser sends, without odd characters."""
    last = name.replace("\\", "/").rpartition("/")[2]
    plain = "".join(char if char.isprintable() and char not in '<>:"|?*' else "_" for char in last)
    # The system counts bytes; the end tells the format.
    while len(plain.encode()) > _LONGEST_NAME:
        plain = plain[1:]
    return plain.strip(". ") or "upload"
