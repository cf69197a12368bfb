"""Compute the shell commands that add packages to this installation, or upgrade it.

The project's distributions are on no package index, so a plain name would fetch nothing, or a
stranger's package. The file ``direct_url.json`` (PEP 610) has the source of the host.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Sequence
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit
from urllib.request import url2pathname

from standards_mcp._utils.entry_points import own_entry_points

if TYPE_CHECKING:
    from packaging.requirements import Requirement

HOST: Final = "standards-mcp"
UNKNOWN_CLONE: Final = "PATH_OF_A_CLONE"
"""The placeholder for the folder of the source, if it is unknown."""


def install_command(distribution: str, extra: str = "", *, replace: bool = False) -> str:
    """Return the shell command that adds a distribution, or the requirements of its extra.

    Args:
        distribution: A plugin of this project, or any distribution on an index.
        extra: An extra of *distribution*; the distribution must be installed already.
        replace: True to repair a damaged installation.
    """
    command = _add_command(_needed_by(distribution, extra) if extra else [_source(distribution)])
    if not replace:
        return command
    return f"{command} {'--force' if _is_pipx() else '--force-reinstall'}"


def missing_service() -> str:
    """Return the reason why something cannot be done that only the service can do."""
    package = f"{HOST}-service"
    return f"{package} is not installed; run `{install_command(package)}`"


def upgrade_command(distribution: str = HOST) -> str:
    """Return the shell command that installs the newest version of a distribution."""
    if Path(sys.prefix, "uv-receipt.toml").is_file():
        return f"uv tool upgrade {HOST}"
    if _is_pipx():
        return _shell("pipx", "upgrade", "--include-injected", Path(sys.prefix).name)
    origin, source = _origin(distribution), _source(distribution)
    is_editable = origin.get("dir_info", {}).get("editable")
    pip = _shell(*_pip(), "--upgrade", *(("--editable",) if is_editable else ()), source)
    if "dir_info" in origin:
        return f"{_shell('git', '-C', source, 'pull')} && {pip}"
    # pip skips a version with the same number, even if its source has changed.
    return f"{pip} --force-reinstall" if origin else pip


def host_source() -> str:
    """Return the requirement for the host itself: a path, a URL or its name."""
    origin = _origin(HOST)
    return _address(origin) if origin else HOST


def _add_command(requirements: Sequence[str]) -> str:
    if "archive-v0" in Path(sys.prefix).parts:  # the environment of uvx
        added = [part for requirement in requirements for part in ("--with", requirement)]
        return _shell("uvx", "--from", host_source(), *added, HOST)
    if _is_pipx():
        return _shell("pipx", "inject", Path(sys.prefix).name, *requirements)
    return _shell(*_pip(), *requirements)


def _pip() -> tuple[str, ...]:
    if find_spec("pip"):
        return (sys.executable, "-m", "pip", "install")
    return ("uv", "pip", "install", "--python", sys.executable)  # uv leaves pip out


def _is_pipx() -> bool:
    return Path(sys.prefix, "pipx_metadata.json").is_file()


def _source(distribution: str) -> str:
    """Return the requirement of a distribution, from its own source or the host's."""
    if origin := _origin(distribution):
        address = _address(origin)
        folder = f"#subdirectory={origin['subdirectory']}" if "subdirectory" in origin else ""
        return address if "dir_info" in origin else f"{distribution} @ {address}{folder}"
    folder, origin = distribution.removeprefix(f"{HOST}-"), _origin(HOST)
    if folder not in own_plugins() or not origin:
        return distribution
    address = _address(origin)
    if "vcs_info" in origin or address.endswith((".zip", ".tar.gz")):
        return f"{distribution} @ {address}#subdirectory=plugins/{folder}"
    clone = address if "dir_info" in origin and Path(address).is_dir() else UNKNOWN_CLONE
    return str(Path(clone, "plugins", folder))


def own_plugins() -> set[str]:
    """Return the names of this project's plugins, and `service` if the service is missing."""
    names = (canonical(requirement.name) for requirement in _requirements_of(HOST))
    own = {name.removeprefix(f"{HOST}-") for name in names if name.startswith(f"{HOST}-")}
    return own - {"service"} if own_entry_points("standards_mcp.transports") else own


def canonical(distribution: str) -> str:
    """Return a name that is equal for all spellings of a distribution's name (PEP 503)."""
    return re.sub(r"[-_.]+", "-", distribution).lower()


def _requirements_of(distribution: str) -> list[Requirement]:
    from packaging.requirements import Requirement  # noqa: PLC0415  - costs start-up time

    return [Requirement(text) for text in metadata.requires(distribution) or ()]


def _needed_by(distribution: str, extra: str) -> list[str]:
    """Return the requirements that an extra adds; they are on an index, unlike the host itself."""
    needed: list[str] = []
    for requirement in _requirements_of(distribution):
        marker, requirement.marker = requirement.marker, None
        if marker and marker.evaluate({"extra": extra}) and not marker.evaluate({"extra": ""}):
            needed.append(str(requirement))
    # If the metadata has no such extra, the installer must find the extra at the source.
    name, at, address = _source(distribution).partition(" @ ")
    return needed or [f"{name}[{extra}]{at}{address}"]


def _origin(distribution: str) -> dict[str, Any]:
    """Return the installer's note about the source of a distribution; empty for an index."""
    try:
        text = metadata.distribution(distribution).read_text("direct_url.json")
    except metadata.PackageNotFoundError:
        return {}
    return dict(json.loads(text)) if text else {}


def _address(origin: dict[str, Any]) -> str:
    url = _without_secret(str(origin["url"]))
    if repository := origin.get("vcs_info"):
        revision = repository.get("requested_revision")
        return f"{repository['vcs']}+{url}" + (f"@{revision}" if revision else "")
    return url2pathname(urlsplit(url).path) if "dir_info" in origin else url


def _without_secret(url: str) -> str:
    """Remove the token or the password from a URL; ``git`` in ``git@host`` is not a secret."""
    parts = urlsplit(url)
    if not parts.scheme.startswith("http") or "@" not in parts.netloc:
        return url
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()


def _shell(*command: str) -> str:
    return subprocess.list2cmdline(command) if os.name == "nt" else shlex.join(command)
