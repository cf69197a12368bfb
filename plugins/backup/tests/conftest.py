"""A plugin that keeps files, and the program in a process of its own."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from standards_mcp.cli import Process, cli
from standards_mcp.config.timing import DEFAULT_TIMING
from standards_mcp.start.launch import Launch

Run = Callable[..., Result]
Configure = Callable[..., None]

SHELF = """
    import os
    import shutil
    from contextlib import contextmanager
    from pathlib import Path

    from pydantic import SecretStr
    from standards_mcp import Plugin, PluginSettings, hookimpl
    from standards_mcp_backup import BackupError

    class ShelfSettings(PluginSettings):
        folder: Path
        pin: SecretStr = SecretStr("")
        colour: str = ""

    class ShelfBackup:
        def __init__(self, folder):
            self.folder = folder

        def save(self, folder):
            for file in self.folder.glob("*.txt"):
                if file.read_text() == "unreadable":
                    raise BackupError("a book is unreadable")
                shutil.copy(file, folder)

        @contextmanager
        def restoring(self, folder):
            if (self.folder / "in use").exists():
                raise BackupError("somebody reads")

            def replace():
                if (self.folder / "full").exists():
                    raise BackupError("the shelf is full")
                if (self.folder / "kill").exists():
                    os._exit(9)
                for file in self.folder.glob("*.txt"):
                    file.unlink()
                for file in folder.iterdir():
                    shutil.copy(file, self.folder)

            yield replace

    class ShelfPlugin(Plugin):
        settings_type = ShelfSettings

        @hookimpl
        def register_backup(self):
            return ShelfBackup(self.settings.folder)
"""


@pytest.fixture
def shelf(install: Callable[..., Path], configure: Configure, tmp_path: Path) -> Path:
    """Install a plugin with one book, configured in the working directory; return its folder."""
    install("shelf", SHELF)
    folder = tmp_path / "shelf"
    folder.mkdir()
    (folder / "emma.txt").write_text("Emma", encoding="utf-8")
    configure()
    return folder


@pytest.fixture
def configure(tmp_path: Path) -> Configure:
    """Return a function that writes the configuration, without a catalog."""

    def write(more: str = "", plugin: str = "") -> None:
        text = f"state_dir = {json.dumps(str(tmp_path / 'state'))}\n{more}\n"
        text += "[plugins.catalog]\nenabled = false\n"
        text += f"[plugins.shelf]\nfolder = {json.dumps(str(tmp_path / 'shelf'))}\n{plugin}\n"
        Path("standards-mcp.toml").write_text(text, encoding="utf-8")

    return write


@pytest.fixture
def run() -> Run:
    """Return a function that runs a command in this process."""

    def invoke(*arguments: str | Path) -> Result:
        process = Process(DEFAULT_TIMING, Launch(()))
        return CliRunner().invoke(cli, [str(each) for each in arguments], obj=process)

    return invoke
