"""The options by which an entry narrows what its server serves, and how to repeat them."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final, TypeAlias

from standards_mcp._utils.secrets import MASK, looks_secret
from standards_mcp.config.sources import CONFIG_VARIABLE, is_given

from .files import variables_of
from .known import Client, Entry

Options: TypeAlias = tuple[tuple[str, str], ...]
"""Options with their values, in order."""

_OPTIONS: Final = ("--config", "--profile", "--set")


def options_of(line: Sequence[str]) -> Options:
    """Return the options of a command line that choose what is served, with their values."""
    found: list[tuple[str, str]] = []
    rest = iter(line)
    for word in rest:
        option, equals, value = word.partition("=")
        if option in _OPTIONS:
            found.append((option, value if equals else next(rest, "")))
    return tuple(found)


def options_in_force(client: Client, entry: Entry) -> Options:
    """Return the options of an entry; a configuration that only its variable names is one of them.

    The option wins over the variable.
    """
    options = options_of(client.command_line(entry))
    variable = str(variables_of(client, entry).get(CONFIG_VARIABLE, ""))
    if "--config" not in dict(options) and is_given(CONFIG_VARIABLE, variable):
        return (("--config", variable), *options)
    return options


def configuration_of(client: Client, entry: Entry) -> Path | None:
    """Return the configuration file that an entry names, by its option or by its variable."""
    named = dict(options_in_force(client, entry)).get("--config")
    return None if named is None else Path(os.path.expanduser(named))  # noqa: PTH111  - never raises


def lost(before: Options, after: Options) -> list[str]:
    """Return the options that are not kept, as one writes them."""
    return [_written(option, value) for option, value in before if (option, value) not in after]


def install_command(
    client: Client, name: str, options: Options, variables: Iterable[str] = ()
) -> str:
    """Return the command that writes an entry again, with every option that it has.

    Its variables need not be repeated: `install` leaves them in the entry.

    Args:
        variables: The names of variables to hand over in addition.
    """
    words = ["standards-mcp"]
    for option, value in options:
        words += [option, _shown(option, value)]
    words += ["install", client.key, "--name", name]
    words += [word for variable in variables for word in ("--env", variable)]
    return subprocess.list2cmdline(words) if os.name == "nt" else shlex.join(words)


def _written(option: str, value: str) -> str:
    return f"{option} {_shown(option, value)}"


def _shown(option: str, value: str) -> str:
    """Return a value as it may be shown: one that looks like a secret must be filled in."""
    key, equals, _ = value.partition("=")
    is_secret = option == "--set" and equals and looks_secret(key.rpartition(".")[2])
    return f"{key}={MASK}" if is_secret else value
