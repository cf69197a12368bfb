"""``[server.audit] path`` and ``state_dir``, from every source."""

from __future__ import annotations

from pathlib import Path

import pytest

from standards_mcp import ConfigError
from standards_mcp.config.loading import FILE_NAME, load_settings


def test_a_tilde_is_the_home_folder_in_every_source(monkeypatch: pytest.MonkeyPatch):
    home = Path.home()
    (home / "mine.toml").write_text('state_dir = "~/state"\n', "utf-8")
    monkeypatch.setenv("STANDARDS_MCP_CONFIG", "~/mine.toml")
    monkeypatch.setenv("STANDARDS_MCP_SERVER__AUDIT__PATH", "~/catalog")
    settings = load_settings().settings
    assert settings.state_dir == home / "state"
    assert settings.server.audit.path == home / "catalog"
    overrides = {"server": {"audit": {"path": "~"}}}
    assert load_settings(overrides=overrides).settings.server.audit.path == home


def test_a_relative_path_in_a_file_starts_in_the_folder_of_the_file(tmp_path: Path):
    file = tmp_path / "etc" / "mine.toml"
    file.parent.mkdir()
    file.write_text('state_dir = "../state"\n[server.audit]\npath = "data"\n', "utf-8")
    for named in (file, Path("..", "etc", "mine.toml")):
        settings = load_settings(named).settings
        assert settings.server.audit.path is not None
        assert settings.server.audit.path.resolve() == file.parent / "data"
        assert settings.state_dir is not None
        assert settings.state_dir.resolve() == tmp_path / "state"
        assert settings.server.audit.path.is_absolute()


def test_a_relative_path_from_elsewhere_starts_in_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    file = tmp_path / "mine.toml"
    file.write_text('[server.audit]\npath = "data"\n', "utf-8")
    Path(".env").write_text("STANDARDS_MCP_STATE_DIR=state\n", "utf-8")
    monkeypatch.setenv("STANDARDS_MCP_SERVER__AUDIT__PATH", "from-variable")
    settings = load_settings(file).settings
    assert settings.server.audit.path == Path.cwd() / "from-variable"
    assert settings.state_dir == Path.cwd() / "state"
    given = load_settings(file, {"server": {"audit": {"path": "given"}}}).settings
    assert given.server.audit.path == Path.cwd() / "given"


def test_a_blank_path_counts_as_not_set(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("STANDARDS_MCP_SERVER__AUDIT__PATH", " ")
    assert load_settings().settings.server.audit.path is None
    Path(FILE_NAME).write_text('[server.audit]\npath = "data"\n', "utf-8")
    assert load_settings().settings.server.audit.path == Path.cwd() / "data"


def test_a_home_that_is_not_there_is_a_mistake_in_one_line():
    Path(FILE_NAME).write_text('[server.audit]\npath = "~nobody-of-that-name/x"\n', "utf-8")
    with pytest.raises(
        ConfigError, match=rf"^{FILE_NAME}:2: \[server.audit\] path: ~nob.*whole path$"
    ):
        load_settings()
