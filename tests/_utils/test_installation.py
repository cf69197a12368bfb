"""The commands in messages install from where the host itself came from."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from standards_mcp.commands import install_command, upgrade_command

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="paths and quotes of a shell")

EXTRAS = """
Provides-Extra: memory
Provides-Extra: redis
Requires-Dist: numpy
Requires-Dist: standards-mcp-memory; extra == 'memory'
Requires-Dist: limits[redis]<6,>=5.0; extra == 'redis'
"""

Installed = Callable[..., None]
Origin = dict[str, Any]


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Installed:
    """Return a function that installs a distribution, as far as its metadata goes."""
    (tmp_path / "site").mkdir()
    (tmp_path / "clone/plugins/memory").mkdir(parents=True)
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "standards-mcp"))
    monkeypatch.setattr(sys, "executable", "/env/bin/python")
    (tmp_path / "standards-mcp").mkdir()

    def install(origin: Origin | None, name: str = "standards-mcp") -> None:
        info = tmp_path / "site" / f"{name.replace('-', '_')}-1.dist-info"
        info.mkdir()
        text = f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n"
        (info / "METADATA").write_text(text + (EXTRAS.lstrip() if name == "standards-mcp" else ""))
        if origin:
            (info / "direct_url.json").write_text(json.dumps(origin))

    return install


def clone(tmp_path: Path, *, editable: bool = False) -> Origin:
    return {"url": (tmp_path / "clone").as_uri(), "dir_info": {"editable": editable}}


ADDRESS: Origin = {"url": "https://host/s.git", "vcs_info": {"vcs": "git", "commit_id": "1"}}
PIP = "/env/bin/python -m pip install"


@pytest.mark.parametrize("editable", [False, True])
def test_a_plugin_is_installed_from_the_clone_of_the_host(
    installed: Installed, tmp_path: Path, *, editable: bool
):
    installed(clone(tmp_path, editable=editable))
    assert install_command("standards-mcp-memory") == f"{PIP} {tmp_path}/clone/plugins/memory"


@pytest.mark.parametrize(
    ("origin", "command"),
    [
        (ADDRESS, "'standards-mcp-memory @ git+https://host/s.git#subdirectory=plugins/memory'"),
        (
            ADDRESS | {"vcs_info": {"vcs": "git", "requested_revision": "v1"}},
            "'standards-mcp-memory @ git+https://host/s.git@v1#subdirectory=plugins/memory'",
        ),
        (
            ADDRESS | {"url": "https://me:secret@host/s.git"},
            "'standards-mcp-memory @ git+https://host/s.git#subdirectory=plugins/memory'",
        ),
        (
            ADDRESS | {"url": "ssh://git@host/s.git"},
            "'standards-mcp-memory @ git+ssh://git@host/s.git#subdirectory=plugins/memory'",
        ),
        (
            {"url": "https://host/s.zip", "archive_info": {}},
            "'standards-mcp-memory @ https://host/s.zip#subdirectory=plugins/memory'",
        ),
        # A wheel has no plugins in it, and a folder may be gone since.
        ({"url": "file:///s.whl", "archive_info": {}}, "PATH_OF_A_CLONE/plugins/memory"),
        ({"url": "file:///gone", "dir_info": {}}, "PATH_OF_A_CLONE/plugins/memory"),
        # An index had it.
        (None, "standards-mcp-memory"),
    ],
)
def test_a_plugin_is_installed_from_the_address_of_the_host(
    installed: Installed, origin: Origin | None, command: str
):
    installed(origin)
    assert install_command("standards-mcp-memory") == f"{PIP} {command}"


def test_what_an_extra_needs_is_named_itself_wherever_the_host_is_from(
    installed: Installed, tmp_path: Path
):
    installed(clone(tmp_path))
    assert install_command("standards-mcp", "redis") == f"{PIP} 'limits[redis]<6,>=5.0'"
    assert install_command("onnxruntime") == f"{PIP} onnxruntime"
    assert install_command("numpy", replace=True) == f"{PIP} numpy --force-reinstall"


def test_a_tool_of_uv_is_upgraded_by_uv(installed: Installed, tmp_path: Path):
    installed(ADDRESS)
    (tmp_path / "standards-mcp/uv-receipt.toml").touch()
    assert upgrade_command() == "uv tool upgrade standards-mcp"


def test_uvx_gets_what_is_missing_for_its_next_call(
    installed: Installed, monkeypatch: pytest.MonkeyPatch
):
    installed(ADDRESS)
    monkeypatch.setattr(sys, "prefix", "/home/u/.cache/uv/archive-v0/abc")
    command = "uvx --from git+https://host/s.git --with 'limits[redis]<6,>=5.0' standards-mcp"
    assert install_command("standards-mcp", "redis") == command


def test_pipx_injects(installed: Installed, tmp_path: Path):
    installed(clone(tmp_path))
    (tmp_path / "standards-mcp/pipx_metadata.json").touch()
    command = f"pipx inject standards-mcp {tmp_path}/clone/plugins/memory"
    assert install_command("standards-mcp-memory") == command
    assert upgrade_command() == "pipx upgrade --include-injected standards-mcp"


@pytest.mark.parametrize(
    ("editable", "option"), [(False, ""), (True, "--editable ")], ids=["folder", "editable"]
)
def test_a_clone_is_brought_up_to_date_before_it_is_installed_again(
    installed: Installed, tmp_path: Path, editable: bool, option: str
):
    installed(clone(tmp_path, editable=editable))
    folder = tmp_path / "clone"
    command = f"git -C {folder} pull && {PIP} --upgrade {option}{folder}"
    assert upgrade_command() == command


def test_an_address_is_installed_again_though_its_version_has_the_same_number(
    installed: Installed,
):
    installed(ADDRESS)
    source = "'standards-mcp @ git+https://host/s.git'"
    assert upgrade_command() == f"{PIP} --upgrade {source} --force-reinstall"


def test_an_environment_without_pip_is_changed_by_uv(
    installed: Installed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    installed(clone(tmp_path))
    monkeypatch.setattr("standards_mcp._utils.installation.find_spec", lambda _: None)
    command = f"uv pip install --python /env/bin/python {tmp_path}/clone/plugins/memory"
    assert install_command("standards-mcp-memory") == command
