"""Compute the shell commands that add to this installation, or upgrade it.

The project's distributions are on no package index, so a plain name would fetch nothing, or what a
stranger registered. Where the host came from is in ``direct_url.json`` (PEP 610).
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit
from urllib.request import url2pathname

import importlib_metadata
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

HOST: Final = "standards-mcp"
UNKNOWN_CLONE: Final = "PATH_OF_A_CLONE"
"""Stands for the folder of the source, if nothing says where that is."""


def install_command(distribution: str, extra: str = "", *, replace: bool = False) -> str:
    """Return the shell command that adds a distribution, or what an extra of it needs.

    Args:
        distribution: A plugin of this project, or any distribution that an index has.
        extra: An extra of *distribution*, which is installed.
        replace: True to install it again if it is damaged.
    """
    command = _adding(_needed_by(distribution, extra) if extra else [_source(distribution)])
    if not replace:
        return command
    return f"{command} {'--force' if _is_pipx() else '--force-reinstall'}"


def upgrade_command(distribution: str = HOST) -> str:
    """Return the shell command that installs the newest version of a distribution."""
    if _is_uv_tool():
        return f"uv tool upgrade {HOST}"
    if _is_pipx():
        return _shell("pipx", "upgrade", "--include-injected", Path(sys.prefix).name)
    origin, source = _origin(distribution), _source(distribution)
    pip = _shell(*_pip(), "--upgrade", *_editable(distribution, source))
    if "dir_info" in origin:
        return f"{_shell('git', '-C', source, 'pull')} && {pip}"
    # pip leaves a version alone that has the same number, though its source has changed.
    return f"{pip} --force-reinstall" if origin else pip


def host_source() -> str:
    """Return what an installer takes to install the host again: a path, an address or its name."""
    origin = _origin(HOST)
    return _address(origin) if origin else HOST


def _adding(requirements: Sequence[str]) -> str:
    added = [part for each in requirements for part in ("--with", each)]
    if "archive-v0" in Path(sys.prefix).parts:  # what uvx runs from
        return _shell("uvx", "--from", host_source(), *added, HOST)
    if _is_uv_tool():
        # It installs what it is given and removes the rest, so what was added before is repeated.
        host = _editable(HOST, host_source())
        return _shell("uv", "tool", "install", *host, *_added_before(), *added)
    if _is_pipx():
        return _shell("pipx", "inject", Path(sys.prefix).name, *requirements)
    return _shell(*_pip(), *requirements)


def _pip() -> tuple[str, ...]:
    if find_spec("pip"):
        return (sys.executable, "-m", "pip", "install")
    return ("uv", "pip", "install", "--python", sys.executable)  # uv leaves pip out


def _is_uv_tool() -> bool:
    return Path(sys.prefix, "uv-receipt.toml").is_file()


def _is_pipx() -> bool:
    return Path(sys.prefix, "pipx_metadata.json").is_file()


def _added_before() -> Iterator[str]:
    """Yield the options for what `uv tool install` was given beside the host."""
    receipt = tomllib.loads(Path(sys.prefix, "uv-receipt.toml").read_text("utf-8"))
    for each in receipt.get("tool", {}).get("requirements", ()):
        name: str = each["name"]
        if canonicalize_name(name) == HOST:
            continue
        if not _origin(name):
            extras = f"[{','.join(each['extras'])}]" if "extras" in each else ""
            yield from ("--with", f"{name}{extras}{each.get('specifier', '')}")
        else:
            yield "--with-editable" if _is_editable(name) else "--with"
            yield _source(name)


def _source(distribution: str) -> str:
    """Return the requirement of a distribution by where it, or else the host, came from."""
    if origin := _origin(distribution):
        address = _address(origin)
        folder = f"#subdirectory={origin['subdirectory']}" if "subdirectory" in origin else ""
        return address if "dir_info" in origin else f"{distribution} @ {address}{folder}"
    folder = distribution.removeprefix(f"{HOST}-")
    if folder not in own_plugins():
        return distribution
    origin = _origin(HOST)
    if not origin:
        return distribution
    address = _address(origin)
    if "vcs_info" in origin or address.endswith((".zip", ".tar.gz")):
        return f"{distribution} @ {address}#subdirectory=plugins/{folder}"
    clone = address if "dir_info" in origin and Path(address).is_dir() else UNKNOWN_CLONE
    return str(Path(clone, "plugins", folder))


def own_plugins() -> frozenset[str]:
    """Return the plugins that are distributions of this project, which are extras of the host."""
    required = map(Requirement, importlib_metadata.requires(HOST) or ())
    names = (canonicalize_name(each.name) for each in required)
    return frozenset(name.removeprefix(f"{HOST}-") for name in names if name.startswith(f"{HOST}-"))


def _needed_by(distribution: str, extra: str) -> list[str]:
    """Return the requirements that an extra adds. An index has them, wherever the host is from."""
    found: list[str] = []
    for each in map(Requirement, importlib_metadata.requires(distribution) or ()):
        marker, each.marker = each.marker, None
        if marker and marker.evaluate({"extra": extra}) and not marker.evaluate({"extra": ""}):
            found.append(str(each))
    # Without metadata about the extra, the installer has to find it at the source.
    name, at, address = _source(distribution).partition(" @ ")
    return found or [f"{name}[{extra}]{at}{address}"]


def _origin(distribution: str) -> dict[str, Any]:
    """Return what an installer noted of where a distribution came from; nothing for an index."""
    try:
        told = importlib_metadata.distribution(distribution).read_text("direct_url.json")
    except importlib_metadata.PackageNotFoundError:
        return {}
    return dict(json.loads(told)) if told else {}


def _address(origin: dict[str, Any]) -> str:
    url = _without_secret(str(origin["url"]))
    if repository := origin.get("vcs_info"):
        revision = repository.get("requested_revision")
        return f"{repository['vcs']}+{url}" + (f"@{revision}" if revision else "")
    return url2pathname(urlsplit(url).path) if "dir_info" in origin else url


def _without_secret(url: str) -> str:
    """Drop the token or the password of a web address; the ``git`` of ``git@host`` is neither."""
    parts = urlsplit(url)
    if not parts.scheme.startswith("http") or "@" not in parts.netloc:
        return url
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()


def _is_editable(distribution: str) -> bool:
    return bool(_origin(distribution).get("dir_info", {}).get("editable"))


def _editable(distribution: str, source: str) -> tuple[str, ...]:
    return ("--editable", source) if _is_editable(distribution) else (source,)


def _shell(*command: str) -> str:
    return subprocess.list2cmdline(command) if os.name == "nt" else shlex.join(command)
