"""The host's exception hierarchy.

* StandardsMcpError
  x ConfigError
  x PluginError
    + PluginConflictError
    + FilterFailedError
  x ToolError
    + InvalidInputError
    + NotFoundError
    + ApiError
    + CannotAskError
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


class StandardsMcpError(Exception):
    """Base class of every error that the host reports without a traceback."""


class ConfigError(StandardsMcpError):
    """The configuration names something unknown or has an invalid value."""


class PluginError(StandardsMcpError):
    """A plugin could not be loaded, configured, registered or started.

    Attributes:
        plugin: The plugin's name.
        reason: What is wrong, in one line.
    """

    def __init__(self, plugin: str, reason: str) -> None:
        super().__init__(f"plugin {plugin!r} failed: {reason}")
        self.plugin = plugin
        self.reason = reason


class PluginConflictError(PluginError):
    """Two plugins claim the same name."""


class FilterFailedError(PluginError):
    """A plugin's filter crashed during a call of some tool, which is not to blame."""


class ToolError(StandardsMcpError):
    """A tool cannot do what it was asked; the message, for the model, says what to do next.

    Raise it, or one of its subclasses, from a tool's function. Any other exception counts as a
    crash: its text stays in the log, and the client gets an id to look it up by.
    """

    error_type = "tool_error"


class InvalidInputError(ToolError):
    """An argument has a value that the tool cannot work with."""

    error_type = "invalid_input"


class NotFoundError(ToolError):
    """What the arguments name does not exist."""

    error_type = "not_found"


class ApiError(ToolError):
    """A service or a store that the tool depends on failed."""

    error_type = "api_error"


class CannotAskError(ToolError):
    """The client cannot ask its user what a tool wants to know."""

    error_type = "cannot_ask"

    def __init__(self, question: str) -> None:
        super().__init__(
            f"This client cannot ask its user. Ask in the conversation: {question!r}, and call "
            "again with the answer among the arguments."
        )


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return ``; did you mean 'x'?`` for the known name most like *name*, or an empty string."""
    found = nearest(name, known)
    return f"; did you mean {found!r}?" if found else ""


def nearest(name: str, known: Iterable[str]) -> str:
    """Return the known name most like *name*, or an empty string."""
    lowered = {item.lower(): item for item in known}
    close = get_close_matches(name.lower(), lowered, n=1, cutoff=0.6)
    return lowered[close[0]] if close else ""


def describe_exception(exc: BaseException) -> str:
    """Return an exception as one line."""
    try:
        text = " ".join(str(exc).split())
    except Exception:  # noqa: BLE001  - an exception that cannot describe itself
        text = ""
    return f"{type(exc).__name__}: {text}" if text else type(exc).__name__
