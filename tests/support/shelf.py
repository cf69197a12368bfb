"""A plugin with a page on the admin page, whose import does what its file says."""
# ruff: noqa: ASYNC240  small files, in tests

from __future__ import annotations

import json
import textwrap
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import anyio
import httpx2
import pytest

from standards_mcp import Plugin, hookimpl, tool
from standards_mcp.config.loading import Sources
from standards_mcp.errors import StandardsMcpError
from standards_mcp.host import Host
from standards_mcp.loading.records import PluginInfo
from standards_mcp.server.reload import ReloadOptions

from .http import patient_client, served_over_http
from .waiting import PAUSE, WAIT

HOSTILE_NAME = "../../<b>\u202ecsv.exe\udc80\x1b[31m.csv"
SETTINGS = """
[server]
admin = true
port = 0

[server.audit]
path = "audit.jsonl"
"""
MODULE = """
    import os, time
    from pathlib import Path
    from standards_mcp.errors import StandardsMcpError

    def run(arguments, progress):
        source = Path(arguments["source"])
        text = source.read_text() if source.exists() else str(source)
        progress("Reading", 1, 4)
        if text == "wait":
            Path("waiting").write_text(str(os.getpid()))
            while not Path("go").exists():
                time.sleep(0.01)
        elif text == "crash":
            os.write(2, b"native <trouble>")
            os._exit(7)
        elif text == "raise":
            raise ZeroDivisionError("by <zero>")
        elif text == "refuse":
            raise StandardsMcpError("the shelf is full; make room")
        elif text == "lie":
            return "no result"
        rejected = [f"line {number}: <i>bad</i>" for number in range(600)]
        message = f"Took {arguments['note']} of {source.name}."
        return message, False, {"Books": len(text)}, {"Rejected": rejected}
"""


class Field(NamedTuple):
    name: str
    label: str
    is_flag: bool = False


class Table(NamedTuple):
    title: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


class ShelfImporter:
    max_bytes = 100_000
    hint = "Books."
    fields = (Field("note", "A <note>"), Field("strict", "All or nothing", is_flag=True))
    function = "shelf_import:run"

    def arguments(self, source: str, values: Mapping[str, str]) -> Mapping[str, object]:
        if values.get("note") == "wrong":
            raise StandardsMcpError("The note is wrong.")
        return {"source": source, "note": values.get("note", "nothing")}


class ShelfPage:
    name, title = "shelf", "The <shelf>"
    importer = ShelfImporter()
    problem = ""

    async def content(self):
        if self.problem:
            raise StandardsMcpError(self.problem)
        rows = tuple((f"<b>{number}</b>", "\u202eood") for number in range(600))
        return {"Books": "7 <i>"}, [Table("Shelves", ("Shelf", "Owner"), rows)]


class ShelfPlugin(Plugin):
    @tool(read_only=True)
    async def look(self) -> str:
        """Look."""
        return "here"

    @hookimpl
    def register_admin_page(self):
        return ShelfPage()


class OddPlugin(Plugin):
    """Wants the address of a page of the service."""

    @hookimpl
    def register_admin_page(self):
        page = ShelfPage()
        page.name = "tools"
        return page


class BadPlugin(Plugin):
    @hookimpl
    def register_admin_page(self):
        return object()


@asynccontextmanager
async def shelved(
    monkeypatch: pytest.MonkeyPatch, settings: str = SETTINGS, **plugins: type[Plugin]
) -> AsyncGenerator[tuple[Host, str]]:
    """Serve a host with the shelf, whose imports run in processes."""
    Path("modules").mkdir(exist_ok=True)
    Path("modules/shelf_import.py").write_text(textwrap.dedent(MODULE), encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(Path("modules").absolute()))
    file = Path("standards-mcp.toml")
    file.write_text(settings, encoding="utf-8")
    all_plugins = {"shelf": ShelfPlugin, **plugins}
    installed = [PluginInfo(name=name, load=lambda p=each: p) for name, each in all_plugins.items()]
    host = Host(Sources().load(), installed=installed)
    host.load()
    async with served_over_http(host, ReloadOptions(sources=Sources())) as url:
        yield host, url


async def upload(url: str, content: bytes | str = b"", **fields: Any) -> httpx2.Response:
    """Send the form of the page as a browser does; *file_name* is the name of the file."""
    name = fields.pop("file_name", "books.csv" if content else "")
    headers = {"origin": url, **fields.pop("headers", {})}
    data = {"address": "", "note": "", **fields}
    async with patient_client(headers=headers) as http:
        return await http.post(
            f"{url}/admin/shelf", data=data, files={"file": (name, content, "text/csv")}
        )


async def page_text(url: str, path: str = "shelf") -> str:
    """Return a page with its white space joined."""
    async with patient_client() as http:
        return " ".join((await http.get(f"{url}/admin/{path}")).text.split())


async def until_page(url: str, part: str) -> str:
    """Wait until the page has this text, and return the page."""
    with anyio.fail_after(WAIT):
        while part not in (text := await page_text(url)):  # noqa: ASYNC110  - of a process
            await anyio.sleep(PAUSE)
    return text


def audited() -> list[dict[str, Any]]:
    """Return the events of the audit log other than starts and ends of services."""
    lines = map(json.loads, Path("audit.jsonl").read_text("utf-8").splitlines())
    return [line for line in lines if not line["event"].startswith("service ")]
