from __future__ import annotations

import inspect

import pytest

import standards_mcp
from standards_mcp import (
    ApiError,
    InvalidInputError,
    NotFoundError,
    TimedOutError,
    ToolError,
    commands,
)

EXPORTED = [
    *("ApiError", "ApiKey", "CallContext", "CannotAskError", "Completer", "ConfigError"),
    *("Filter", "FilterError", "FilterExpression", "Health", "InvalidInputError", "Message"),
    *("NotFoundError", "Plugin", "PluginConflictError", "PluginContext"),
    *("PluginDeprecationWarning", "PluginError", "PluginSettings", "Prompt", "Resource"),
    *(
        "Route",
        "Service",
        "ServiceError",
        "ServiceUrl",
        "Skill",
        "StandardsMcpError",
        "TimedOutError",
    ),
    *("Tool", "ToolCall", "ToolCaller", "ToolError", "ToolHandler", "ToolResult", "Variable"),
    *("hookimpl", "is_loopback", "is_unencrypted", "may_use_proxy", "prompt", "resource"),
    *("skill", "tool"),
]
FOR_COMMANDS = [
    *("Finding", "Level", "Look", "MASK", "Report", "ServerCommand", "ServerCommands", "ask"),
    *("ask_tool", "counted", "did_you_mean", "divert_stdout", "examples", "host_source"),
    *("install_command", "json_option", "looks_secret", "offer", "print_json", "print_table"),
    *(
        "print_text",
        "printable",
        "progress_bar",
        "progress_lines",
        "reports",
        "table",
        "upgrade_command",
    ),
]


def test_the_public_names_are_exactly_these():
    assert sorted(standards_mcp.__all__) == EXPORTED


def test_the_public_names_for_commands_are_exactly_these():
    assert sorted(commands.__all__) == FOR_COMMANDS
    assert [name for name in FOR_COMMANDS if not hasattr(commands, name)] == []


def test_a_name_that_does_not_exist_is_an_import_error():
    with pytest.raises(ImportError, match="cannot import name 'Plugins' from 'standards_mcp'"):
        from standards_mcp import Plugins  # noqa: F401


def test_every_public_name_exists_and_every_class_says_what_it_is():
    values = [getattr(standards_mcp, name) for name in EXPORTED]
    assert [value for value in values if inspect.isclass(value) and not value.__doc__] == []


@pytest.mark.parametrize(
    ("error", "error_type"),
    [
        (ToolError, "tool_error"),
        (InvalidInputError, "invalid_input"),
        (NotFoundError, "not_found"),
        (ApiError, "api_error"),
        (TimedOutError, "timeout"),
    ],
)
def test_tool_errors_carry_the_type_that_clients_read(error: type[ToolError], error_type: str):
    assert error.error_type == error_type
