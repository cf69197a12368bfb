"""The commands ``backup`` and ``restore``, with a plugin that keeps files."""

from __future__ import annotations

import json
import os
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result
from filelock import FileLock
from support.killing import started

from standards_mcp_backup.approvals import ApprovalsBackup
from standards_mcp_backup.errors import BackupError

Run = Callable[..., Result]
Configure = Callable[..., None]
ARCHIVE = Path("backup.zip")
CONFIG = Path("standards-mcp.toml")
MEMBERS = {"configuration/standards-mcp.toml", "manifest.json", "plugins/shelf/emma.txt"}


def books(shelf: Path) -> dict[str, str]:
    return {file.name: file.read_text("utf-8") for file in shelf.glob("*.txt")}


def ok(result: Result) -> str:
    assert result.exit_code == 0, result.output
    return result.output


def test_data_and_configuration_come_back(run: Run, shelf: Path):
    assert "configuration, shelf" in ok(run("backup", ARCHIVE))
    assert set(zipfile.ZipFile(ARCHIVE).namelist()) == MEMBERS
    if os.name != "nt":
        assert ARCHIVE.stat().st_mode & 0o777 == 0o600
    (shelf / "emma.txt").unlink()
    (shelf / "ulysses.txt").write_text("Ulysses", encoding="utf-8")
    text = CONFIG.read_text("utf-8")
    CONFIG.write_text(f"{text}# mine\n", encoding="utf-8")
    output = ok(run("restore", ARCHIVE, "--yes"))
    assert "Restored shelf" in output
    assert "standards-mcp.toml stays as it is" in output
    assert books(shelf) == {"emma.txt": "Emma"}
    assert CONFIG.read_text("utf-8").endswith("# mine\n")


def test_a_dry_run_changes_nothing(run: Run, shelf: Path):
    ok(run("backup", ARCHIVE))
    (shelf / "ulysses.txt").write_text("Ulysses", encoding="utf-8")
    assert "can be restored" in ok(run("restore", ARCHIVE, "--dry-run"))
    CONFIG.unlink()
    ok(run("restore", ARCHIVE, "--dry-run", "--without", "shelf"))
    assert not CONFIG.exists()
    assert len(books(shelf)) == 2


def test_without_an_answer_nothing_is_restored(run: Run, shelf: Path):
    ok(run("backup", ARCHIVE))
    (shelf / "emma.txt").write_text("Emma II", encoding="utf-8")
    result = run("restore", ARCHIVE)
    assert result.exit_code == 1
    assert "Run again with --yes" in result.output
    assert books(shelf) == {"emma.txt": "Emma II"}


def test_on_an_empty_machine_the_configuration_comes_first(run: Run, shelf: Path, tmp_path: Path):
    ok(run("backup", ARCHIVE))
    before = CONFIG.read_text("utf-8")
    chosen = tmp_path / "etc" / "chosen.toml"
    CONFIG.unlink()
    (shelf / "emma.txt").unlink()
    assert "configuration, shelf" in ok(run("--config", chosen, "restore", ARCHIVE, "--yes"))
    assert books(shelf) == {"emma.txt": "Emma"}
    restored = chosen.read_text("utf-8")
    assert {*restored.split()} == {*before.split()}
    if os.name != "nt":
        assert chosen.stat().st_mode & 0o777 == 0o600


SECRETS = """
# the old password was granite-4711
sign_in_key = "0123456789abcdef0123456789abcdef"

[servers.other]
command = "true"
enabled = false
env = { TOKEN = "granite-4711", PLACE = "${PLACE}" }

[servers.third]
url = "https://ann:granite-4711@example.org/mcp?api_key=granite-4711"
enabled = false

[plugins.gone]
enabled = false
word = "granite-4711"
"""


@pytest.mark.usefixtures("shelf")
def test_no_secret_is_in_the_archive(
    run: Run,
    configure: Configure,
    install: Callable[..., Path],
    monkeypatch: pytest.MonkeyPatch,
):
    install("gone", "raise RuntimeError")
    secrets = SECRETS.replace('sign_in_key = "0123456789abcdef0123456789abcdef"\n', "")
    configure(plugin='pin = "granite-4711"\ncolour = "pale granite-4711"\n' + secrets)
    monkeypatch.setenv("STANDARDS_MCP_SIGN_IN_KEY", "0123456789abcdef0123456789abcdef")
    output = ok(run("backup", ARCHIVE))
    with zipfile.ZipFile(ARCHIVE) as archive:
        everything = b"".join(archive.read(name) for name in archive.namelist())
        text = archive.read("configuration/standards-mcp.toml").decode()
    assert b"granite" not in everything
    assert b"0123456789abcdef" not in everything
    assert 'PLACE = "${PLACE}"' in text
    names = [
        *("plugins.shelf.pin", "plugins.shelf.colour", "plugins.gone.word"),
        *("servers.other.env.TOKEN", "servers.third.url"),
        *("STANDARDS_MCP_SIGN_IN_KEY", "${PLACE}"),
    ]
    for name in names:
        assert name in output
    assert set(json.loads(run("backup", ARCHIVE, "--json").stdout)["secrets"]) == set(names)
    assert "Set again" in run("restore", ARCHIVE, "--dry-run").output


@pytest.mark.usefixtures("shelf")
def test_what_keeps_the_configuration_from_loading_names_its_secrets(
    run: Run, configure: Configure
):
    configure('[servers.s]\nurl = "https://u:granite-4711@example.org/mcp"\n')
    ok(run("backup", ARCHIVE))
    CONFIG.unlink()
    result = run("restore", ARCHIVE, "--yes")
    assert result.exit_code == 1
    assert "set servers.s.url" in result.output


@pytest.mark.usefixtures("shelf")
@pytest.mark.parametrize(
    ("plugin", "message"),
    [("isolate = true", "plugins.shelf.isolate=false"), ("coluor = 1", "plugin shelf is failed")],
)
def test_a_plugin_that_cannot_be_asked_is_no_silent_gap(
    run: Run, configure: Configure, plugin: str, message: str
):
    configure(plugin=plugin)
    result = run("backup", ARCHIVE)
    assert result.exit_code == 1
    assert message in result.output
    assert not ARCHIVE.exists()
    output = ok(run("backup", ARCHIVE, "--without", "shelf"))
    assert "Wrote backup.zip" in output
    assert not [name for name in zipfile.ZipFile(ARCHIVE).namelist() if "shelf" in name]


def test_a_backup_that_fails_leaves_the_earlier_one(run: Run, shelf: Path):
    ok(run("backup", ARCHIVE))
    before = ARCHIVE.read_bytes()
    (shelf / "bad.txt").write_text("unreadable", encoding="utf-8")
    result = run("backup", ARCHIVE)
    assert result.exit_code == 1
    assert "a book is unreadable" in result.output
    assert ARCHIVE.read_bytes() == before
    assert {each.name for each in Path().iterdir()} == {ARCHIVE.name, CONFIG.name}


def test_a_refused_restore_leaves_no_new_configuration(run: Run, shelf: Path):
    ok(run("backup", ARCHIVE))
    CONFIG.unlink()
    command = ("--config", CONFIG, "restore", ARCHIVE)
    assert "Nothing was changed" in run(*command).output
    assert not CONFIG.exists()
    (shelf / "in use").touch()
    assert "somebody reads" in run(*command, "--yes").output
    assert not CONFIG.exists()


def test_data_in_use_are_not_replaced(run: Run, shelf: Path):
    ok(run("backup", ARCHIVE))
    (shelf / "emma.txt").write_text("Emma II", encoding="utf-8")
    (shelf / "in use").touch()
    result = run("restore", ARCHIVE, "--yes")
    assert result.exit_code == 1
    assert "somebody reads" in result.output
    assert books(shelf) == {"emma.txt": "Emma II"}


def test_after_a_failure_the_present_data_are_in_an_archive(run: Run, shelf: Path, tmp_path: Path):
    ok(run("backup", ARCHIVE))
    (shelf / "emma.txt").write_text("Emma II", encoding="utf-8")
    (shelf / "full").touch()
    result = run("restore", ARCHIVE, "--yes")
    assert result.exit_code == 1
    (before,) = (tmp_path / "state").glob("before-restore-*.zip")
    assert f"standards-mcp restore {before}" in " ".join(result.output.split())
    (shelf / "full").unlink()
    assert f"An earlier restore did not end; the data before it are in {before}" in ok(
        run("restore", ARCHIVE, "--yes")
    )
    ok(run("restore", before, "--yes"))
    assert books(shelf) == {"emma.txt": "Emma II"}
    assert [*(tmp_path / "state").glob("before-restore-*.zip")] == [before]


@pytest.mark.processes
def test_a_restore_that_is_killed_between_two_parts_is_told_and_completed(
    run: Run, shelf: Path, tmp_path: Path
):
    approvals = tmp_path / "state" / "plugins" / "other" / "approved-0123456789ab.json"
    approvals.parent.mkdir(parents=True)
    approvals.write_text("1", encoding="utf-8")
    ok(run("backup", ARCHIVE))
    approvals.write_text("2", encoding="utf-8")
    (shelf / "emma.txt").write_text("Emma II", encoding="utf-8")
    (shelf / "kill").touch()
    process = started("restore", ARCHIVE, "--yes")
    process.communicate(timeout=120)
    assert process.returncode == 9
    (shelf / "kill").unlink()
    assert (approvals.read_text("utf-8"), books(shelf)) == ("1", {"emma.txt": "Emma II"})
    told = "did not end. Restored: approvals. Perhaps not restored: shelf. `standards-mcp restore"
    for command in (("backup", "mixed.zip"), ("restore", ARCHIVE, "--dry-run")):
        assert told in " ".join(ok(run(*command)).split())
    assert told in " ".join(run("restore", ARCHIVE).output.split()), "before the question"
    findings = json.loads(run("doctor", "--json").stdout)
    (finding,) = (row for row in findings if row["subject"] == "restore")
    assert (finding["level"], told in finding["message"]) == ("error", True)
    ok(run("restore", ARCHIVE, "--yes"))
    assert (approvals.read_text("utf-8"), books(shelf)) == ("1", {"emma.txt": "Emma"})
    for command in (("backup", "whole.zip"), ("doctor",)):
        assert "did not end" not in " ".join(run(*command).output.split())


@pytest.mark.parametrize(
    ("text", "note"),
    [
        ('{"archive": "a.zip", "done": ["shelf"], "left": []}', ""),
        ("{", "An earlier restore did not end, and"),
    ],
)
@pytest.mark.usefixtures("shelf")
def test_a_journal_without_an_open_part_or_that_is_damaged(
    run: Run, tmp_path: Path, text: str, note: str
):
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "restore.json").write_text(text, encoding="utf-8")
    output = ok(run("backup", ARCHIVE))
    assert note in output
    assert ("did not end" in output) == bool(note)


@pytest.mark.usefixtures("shelf")
def test_data_of_a_plugin_that_is_not_here_are_refused_or_left_out(run: Run, tmp_path: Path):
    ok(run("backup", ARCHIVE))
    CONFIG.write_text("[plugins.catalog]\nenabled = false\n", encoding="utf-8")
    shutil.rmtree(tmp_path / "site")
    (tmp_path / "site").mkdir()
    result = run("restore", ARCHIVE, "--yes")
    assert result.exit_code == 1
    assert "plugin shelf is not installed here" in result.output
    assert "--without shelf" in result.output
    ok(run("restore", ARCHIVE, "--yes", "--without", "shelf"))
    assert run("restore", ARCHIVE, "--without", "shelv").exit_code == 2


@pytest.mark.usefixtures("shelf")
def test_two_commands_do_not_run_at_once(run: Run, tmp_path: Path):
    ok(run("backup", ARCHIVE))
    with FileLock(tmp_path / "state" / "backup.lock"):
        for command in (("backup", "other.zip"), ("restore", ARCHIVE, "--yes")):
            result = run(*command)
            assert result.exit_code == 1
            assert "another backup or restore is running" in result.output


@pytest.mark.usefixtures("shelf")
def test_approvals_of_servers_come_back(run: Run, tmp_path: Path):
    file = tmp_path / "state" / "plugins" / "other" / "approved-0123456789ab.json"
    file.parent.mkdir(parents=True)
    file.write_text('{"a": 1}', encoding="utf-8")
    (file.parent / "0123.token").write_text("sealed", encoding="utf-8")
    assert "approvals" in ok(run("backup", ARCHIVE))
    assert not [name for name in zipfile.ZipFile(ARCHIVE).namelist() if "token" in name]
    file.unlink()
    ok(run("restore", ARCHIVE, "--yes"))
    assert file.read_text("utf-8") == '{"a": 1}'


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("lists.json", "{}"),
        ("other/lists.json", "{}"),
        ("other/deep/approved-0123456789ab.json", "{}"),
        ("other/approved-0123456789ab.txt", "{}"),
        ("other/approved-0123456789ab.json", "{"),
        ("other/approved-0123456789ab.json", "[" * 100_000),
    ],
)
def test_approvals_write_no_other_files(tmp_path: Path, name: str, text: str):
    copy = tmp_path / "copy"
    (copy / name).parent.mkdir(parents=True)
    (copy / name).write_text(text, encoding="utf-8")
    with pytest.raises(BackupError, match=name), ApprovalsBackup(tmp_path).restoring(copy):
        pass
