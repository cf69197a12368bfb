"""Problems of a configuration.

These are invalid values, valid settings that have no effect, and missing programs and folders. A
problem is one line: the source, the key, and the reason with the nearest valid name or a fix.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias, cast

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from standards_mcp._utils.installation import canonical
from standards_mcp._utils.secrets import declares_secret
from standards_mcp._utils.text import did_you_mean

from .layers import Layer, Layers, key_name, leaves, plugin_variables, variable_advice
from .models import is_table, type_of
from .models.http import Scope
from .models.settings import PluginSection, Settings
from .models.tools import Kind, first_match

_Location: TypeAlias = tuple[str | int, ...]

_MESSAGES: Final = {
    **dict.fromkeys(("dict_type", "model_type"), "input should be a table"),
    **dict.fromkeys(
        ("list_type", "tuple_type"), """input should be a list, for example '["a", "b"]'"""
    ),
    **dict.fromkeys(
        ("string_type", "secret_type"), """input should be text in quotes, for example '"abc"'"""
    ),
    **dict.fromkeys(("bool_type", "bool_parsing"), "input should be true or false"),
    **dict.fromkeys(
        ("int_type", "int_parsing", "int_from_float"), "input should be a whole number"
    ),
    **dict.fromkeys(("float_type", "float_parsing"), "input should be a number"),
    "path_type": """input should be a path in quotes, for example '"/srv/standards"'""",
}
_URL_STARTS: Final = ("https://", "http://", "${")
_LIST_COMMANDS: Final = {"distributions": "plugins list --json", "plugins": "plugins list"}


@dataclass(frozen=True, slots=True)
class Problem:
    """An invalid value of the configuration, a missing key, or a missing program or folder.

    Attributes:
        path: The tables and keys that lead to the value; for an element of a list, its index, too.
        message: The reason, with the nearest valid name.
        fix: The next step, if one is known.
        where: The source and key to show. If empty, they are looked up by `path`.
    """

    path: tuple[str | int, ...]
    message: str
    fix: str = ""
    where: str = ""

    def line(self, layers: Layers) -> str:
        """Return the problem in one line, with the source of the value and its key."""
        where = self.where or layers.where(self.path)
        return " ".join(f"{where}: {self.message}".split())


class InvalidSettingsError(Exception):
    """Settings are invalid. The error holds no values, since these may be secret."""

    def __init__(self, *problems: Problem) -> None:
        super().__init__("; ".join(problem.message for problem in problems))
        self.problems = problems


def misplaced_secret(layer: Layer, path: tuple[str, ...], variable: str | None = None) -> Problem:
    """Return a problem: the secret at *path* is in a layer that other users can read."""
    fix = variable_advice(path, variable)
    return Problem(path, f"a secret does not belong here; {fix}", fix, layer.where(path))


def find_problems(
    error: ValidationError, model: type[BaseModel], values: Any, prefix: tuple[str, ...] = ()
) -> list[Problem]:
    """Return the problems in *error*, one for each key.

    Args:
        values: The validated values.
        prefix: The tables that contain the values.
    """
    messages: dict[_Location, dict[str, None]] = {}
    missing: set[_Location] = set()
    for item in error.errors(include_url=False):
        item["loc"] = key = _key_of(item["loc"], values)
        messages.setdefault(key, {})[_message(item, model, prefix)] = None
        if item["type"] == "missing":
            missing.add(key)
    problems: list[Problem] = []
    for key, alternatives in messages.items():
        problem = Problem((*prefix, *key), " or ".join(alternatives))
        problems.append(_missing(problem, model, key) if key in missing else problem)
    return problems


def _missing(problem: Problem, model: type[BaseModel], location: _Location) -> Problem:
    """Add the fix for a missing key: the key to set or, for a secret, the variable."""
    key, keys = key_name(problem.path), tuple(map(str, location))
    if not declares_secret(model, keys):
        return replace(problem, fix=f"set {key}")
    fix = variable_advice(problem.path, plugin_variables(model).get(keys))
    return replace(problem, message=f"{problem.message}; {fix}", fix=fix, where=key)


def _key_of(location: _Location, values: Any) -> _Location:
    """Return *location* up to the plain value that it leads to.

    If several types are allowed, pydantic appends the type that it tried.
    """
    value = values
    for depth, part in enumerate(location):
        if not isinstance(value, Mapping | list):
            return location[:depth]
        try:
            value = cast("Any", value)[part]
        except (LookupError, TypeError):  # the key is missing
            return location
    return location


def _message(item: ErrorDetails, model: type[BaseModel], prefix: tuple[str, ...]) -> str:
    if item["type"] == "extra_forbidden":
        return f"unknown key{_key_hint(model, item, prefix)}"
    message = _MESSAGES.get(item["type"]) or item["msg"].removeprefix("Value error, ")
    choices = re.findall(r"'([^']+)'", str(item.get("ctx", {}).get("expected", "")))
    return f"{message[:1].lower()}{message[1:]}{did_you_mean(str(item['input']), choices)}"


def _key_hint(model: type[BaseModel], item: ErrorDetails, prefix: tuple[str, ...]) -> str:
    *table, key = item["loc"]
    kind = type_of(model, table)
    valid_keys = set(kind.model_fields) if is_table(kind) else set[str]()
    if prefix and not table:
        valid_keys |= PluginSection.model_fields.keys()
    listed = ", ".join(sorted(valid_keys)) or "none"
    return did_you_mean(str(key), valid_keys) or f"; known keys: {listed}"


class Names(NamedTuple):
    """The names that patterns can match: contributions, plugins and their distributions.

    Attributes:
        failed: The plugins that failed, so that their contributions are unknown.
    """

    contributions: Mapping[Kind, Collection[str]]
    plugins: Collection[str]
    distributions: Collection[str]
    failed: Collection[str] = ()


def no_match(pattern: str, kind: str, names: Iterable[str]) -> str:
    """Return the message that a glob matches none of the names, with the nearest name.

    Args:
        kind: The noun for the names, in the plural.
    """
    hint = did_you_mean(pattern.strip("*?"), names)
    listed = f"; see `standards-mcp {_LIST_COMMANDS.get(kind, kind.partition(',')[0])}`"
    # A warning, because the pattern may be for a plugin that is not loaded here; `strict` makes it
    # an error.
    singular = re.sub(r"s\b", "", kind)
    return f"{pattern!r} matches no {singular}{hint or listed}"


def check_settings(settings: Settings, names: Names, profiles: Iterable[str]) -> Iterator[Problem]:
    """Yield a problem for each pattern that matches nothing, and for other keys without effect.

    Args:
        profiles: The profiles whose rules are checked in addition to the general rules.
    """
    yield from _isolation_keys(settings)
    failed = ", ".join(sorted(names.failed))
    hint = f" (it may belong to a plugin that failed: {failed})" if failed else ""
    for path, patterns, kind, valid_names in _patterns(settings, names, tuple(profiles)):
        for pattern in patterns:
            if pattern != "*" and not first_match(valid_names, (pattern,)):
                is_contribution = kind not in _LIST_COMMANDS
                message = no_match(pattern, kind, valid_names)
                yield Problem(path, message + hint if is_contribution else message)


def _patterns(
    settings: Settings, names: Names, profiles: Iterable[str]
) -> Iterator[tuple[tuple[str, ...], Iterable[str], str, Collection[str]]]:
    """Yield each key with patterns: its path and patterns, and the kind and names to match."""
    distributions = set(map(canonical, names.distributions))
    yield ("trusted",), map(canonical, settings.trusted), "distributions", distributions
    for profile in profiles:
        patterns = settings.profiles[profile].plugins
        yield ("profiles", profile, "plugins"), patterns, "plugins", names.plugins
    for kind, valid_names in names.contributions.items():
        for table, rules in settings.rules(kind, profiles):
            yield (*table, "enable"), rules.enable, kind, valid_names
            yield (*table, "disable"), rules.disable, kind, valid_names
        if kind == "tools":
            yield (kind, "always_listed"), settings.tools.always_listed, kind, valid_names
        for name in getattr(getattr(settings, kind), "overrides", ()):
            yield (kind, "overrides", name), (name,), kind, valid_names
    if all_names := [name for group in names.contributions.values() for name in group]:
        for name, scope in settings.server.auth.scopes.items():
            path = ("server", "auth", "scopes", name)
            patterns = scope.names if isinstance(scope, Scope) else scope
            yield path, patterns, "tools, prompts, resources or skills", all_names


def _isolation_keys(settings: Settings) -> Iterator[Problem]:
    """Yield a problem for each setting of plugin isolation that has no effect."""
    system = {"darwin": "macOS", "win32": "Windows"}.get(sys.platform, sys.platform)
    for name, section in settings.plugins.items():
        keys = section.model_fields_set & {"env", "memory", "processes"}
        reason = "it is for a plugin in a process of its own; set isolate = true"
        if section.is_isolated:
            keys -= {"env"} if sys.platform != "linux" else keys
            reason = f"it has no effect on {system}; only Linux enforces it"
        yield from (Problem(("plugins", name, key), reason) for key in sorted(keys))


def check_secrets(models: Mapping[str, type[BaseModel]], layers: Layers) -> Iterator[Problem]:
    """Yield a problem for each plugin's secret that is set outside the environment and ``.env``.

    The secrets of isolated plugins are not checked: this process does not load their models.

    Args:
        models: The settings models of plugins, by the plugins' names.
    """
    for layer in layers.ordered:
        if layer.has_variables:
            continue
        for name, model in models.items():
            table, variables = ("plugins", name), plugin_variables(model)
            for path, value in leaves(layer.value(table, {})):
                if declares_secret(model, path, value):
                    keys = (path[:n] for n in range(len(path), 0, -1))
                    names = (variables[key] for key in keys if key in variables)
                    yield misplaced_secret(layer, (*table, *path), next(names, None))


def check_programs(settings: Settings) -> Iterator[Problem]:
    """Yield a problem for each missing program of a server and missing interpreter of a plugin.

    Disabled servers and plugins are skipped, and servers with a PATH of their own: their programs
    are looked up in that PATH when they start.
    """
    programs = [
        (("servers", name, "command"), server.command, "a program", server.cwd)
        for name, server in settings.servers.items()
        if server.enabled and server.command and "PATH" not in server.env
    ] + [
        (("plugins", name, "python"), plugin.python, "an interpreter", None)
        for name, plugin in settings.plugins.items()
        if plugin.enabled is not False and plugin.python
    ]
    for path, program, role, folder in programs:
        if reason := why_not_startable(program, None, folder, path[-1]):
            fix = f"set {key_name(path)} to the whole path of {role} that exists"
            if folder and not folder.is_dir():
                fix = f"make the folder {folder}, or correct {key_name((*path[:-1], 'cwd'))}"
            yield Problem(path, f"{program!r} cannot be started: {reason}", fix)


def check_urls_and_state_dir(settings: Settings) -> Iterator[Problem]:
    """Yield a problem for each malformed URL of an enabled server, and for a bad ``state_dir``.

    A URL may begin with a variable.
    """
    for name, server in settings.servers.items():
        if server.enabled and server.url and not server.url.startswith(_URL_STARTS):
            yield Problem(("servers", name, "url"), "input should begin with https:// or http://")
    if settings.state_dir is not None:
        yield from folder_problems(("state_dir",), settings.state_dir)


def folder_problems(path: tuple[str, ...], folder: Path) -> Iterator[Problem]:
    """Yield a problem if *folder* is not a folder, or has no parent to create it in.

    Args:
        path: The key that names the folder.
    """
    reason = ""
    if folder.exists() and not folder.is_dir():
        reason = f"{folder} is not a folder"
    elif not folder.parent.is_dir():
        reason = f"its parent folder {folder.parent} does not exist"
    if reason:
        message = f"{reason}; correct the path, or make the folder"
        yield Problem(path, message, f"set {key_name(path)}")


def why_not_startable(
    program: str, search_path: str | None, folder: Path | None = None, key: str = "command"
) -> str:
    """Return the reason why a program cannot be started, with the remedy, or an empty string.

    Args:
        search_path: The folders of programs, in the format of PATH; None for PATH of this process.
        folder: The working directory of the program; by default that of this process.
        key: The key that names the program: ``command`` with ``args``, or ``python``.
    """
    if folder and not folder.is_dir():
        return f"its cwd {folder} is not a folder; make it, or correct cwd"
    by_name = not os.path.dirname(program)  # noqa: PTH120  - `Path` drops the dot of ./server
    file = (folder or Path.cwd()) / program
    if shutil.which(program if by_name else str(file), path=search_path):
        return ""
    first, _, rest = program.partition(" ")
    if rest and shutil.which(first, path=search_path):
        rest_advice = "put the other words into the list args"
        if key != "command":
            rest_advice = "leave out the other words"
        return f"no program has this name; set {key} to {first!r}, and {rest_advice}"
    if by_name:
        searched = os.environ.get("PATH", os.defpath) if search_path is None else search_path
        return (
            f"no such program is on PATH, which is {searched} here and may differ if a desktop "
            "client starts the host; give its whole path, or install it"
        )
    if file.exists():
        advice = "set command to its interpreter and add the file to args"
        if key != "command":
            advice = f"set {key} to an interpreter"
        return f"{file} is not executable; make it executable, or {advice}"
    missing = f"it is not in {file.parent}; give its whole path"
    return "the file does not exist; correct its path" if file == Path(program) else missing
