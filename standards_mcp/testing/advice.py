"""Lint rules for the declarations of a plugin."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from difflib import get_close_matches
from typing import Any, Final, TypeAlias

from standards_mcp._utils.secrets import declared_secrets, looks_secret
from standards_mcp._utils.text import describe_exception
from standards_mcp.config.layers import plugin_variables
from standards_mcp.contributions.base import Contribution
from standards_mcp.contributions.prompts import RegisteredPrompt, read_prompt
from standards_mcp.contributions.resources import (
    VIEW_TYPE,
    Contents,
    RegisteredResource,
    read_resource,
)
from standards_mcp.contributions.skills import RegisteredSkill, read_skill
from standards_mcp.contributions.tools import RegisteredTool, filter_error, read_tool
from standards_mcp.decorators import declarations, declared, undecorated
from standards_mcp.errors import PluginError
from standards_mcp.plugin import Filter, Plugin, PluginSettings, Prompt, Resource, Skill, Tool

_MAX_NAME: Final = 50
_MIN_DESCRIPTION: Final = 20
_MAX_DESCRIPTION: Final = 1024
_HOST_TOOLS: Final = ("find_relevant_standards", "get_standard_details")
_MISSPELLING_CUTOFF: Final = 0.85
"""The least similarity of a misspelt name to the right one; other names are less similar."""
_LOADED: Final = re.compile(
    r"""(?i)(?:(?:\bsrc\s*=|<link\b[^>]*\bhref\s*=|url\()\s*["']?"""
    r"""|\bimport\b[^"'\n]*["']|\bfetch\(\s*["'`])((?:https?|wss?)://[^/"'`\s)<>]+)"""
)
"""An address from which a page loads something, up to its path."""
_Kind: TypeAlias = type[Tool] | type[Prompt] | type[Resource] | type[Skill]
_Read: TypeAlias = Callable[[str, object], Contribution]
_HOOKS: Final[dict[str, tuple[_Kind, _Read]]] = {
    "register_tools": (Tool, read_tool),
    "register_prompts": (Prompt, read_prompt),
    "register_resources": (Resource, read_resource),
    "register_skills": (Skill, read_skill),
}
_FILTERS: Final = "register_filters"


def declaration_faults(
    plugin: Plugin[Any], name: str, destructive: Collection[str]
) -> Iterator[str]:
    """Yield all faults in the declarations of a plugin."""
    results = {hook: _call_hook(plugin, hook) for hook in (*_HOOKS, _FILTERS, "register_commands")}
    yield from _lost_contributions(plugin, results)
    for hook, (kind, read) in _HOOKS.items():
        returned = (each for item in _items(results[hook]) for each in declared(item, kind))
        for item in (*declarations(plugin, kind), *returned):
            try:
                registered = read(name, item)
            except PluginError as exc:
                yield exc.reason
            else:
                yield from _advice(registered, destructive)
    for item in _items(results[_FILTERS]):
        if error := filter_error(item):
            yield error
        elif isinstance(item, Filter):
            yield from _description_advice(f"filter {item.name!r}", item.description)


def _lost_contributions(plugin: Plugin[Any], results: dict[str, object]) -> Iterator[str]:
    wrapper = _call_hook(plugin, "wrap_tool_call", None)
    # The host accepts None, but a hook without a result is probably a mistake.
    for hook, result in {**results, "wrap_tool_call": wrapper}.items():
        if result is None:
            yield f"its {hook} returns nothing; is a `return` missing?"
    for method in undecorated(plugin):
        yield (
            f"its method {method!r} overrides a declared one and is not decorated, so it is not "
            f"served; decorate it, or write {method} = None"
        )


def needs_faults(
    items: Iterable[RegisteredPrompt | RegisteredResource | RegisteredSkill],
    tools: Collection[str],
) -> Iterator[str]:
    """Yield a fault for each tool name in a prompt, a view or a skill that seems to be misspelt.

    An unknown name without a similar one is accepted: its tool may belong to another plugin.

    Args:
        tools: The declared names of the available tools.
    """
    known_tools = {*tools, *_HOST_TOOLS}
    for item in items:
        if isinstance(item, RegisteredSkill):
            names = item.needs
        elif isinstance(item, RegisteredResource):
            names = item.resource.view_of
        else:
            names = (*item.prompt.needs, *item.prompt.uses)
        for name in names:
            close = get_close_matches(name, known_tools, n=1, cutoff=_MISSPELLING_CUTOFF)
            if close and name not in known_tools:
                yield (
                    f"{item.kind} {item.declared!r}: no tool here is called {name!r}; did you mean "
                    f"{close[0]!r}? If not, pass the plugin that has it: beside={{...}}"
                )


def view_faults(subject: str, page: Contents) -> Iterator[str]:
    """Yield a fault for each address that a view loads from and that clients would block."""
    if page.mime_type != VIEW_TYPE or not isinstance(page.data, str):
        return
    allowed = page.item_meta.get("ui", {}).get("csp", {}).values()
    for origin in dict.fromkeys(_LOADED.findall(page.data)):
        if not any(origin in origins for origins in allowed):
            yield (
                f"{subject}: clients block what its page loads from {origin}; put it into the page,"
                " or name the address in the csp of its meta"
            )


def settings_faults(model: object) -> Iterator[str]:
    """Yield the faults of a plugin's settings model; the host itself reports any other class."""
    if not isinstance(model, type) or not issubclass(model, PluginSettings):
        return
    try:
        described = model.model_json_schema().get("properties", {})
    except Exception as exc:  # noqa: BLE001  - whatever a field's type raises
        yield f"its settings cannot be described as JSON Schema: {describe_exception(exc)}"
        return
    variables = plugin_variables(model)
    for name, field in model.model_fields.items():
        if not described.get(field.alias or name, {}).get("description"):
            yield (
                f"its setting {name!r} is not described; add it under 'Attributes:' in the "
                f"docstring of {model.__name__}"
            )
        is_text = bool(re.search(r"\bstr\b", str(field.annotation)))
        is_secret = looks_secret(name) or looks_secret(variables.get((field.alias or name,), ""))
        if is_text and is_secret and not declared_secrets(field.annotation, "probe"):
            yield f"its setting {name!r} looks like a secret; declare it as pydantic.SecretStr"


def _call_hook(plugin: Plugin[Any], hook: str, *arguments: object) -> object:
    """Return the result of a hook; () if the hook is missing or fails (the host reports that)."""
    with suppress(Exception):
        if hasattr(plugin, hook):
            return getattr(plugin, hook)(*arguments)
    return ()


def _items(result: Any) -> Iterator[object]:
    """Yield the items that a hook returned, up to the first failure."""
    with suppress(Exception):
        yield from result


def _advice(item: Contribution, destructive: Collection[str]) -> Iterator[str]:
    subject = f"{item.kind} {item.declared!r}"
    if len(item.portable) > _MAX_NAME:
        yield (
            f"{subject}: its name has {len(item.portable)} characters; use {_MAX_NAME} at most, "
            "since clients add the server's name and allow 64"
        )
    yield from _description_advice(subject, item.description)
    if isinstance(item, RegisteredTool | RegisteredPrompt):
        for name, schema in item.arguments.schema["properties"].items():
            if not str(schema.get("description", "")).strip():
                yield (
                    f"{subject}: its argument {name!r} is not described; annotate it with "
                    "Annotated[..., Field(description=...)]"
                )
    if isinstance(item, RegisteredTool):
        yield from _flag_advice(subject, item.tool, destructive)


def _description_advice(subject: str, description: str) -> Iterator[str]:
    if not _MIN_DESCRIPTION <= len(description) <= _MAX_DESCRIPTION:
        yield (
            f"{subject}: its description has {len(description)} characters; describe its effect "
            f"and its use in {_MIN_DESCRIPTION} to {_MAX_DESCRIPTION}"
        )


def _flag_advice(subject: str, tool: Tool, destructive: Collection[str]) -> Iterator[str]:
    if tool.destructive and not tool.read_only and tool.name not in destructive:
        yield (
            f"{subject}: without a flag, clients assume that it may delete or overwrite, and may "
            "ask their user before each call. Give it read_only=True if it changes nothing, "
            "destructive=False if it only adds; or allow it here: "
            f"Allowed(destructive=({tool.name!r},))"
        )
