"""Pack the wheel in dist/ into a bundle that desktop apps install: dist/standards-mcp-VERSION.mcpb.

usage: python scripts/build_mcpb.py

The bundle holds the wheel and a project that depends on it; the app's uv installs the rest when the
server first starts. Node.js is needed, since the tool that checks and packs bundles is on npm.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
DIST = ROOT / "dist"
SOURCES = ROOT / "packaging" / "mcpb"
MCPB = "@anthropic-ai/mcpb@2.1.2"

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
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wheel = DIST / f"standards_mcp-{project['version']}-py3-none-any.whl"
    npx = shutil.which("npx")
    if not npx:
        print("npx is missing; install Node.js, which brings it")
        return 1
    if not wheel.is_file():
        print(f"{wheel} is missing; build it with `uv build --wheel`")
        return 1
    bundle = DIST / f"standards-mcp-{project['version']}.mcpb"
    with tempfile.TemporaryDirectory() as folder:
        stage(Path(folder), project, wheel)
        for arguments in (["validate", f"{folder}/manifest.json"], ["pack", folder, str(bundle)]):
            done = subprocess.run([npx, "--yes", MCPB, *arguments], check=False)
            if done.returncode:
                return done.returncode
    return 0


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
