"""Every error of the host, in one tree.

* StandardsMcpError
  x ConfigError
  x ClientFileError
  x UnknownToolError
  x NotServedError
  x PluginError
    + PluginConflictError
    + FilterFailedError
  x ToolError
    + InvalidInputError
    + NotFoundError
    + ApiError
    + CannotAskError
    + RateLimitedError
    + TimedOutError
    + CrashedError
    + ThreadsStuckError
* PluginDeprecationWarning
"""

from __future__ import annotations


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


class ClientFileError(StandardsMcpError):
    """A client's configuration file cannot be edited; it has been left as it was."""


class NotServedError(StandardsMcpError):
    """No prompt or resource of this name is served."""


class UnknownToolError(StandardsMcpError):
    """No plugin declares a tool of this name."""


class RateLimitedError(ToolError):
    """The tool was called too often."""

    error_type = "rate_limited"


class TimedOutError(ToolError):
    """There was no answer within the deadline."""

    error_type = "timeout"


class CrashedError(ToolError):
    """What was called raised something that it should not; the log has it under an id."""

    error_type = "internal_error"


class ThreadsStuckError(ToolError):
    """Every thread that a plugin may have is held by a call that nobody waits for any more."""

    error_type = "internal_error"


class PluginDeprecationWarning(DeprecationWarning):
    """A part of the plugin API that goes away with a coming release; says what to use instead."""
