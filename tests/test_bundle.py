"""The bundle for desktop apps: packed, unpacked, started and asked."""

from __future__ import annotations

import json
import os
import runpy
import zipfile
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters
from support.environments import ROOT, built_wheel, environment_with

pytestmark = [pytest.mark.anyio, pytest.mark.processes]
SEARCH = "find_relevant_standards"
ACTIVITY = "Students fold paper strips into equal parts and compare the fractions"


def pack(wheel: Path, into: Path) -> Path:
    """Pack the bundle with a wheel, as the script does."""
    script: dict[str, Any] = runpy.run_path(str(ROOT / "scripts/build_mcpb.py"))
    bundle = script["pack"](wheel, into)
    assert isinstance(bundle, Path)
    return bundle


@pytest.mark.slow
async def test_the_bundle_is_unpacked_and_its_server_answers(tmp_path: Path):
    wheel = built_wheel(tmp_path)
    bundle, again = pack(wheel, tmp_path / "dist"), pack(wheel, tmp_path / "again")
    assert bundle.read_bytes() == again.read_bytes()
    folder = tmp_path / "unpacked"
    with zipfile.ZipFile(bundle) as archive:
        assert archive.testzip() is None
        archive.extractall(folder)
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["version"] in wheel.name
    # As `uv run` starts it, in an environment with the bundle's own wheel.
    programs = environment_with(folder / wheel.name, tmp_path / "venv")
    entry_point = folder / manifest["server"]["entry_point"]
    # An app leaves the placeholders of fields that its user did not fill in.
    unfilled: dict[str, str] = manifest["server"]["mcp_config"]["env"]
    # Other plugins may be installed where the dependencies come from.
    variables = {**unfilled, "STANDARDS_MCP_TRUSTED": '["standards-mcp"]'}
    variables |= {name: os.environ[name] for name in ("HOME", "PATH")}
    server = StdioServerParameters(
        command=str(programs / "python"), args=[str(entry_point)], env=variables, cwd=folder
    )
    async with Client(server) as client:
        tools = (await client.list_tools()).tools
        answer = await client.call_tool(SEARCH, {"activity": ACTIVITY, "grade": "3"})
    assert {tool.name for tool in tools} == {tool["name"] for tool in manifest["tools"]}
    assert "3.NF" in answer.structured_content["results"][0]["statement_notation"]
