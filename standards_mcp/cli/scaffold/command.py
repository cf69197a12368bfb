"""``standards-mcp plugins new``."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path
from typing import Final, get_args

import click
import importlib_metadata

from standards_mcp._utils.installation import HOST, host_source, own_plugins
from standards_mcp.cli import COMMANDS
from standards_mcp.commands import examples, print_text
from standards_mcp.loading.discovery import PLUGIN_NAME, installed_plugins

from .render import MAX_NAME, Kind, distribution_of, package_of, render_plugin, write_project

_KINDS: Final = get_args(Kind)
_OWN_PREFIX: Final = re.compile(r"standards_mcp(_|$)")


@click.command(epilog=examples("plugins new acme", "plugins new acme --kind prompts --into .."))
@click.argument("name")
@click.option(
    "--kind",
    type=click.Choice(_KINDS),
    default=_KINDS[0],
    help="What it adds at first: tools, filters, prompts, resources or routes.",
)
@click.option(
    "--into",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    default=Path(),
    metavar="DIR",
    help="Where its folder is made, in place of the working directory.",
)
def new(name: str, *, kind: Kind, into: Path) -> None:
    """Create the plugin NAME: a project that installs, with tests that pass.

    NAME is lower_snake_case, such as acme. The folder is standards-mcp-NAME.
    """
    _check_name(name)
    folder = into / distribution_of(name)
    version = importlib_metadata.version(HOST)
    write_project(folder, render_plugin(name, kind, version, host_source()))
    print_text(f"Wrote {folder}. Its README.md says how to install, test and use it.")


def _check_name(name: str) -> None:
    if not PLUGIN_NAME.fullmatch(name) or len(name) > MAX_NAME:
        allowed = f"use lower_snake_case, at most {MAX_NAME} characters"
        raise _bad(f"{name!r} cannot be the name of a plugin; {allowed}{_suggestion(name)}")
    if _OWN_PREFIX.match(name):
        raise _bad(f"standards_mcp is put before each name; leave it out{_suggestion(name)}")
    if why := _taken(name):
        raise _bad(f"{why}; choose another name")


def _taken(name: str) -> str:
    """Return whose name it is already, or an empty string."""
    plugins = {info.name: info.distribution for info in installed_plugins()}
    if name in plugins:
        return f"{name!r} is a plugin of {plugins[name]}, which is installed"
    if name in COMMANDS:
        return f"`standards-mcp {name}` is a command"
    if name == "plugin":
        return "its settings would be called PluginSettings, as a class of the host is"
    if name in own_plugins():
        return f"{distribution_of(name)} is a plugin of standards-mcp itself"
    if find_spec(package_of(name)):
        return f"the package {package_of(name)} is installed already"
    return ""


def _suggestion(name: str) -> str:
    words = re.findall(r"[a-z0-9]+", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower())
    proposed = _OWN_PREFIX.sub("", "_".join(words)).lstrip("0123456789_")[:MAX_NAME].rstrip("_")
    return f", such as {proposed!r}" if PLUGIN_NAME.fullmatch(proposed) else ""


def _bad(message: str) -> click.BadParameter:
    return click.BadParameter(message, param_hint="NAME")
