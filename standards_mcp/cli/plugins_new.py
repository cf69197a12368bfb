"""``standards-mcp plugins new``."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path
from typing import Final, get_args

import click
import importlib_metadata

from standards_mcp.discovery import DISTRIBUTION, PLUGIN_NAME, installed_plugins
from standards_mcp.scaffold import (
    MAX_NAME,
    Kind,
    distribution_of,
    package_of,
    render_plugin,
    write_project,
)

from . import COMMANDS
from .output import examples

_KINDS: Final = get_args(Kind)


@click.command(epilog=examples("plugins new acme", "plugins new acme --kind prompts --into .."))
@click.argument("name")
@click.option(
    "--kind",
    type=click.Choice(_KINDS),
    default=_KINDS[0],
    help="What it adds at first: tools, filters, prompts or resources.",
)
@click.option(
    "--into",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    default=Path(),
    metavar="DIR",
    help="Where its folder is made, in place of the working directory.",
)
def new(name: str, *, kind: Kind, into: Path) -> None:
    """Begin the plugin NAME: a project that installs, with tests that pass.

    NAME is lower_snake_case, such as acme. The folder is standards-mcp-NAME.
    """
    _check_name(name)
    folder = into / distribution_of(name)
    version = importlib_metadata.version(DISTRIBUTION)
    write_project(folder, render_plugin(name, kind, version))
    click.echo(f"Wrote {folder}. Its README.md says how to install, test and use it.")


def _check_name(name: str) -> None:
    """See that a plugin can have this name.

    Raises:
        click.BadParameter: It cannot.
    """
    if not PLUGIN_NAME.fullmatch(name) or len(name) > MAX_NAME:
        allowed = f"use lower_snake_case, at most {MAX_NAME} characters"
        raise _bad(f"{name!r} cannot be the name of a plugin; {allowed}{_suggestion(name)}")
    taken = {record.name: record.distribution for record in installed_plugins()}
    if name in taken:
        raise _bad(f"{name!r} is a plugin of {taken[name]}, which is installed; choose another")
    if name in COMMANDS:
        raise _bad(f"`standards-mcp {name}` is a command; choose another name")
    if find_spec(package_of(name)):
        raise _bad(f"the package {package_of(name)} is installed already; choose another name")


def _suggestion(name: str) -> str:
    words = re.findall(r"[a-z0-9]+", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower())
    proposed = "_".join(words).lstrip("0123456789_")[:MAX_NAME].rstrip("_")
    return f", such as {proposed!r}" if PLUGIN_NAME.fullmatch(proposed) else ""


def _bad(message: str) -> click.BadParameter:
    return click.BadParameter(message, param_hint="NAME")
