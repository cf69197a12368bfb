from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_type_hints

import pytest

import standards_mcp
from standards_mcp import hookspecs

PACKAGE = Path(standards_mcp.__file__).parent
PLUGINS = PACKAGE.parent / "plugins"
CALLERS = (
    PACKAGE,
    PLUGINS / "backup" / "standards_mcp_backup",
    PLUGINS / "service" / "standards_mcp_service",
)
"""The host, and the packages of its wheel that call a hook."""
HOOKS: dict[str, Callable[..., Any]] = {
    name: value
    for name, value in vars(hookspecs).items()
    if hasattr(value, f"{hookspecs.PROJECT}_spec")
}
pytestmark = pytest.mark.parametrize("name", HOOKS)


def test_a_hook_is_annotated_throughout(name: str):
    hints = get_type_hints(HOOKS[name])
    assert hints.keys() == {*inspect.signature(HOOKS[name]).parameters, "return"}


def test_a_hook_says_what_it_is_for(name: str):
    assert (inspect.getdoc(HOOKS[name]) or "").startswith("Return ")


def test_a_hook_is_called_by_the_host(name: str):
    calls = re.compile(rf'(call|each|_read|_returned)\((\w+(\.\w+)*, )+"{name}"[,)]')
    modules = [path for package in CALLERS for path in package.rglob("*.py")]
    assert any(calls.search(path.read_text("utf-8")) for path in modules)
