"""The start of the program: its fingerprint, and snapshots that may not be used."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from hashlib import blake2b
from pathlib import Path

import pytest

from standards_mcp._utils.places import user_state_folder
from standards_mcp.start.fingerprint import installed_packages, installed_version
from standards_mcp.start.front import DISCOVER, MODERN_VERSION, result_key
from standards_mcp.start.launch import Launch
from standards_mcp.start.snapshot import Snapshot, SnapshotError, Store, decode

SALT = b"s" * 32


def stored(launch: Launch, *files: Path, **results: bytes) -> Path:
    """Store a snapshot of *launch*, and return its file."""
    salt = launch.store.make_salt()
    names = [str(file) for file in files]
    snapshot = Snapshot(
        fingerprint=launch.fingerprint(salt, ["ACME_TOKEN"], names),
        variables=["ACME_TOKEN"],
        files=names,
        results=results,
    )
    launch.store.write(launch.snapshot_name(salt), snapshot)
    return Path(user_state_folder(os.environ), "starts", launch.snapshot_name(salt))


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder on the import path with one installed and one editable distribution."""
    folder = tmp_path / "site-packages"
    for name in ("plain", "editable"):
        metadata = folder / f"{name}-1.0.dist-info"
        metadata.mkdir(parents=True)
        (metadata / "RECORD").write_text(f"{name}.py,,\n", encoding="utf-8")
        entry = f"[standards_mcp.plugins]\n{name} = {name}_plugin.code:Plugin\n"
        (metadata / "entry_points.txt").write_text(entry, encoding="utf-8")
        package = folder / f"{name}_plugin"
        package.mkdir()
        (package / "code.py").write_text("", encoding="utf-8")
    url = {"url": "file:///somewhere", "dir_info": {"editable": True}}
    file = folder / "editable-1.0.dist-info" / "direct_url.json"
    file.write_text(json.dumps(url), encoding="utf-8")
    monkeypatch.syspath_prepend(str(folder))
    return folder


Change = Callable[[Path, pytest.MonkeyPatch], object]
CHANGES: dict[str, tuple[str, Change]] = {
    "another version is installed": (
        "installed packages",
        lambda site, _: (site / "plain-1.0.dist-info").rename(site / "plain-1.1.dist-info"),
    ),
    "the same version is installed again": (
        "installed packages",
        lambda site, _: os.utime(site / "plain-1.0.dist-info" / "RECORD", ns=(1, 1)),
    ),
    "a distribution is removed": (
        "installed packages",
        lambda site, _: (site / "plain-1.0.dist-info").rename(site / "gone"),
    ),
    "an editable plugin is edited": (
        "installed packages",
        lambda site, _: os.utime(site / "editable_plugin" / "code.py", ns=(9 * 10**18,) * 2),
    ),
    "an editable plugin has a new file": (
        "installed packages",
        lambda site, _: (site / "editable_plugin" / "more.py").write_text(""),
    ),
    "the configuration is edited": (
        "configuration or state files",
        lambda site, _: (site / "config.toml").write_text("x"),
    ),
    "a file of the configuration appears": (
        "configuration or state files",
        lambda site, _: (site / ".env").write_text("x"),
    ),
    "a variable of the host is set": (
        "environment variables",
        lambda _, patch: patch.setenv("STANDARDS_MCP_TOOLS__READ_ONLY", "true"),
    ),
    "a variable of a plugin is set": (
        "environment variables",
        lambda _, patch: patch.setenv("ACME_TOKEN", "secret"),
    ),
    "the home of the user is another one": (
        "environment variables",
        lambda site, patch: patch.setenv("XDG_CONFIG_HOME", str(site)),
    ),
    "another folder is on the import path": (
        "Python",
        lambda _, patch: patch.setattr(sys, "path", [*sys.path, "/elsewhere"]),
    ),
    "another Python runs": (
        "Python",
        lambda _, patch: patch.setattr(sys, "version", "3.99"),
    ),
}


@pytest.mark.parametrize(("part", "change"), CHANGES.values(), ids=CHANGES)
def test_each_change_alone_makes_a_snapshot_stale(
    site: Path, monkeypatch: pytest.MonkeyPatch, part: str, change: Change
):
    (site / "config.toml").write_text("", encoding="utf-8")
    stored(Launch(()), site / "config.toml", site / ".env", a=b"{}")
    assert Launch(()).valid_snapshot().results == {"a": b"{}"}
    change(site, monkeypatch)
    with pytest.raises(SnapshotError, match=f"since the last start, {part} changed"):
        Launch(()).valid_snapshot()


@pytest.mark.usefixtures("site")
def test_code_of_a_plain_distribution_and_other_variables_do_not_count(
    site: Path, monkeypatch: pytest.MonkeyPatch
):
    stored(Launch(()), a=b"{}")
    os.utime(site / "plain_plugin" / "code.py", ns=(1, 1))
    (site / "editable_plugin" / "__pycache__").mkdir()
    (site / "editable_plugin" / "__pycache__" / "code.pyc").write_bytes(b"x")
    monkeypatch.setenv("TERM_SESSION", "7")
    assert Launch(()).valid_snapshot().results == {"a": b"{}"}


@pytest.mark.parametrize("is_stored_before", [False, True])
def test_an_editable_plugin_whose_code_is_elsewhere_has_no_snapshot(
    site: Path, *, is_stored_before: bool
):
    if is_stored_before:
        stored(Launch(()), a=b"{}")
    (site / "editable_plugin").rename(site / "hidden_plugin")
    assert installed_packages(sys.path) is None
    if not is_stored_before:
        stored(Launch(()), a=b"{}")
    with pytest.raises(SnapshotError, match="was not found"):
        Launch(()).valid_snapshot()


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        ((), ("serve",), True),
        ((), ("-vv", "serve", "--watch"), True),
        ((), ("--help",), True),
        (("--config", "a.toml"), ("--config=a.toml", "search", "x"), True),
        ((), ("--profile", "teacher"), False),
        ((), ("--set", "tools.read_only=true"), False),
        (("--config", "a.toml"), ("--config", "b.toml"), False),
    ],
)
def test_options_that_choose_the_configuration_choose_the_snapshot(
    one: tuple[str, ...], other: tuple[str, ...], is_same: bool
):
    assert (Launch(one).snapshot_name(SALT) == Launch(other).snapshot_name(SALT)) is is_same


@pytest.mark.parametrize(
    ("arguments", "serves"),
    [
        ((), True),
        (("--profile", "teacher", "serve", "--watch"), True),
        (("serve", "--transport", "stdio"), True),
        (("serve", "--transport", "stdio", "--watch"), True),
        (("serve", "--transport", "http"), False),
        (("-", "serve"), False),
        (("serve", "--help"), False),
        (("search", "serve"), False),
        (("--version",), False),
        (("--config",), False),
    ],
)
def test_only_a_server_over_stdio_has_a_front(arguments: tuple[str, ...], serves: bool):
    assert Launch(arguments).serves_stdio is serves


def test_secrets_of_options_and_variables_are_not_in_the_files(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("ACME_TOKEN", "opensesame")
    launch = Launch(("--set", "plugins.acme.token=opensesame"))
    file = stored(launch, a=b"{}")
    assert b"opensesame" not in file.read_bytes()
    assert "opensesame" not in file.name


def damaged(data: bytes) -> dict[str, bytes]:
    _, _, rest = data.partition(b"\n")
    head, _, body = rest.partition(b"\n")
    fields = json.loads(head)

    def signed(rest: bytes) -> bytes:
        return blake2b(rest, digest_size=16).hexdigest().encode() + b"\n" + rest

    def changed(**values: object) -> bytes:
        return signed(json.dumps(fields | values).encode() + b"\n" + body)

    return {
        "empty": b"",
        "truncated": data[:-1],
        "without its body": data[: -len(body)],
        "of another format": changed(format=99),
        "no JSON": signed(b"\xff" + rest),
        "a list": signed(b"[]\n" + body),
        "with results of a wrong type": changed(results=[1]),
        "with places of a wrong type": changed(results={"a": ["x", 2]}),
        "with a fingerprint of a wrong type": changed(fingerprint="x"),
        "with files of a wrong type": changed(files=7),
        "with another result": data[:-2] + b"[]",
    }


@pytest.mark.parametrize("kind", damaged(b'x\n{"x": 1}\n{}'))
def test_a_damaged_snapshot_is_not_used(kind: str):
    file = stored(Launch(()), a=b"{}")
    file.write_bytes(damaged(file.read_bytes())[kind])
    with pytest.raises(SnapshotError, match=r"damaged|another format"):
        Launch(()).valid_snapshot()


@pytest.mark.skipif(sys.platform == "win32", reason="it has no such files")
def test_odd_files_end_no_start(site: Path):
    (site / "editable_plugin" / ".#code.py").symlink_to("nowhere")
    (site / "editable_plugin" / "loop").symlink_to(site / "editable_plugin")
    os.mkfifo(site / ".env")
    stored(Launch(()), site / ".env", a=b"{}")
    assert Launch(()).valid_snapshot().results == {"a": b"{}"}
    stored(Launch(()), Path("with\0zero"), a=b"{}")
    assert Launch(()).valid_snapshot().results == {"a": b"{}"}


def test_a_damaged_salt_is_made_anew():
    file = stored(Launch(()), a=b"{}")
    file.with_name("salt").write_bytes(b"")
    stored(Launch(()), a=b"[]")
    assert Launch(()).valid_snapshot().results == {"a": b"[]"}
    assert [each.name for each in file.parent.glob("salt*")] == ["salt"]


def test_a_snapshot_that_is_used_is_not_the_oldest():
    file = stored(Launch(()), a=b"{}")
    os.utime(file, ns=(1, 1))
    stored(Launch(()), a=b"{}")
    assert file.stat().st_mtime_ns > 1


def test_a_removed_working_folder_ends_no_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    folder = tmp_path / "gone"
    folder.mkdir()
    monkeypatch.chdir(folder)
    folder.rmdir()
    assert Launch(("serve",)).serves_stdio


@pytest.mark.skipif(sys.platform == "win32", reason="files have no modes there")
def test_a_snapshot_that_others_may_write_is_not_used():
    file = stored(Launch(()), a=b"{}")
    file.chmod(0o666)
    with pytest.raises(SnapshotError, match="another user may have written it"):
        Launch(()).valid_snapshot()


def test_a_snapshot_without_its_salt_is_not_used():
    file = stored(Launch(()), a=b"{}")
    file.with_name("salt").unlink()
    with pytest.raises(SnapshotError, match="there was no snapshot"):
        Launch(()).valid_snapshot()


def test_equal_results_are_stored_once_and_come_back():
    results = {"a": b"[1]", "b": b"[2]", "c": b"[1]"}
    snapshot = Snapshot(fingerprint={}, variables=(), files=(), results=results, note="why")
    data = snapshot.encode()
    assert data.endswith(b"\n[1][2]")
    assert decode(data).results == results
    assert decode(data).note == "why"


def test_the_folder_keeps_the_last_twenty_and_no_large_snapshot(tmp_path: Path):
    store = Store(str(tmp_path / "starts"))
    store.make_salt()
    for number in range(25):
        snapshot = Snapshot(fingerprint={}, variables=(), files=(), results={"a": b"x"})
        store.write(f"{number}.snapshot", snapshot)
        os.utime(tmp_path / "starts" / f"{number}.snapshot", ns=(number, number))
    large = Snapshot(fingerprint={}, variables=(), files=(), results={"a": b"x" * (9 << 20)})
    store.write("large.snapshot", large)
    names = {file.stem for file in (tmp_path / "starts").glob("*.snapshot")}
    assert names == {str(number) for number in range(5, 25)}


def test_only_the_snapshot_of_a_server_tells_of_the_last_start():
    stored(Launch(()), commands=b"{}")
    assert Launch(()).last_note() is None
    stored(Launch(()), **{result_key(MODERN_VERSION, DISCOVER): b"{}"})
    assert Launch(()).last_note() == ""


def test_many_starts_at_a_time_agree_on_one_salt_and_leave_a_whole_snapshot():
    def begin(_: int) -> bytes:
        launch = Launch(())
        stored(launch, a=b"x" * 100_000)
        return launch.store.salt()

    with ThreadPoolExecutor(20) as pool:
        salts = set(pool.map(begin, range(100)))
    assert len(salts) == 1
    assert Launch(()).valid_snapshot().results == {"a": b"x" * 100_000}


def test_the_state_folder_is_the_one_of_platformdirs(monkeypatch: pytest.MonkeyPatch):
    platformdirs = pytest.importorskip("platformdirs")
    for value in ("/somewhere", "", " "):
        monkeypatch.setenv("XDG_STATE_HOME", value)
        expected = platformdirs.user_state_path("standards-mcp", appauthor=False)
        assert Path(user_state_folder(os.environ)) == expected


def test_the_version_is_read_from_the_name_of_the_metadata(site: Path):
    assert installed_version("plain", [str(site)]) == "1.0"
    assert installed_version("absent", [str(site)]) == ""


def test_the_sdk_builds_its_models_at_their_first_use_and_plugins_theirs_at_once():
    code = """
from standards_mcp.server.sdk import import_sdk
import_sdk()
from mcp_types import _v2025_11_25
from pydantic import BaseModel
class Own(BaseModel):
    number: int
print(_v2025_11_25.CallToolResult.__pydantic_complete__, Own.__pydantic_complete__)
print(_v2025_11_25.CallToolResult.model_validate({"content": []}).content)
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.split("\n") == ["False True", "[]", ""]


def test_the_sdk_imports_no_server_for_http_and_plugins_may():
    code = """
import sys
from standards_mcp.server.sdk import import_sdk
import_sdk()
assert "uvicorn" not in sys.modules
import uvicorn
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_library_of_the_sdk_may_need_the_server_for_http(tmp_path: Path):
    (tmp_path / "sse_starlette.py").write_text("from uvicorn import Server as EventSourceResponse")
    code = """
import sys
from standards_mcp.server.sdk import import_sdk
import_sdk()
assert sys.modules["uvicorn"] and sys.modules["mcp.server"]
"""
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)


def test_the_first_modules_import_the_standard_library_only():
    code = "import sys, standards_mcp.start.launch; print(*sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    heavy = {
        "pydantic",
        "click",
        "pluggy",
        "importlib.metadata",
        "importlib_metadata",
        "mcp",
        "pathlib",
        "asyncio",
    }
    assert not heavy & set(ran.stdout.split())
