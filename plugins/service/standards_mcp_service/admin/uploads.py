"""Receive the form of an import, and its file, without holding the file in memory."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple, cast

from starlette.exceptions import HTTPException
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import Request
from typing_extensions import override

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
_MB: Final = 10**6


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
    parser = _Parser(request, folder, max_bytes)
    try:
        form = await parser.parse()
    except (MultiPartException, UnicodeError) as exc:
        raise HTTPException(400, f"This form cannot be read: {exc}") from None
    except OSError as exc:
        raise HTTPException(507, f"The file cannot be saved: {reason_of(exc)}.") from None
    finally:
        parser.close()
    texts = [(name, value.strip()) for name, value in form.multi_items() if isinstance(value, str)]
    return Upload({name: text for name, text in texts if text}, parser.path)


class _Parser(MultiPartParser):
    """Writes the file of a form to a folder, since the temporary folder may be in memory.

    Attributes:
        path: The file; None if the user has chosen none.
    """

    def __init__(self, request: Request, folder: Path, max_bytes: int) -> None:
        super().__init__(
            request.headers,
            _bounded(request, max_bytes),
            max_files=1,
            max_fields=_MAX_FIELDS,
            max_part_size=_FIELD_BYTES,
        )
        self._folder = folder
        self._file: BinaryIO | None = None
        self.path: Path | None = None

    @override
    def on_headers_finished(self) -> None:
        super().on_headers_finished()
        upload = self._current_part.file
        if upload and upload.filename:
            self.path = self._folder / _safe_name(upload.filename)
            upload.file = self._file = cast("BinaryIO", open_private(self.path))

    def close(self) -> None:
        """Close all files."""
        for file in (self._file, *self._files_to_close_on_error):
            if file:
                file.close()


async def _bounded(request: Request, max_bytes: int) -> AsyncGenerator[bytes]:
    size = 0
    async for chunk in request.stream():
        size += len(chunk)
        if size > max_bytes + _FORM_BYTES:
            most = f"The file is too large: at most {max_bytes // _MB:,} MB are accepted here."
            raise HTTPException(413, f"{most} Import it with a command on the service's machine.")
        yield chunk


def _safe_name(name: str) -> str:
    """Return the last part of a name that a browser sends, without odd characters."""
    last = name.replace("\\", "/").rpartition("/")[2]
    plain = "".join(char if char.isprintable() and char not in '<>:"|?*' else "_" for char in last)
    # The system counts bytes; the end tells the format.
    while len(plain.encode()) > _LONGEST_NAME:
        plain = plain[1:]
    return plain.strip(". ") or "upload"
