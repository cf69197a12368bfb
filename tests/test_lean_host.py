"""The host without the libraries of plugins: the catalog, the encoders and the service."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import standards_mcp

LIBRARIES = (
    *("numpy", "onnxruntime", "pinecone", "tantivy", "tokenizers"),
    *("jinja2", "jwt", "prometheus_client", "uvicorn"),
)
PLUGINS = (
    "standards_mcp_backup",
    "standards_mcp_catalog",
    "standards_mcp_clients",
    "standards_mcp_documents",
    "standards_mcp_encoders",
    "standards_mcp_pinecone",
    "standards_mcp_ranking",
    "standards_mcp_scaffold",
    "standards_mcp_search",
    "standards_mcp_service",
    "standards_mcp_signin",
)
PROGRAM = f"""
import importlib, json, pkgutil, sys

class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {(*LIBRARIES, *PLUGINS)!r}:
            raise ModuleNotFoundError(f"{{name}} is not installed here", name=name)

sys.meta_path.insert(0, Refuse())
import standards_mcp

names = [
    each.name
    for each in pkgutil.walk_packages(standards_mcp.__path__, "standards_mcp.")
    if each.name != "standards_mcp.__main__"
]
for name in names:
    importlib.import_module(name)

from standards_mcp import Plugin, tool
from standards_mcp.config.loading import LoadedSettings
from standards_mcp.config.models.settings import Settings
from standards_mcp.host import Host
from standards_mcp.loading.records import PluginInfo
import anyio

class CountPlugin(Plugin):
    @tool(read_only=True)
    def count_words(self, text: str) -> int:
        "Count the words of a text."
        return len(text.split())

installed = [PluginInfo(name="count", load=lambda: CountPlugin)]
host = Host(LoadedSettings(Settings(), None), installed=installed, remembers=False)
host.load()
answer = anyio.run(host.call_tool, "count_words", {{"text": "a b c"}})
print(json.dumps([len(names), answer.text]))
"""


def test_every_module_of_the_host_works_without_them():
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    count, answer = json.loads(done.stdout)
    assert json.loads(answer) == {"result": 3}
    assert count > len(list(Path(standards_mcp.__file__).parent.iterdir()))
