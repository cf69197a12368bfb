"""Files and packages to read."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from standards_mcp_alignment.inputs import InputFile, ItemReader, SkippedFile

MANIFEST = """\
<?xml version="1.0" encoding="UTF-8"?>
<manifest identifier="m" xmlns="http://www.imsglobal.org/xsd/imsccv1p3/imscp_v1p1"
  xmlns:csm="http://www.imsglobal.org/xsd/imscsmd_v1p0">
 {organizations}
 <resources>{resources}</resources>
</manifest>
"""


@pytest.fixture
def read(tmp_path: Path) -> Iterator[Callable[..., InputFile | SkippedFile]]:
    """Return a function that writes a file and reads its items."""
    with ItemReader() as reader:

        def read_file(name: str, content: str | bytes) -> InputFile | SkippedFile:
            path = tmp_path / name
            path.write_bytes(content.encode() if isinstance(content, str) else content)
            return reader.read(path)

        yield read_file


@pytest.fixture
def packed() -> Callable[..., bytes]:
    """Return a function that packs files, with a manifest of these parts."""

    def pack(
        files: Mapping[str, str | bytes], resources: str = "", organizations: str = ""
    ) -> bytes:
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            if resources or organizations:
                manifest = MANIFEST.format(resources=resources, organizations=organizations)
                archive.writestr("imsmanifest.xml", manifest)
            for name, content in files.items():
                archive.writestr(name, content)
        return file.getvalue()

    return pack
