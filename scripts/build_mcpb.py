"""Build the bundle that desktop apps install: dist/standards-mcp-VERSION.mcpb.

usage: python3 scripts/build_mcpb.py

It needs Python 3.11 or later with pip, and nothing else. The bundle is a zip archive with a wheel,
built for it, and a project that depends on it; the app's uv installs the rest when the server first
starts.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
DIST = ROOT / "dist"
SOURCES = ROOT / "packaging" / "mcpb"
EARLIEST = (1980, 1, 1, 0, 0, 0)
"""The time of every file in the bundle, so that the same sources make the same bundle."""

PROJECT = """\
[project]
name = "standards-mcp-bundle"
version = "{version}"
requires-python = "{python}"
dependencies = ["standards-mcp"]

[tool.uv]
package = false

[tool.uv.sources]
standards-mcp = {{ path = "{wheel}" }}
"""


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps"]
        built = subprocess.run([*command, "--wheel-dir", folder, str(ROOT)], check=False)
        if built.returncode:
            print("the wheel cannot be built; see the messages above")
            return built.returncode
        (wheel,) = Path(folder).glob("*.whl")
        print(f"wrote {pack(wheel, DIST)}")
    return 0


def pack(wheel: Path, into: Path) -> Path:
    """Write the bundle with *wheel* into a folder; return its path."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    into.mkdir(exist_ok=True)
    bundle = into / f"standards-mcp-{project['version']}.mcpb"
    with tempfile.TemporaryDirectory() as folder:
        stage(Path(folder), project, wheel)
        with zipfile.ZipFile(bundle, "w", zipfile.ZIP_DEFLATED) as archive:
            for file in sorted(Path(folder).iterdir()):
                entry = zipfile.ZipInfo(file.name, EARLIEST)
                entry.external_attr = 0o644 << 16
                archive.writestr(entry, file.read_bytes(), zipfile.ZIP_DEFLATED)
    return bundle


def stage(folder: Path, project: dict[str, Any], wheel: Path) -> None:
    """Put all that the bundle holds into *folder*."""
    manifest = json.loads((SOURCES / "manifest.json").read_text(encoding="utf-8"))
    manifest |= {key: project[key] for key in ("version", "description", "license", "keywords")}
    manifest["compatibility"]["runtimes"]["python"] = project["requires-python"]
    (folder / "manifest.json").write_text(json.dumps(manifest, indent=2), encoding="utf-8")
    text = PROJECT.format(
        version=project["version"], python=project["requires-python"], wheel=wheel.name
    )
    (folder / "pyproject.toml").write_text(text, encoding="utf-8")
    for file in (wheel, SOURCES / "main.py", ROOT / "LICENSE", ROOT / "NOTICE"):
        shutil.copy(file, folder)


if __name__ == "__main__":
    sys.exit(main())
