"""The errors of the host; `StandardsMcpError` is the base class of all."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, TypeAlias, get_args

Ability: TypeAlias = Literal["elicitation", "sampling", "roots"]
"""A kind of request to a client, named like the capability that the client declares for it."""

ABILITIES: Final[tuple[Ability, ...]] = get_args(Ability)


class StandardsMcpError(Exception):
    """Base class of every error that the host reports without a traceback."""


class ConfigError(StandardsMcpError):
    """The configuration names something unknown or has an invalid value."""


class PluginError(StandardsMcpError):
    """A plugin could not be loaded, configured, registered or started.

    Attributes:
        plugin: The plugin's name.
        reason: The cause, in one line.
    """

    def __init__(self, plugin: str, reason: str) -> None:
        super().__init__(f"plugin {plugin!r} failed: {reason}")
        self.plugin = plugin
        self.reason = reason


class PluginConflictError(PluginError):
    """Two plugins claim the same name."""


class FilterFailedError(PluginError):
    """A plugin's filter crashed during the call of a tool that accepts filters."""


class ServiceError(StandardsMcpError):
    """A service that plugins share has failed; the message tells the model what to do next.

    It is the base class for errors of such a service. Unless a plugin handles it, the client gets
    its message as an ``api_error``.
    """


class FilterError(ServiceError):
    """A filter expression has an unknown operator or an operand of a wrong type."""


class ToolError(StandardsMcpError):
    """A tool cannot do what was asked; the message tells the model what to do next.

    Raise it, or one of its subclasses, from a tool's function. A plain `ValueError` that the
    function raises itself counts as an `InvalidInputError`. Any other exception counts as a crash:
    its text stays in the log, and the client gets an id to look it up by.

    Args:
        message: One or two sentences.
        retry_after: Seconds after which the same call may succeed.
        status: The HTTP status of a service's answer, if that is the cause.
        details: More facts about the error; they become JSON data, like the answer of a tool.

    Raises:
        TypeError: *details* is not a mapping, or an argument cannot be written as JSON.
    """

    error_type = "tool_error"
    # Defaults for subclasses whose `__init__` does not call this class's.
    retry_after: float | None = None
    status: int | None = None
    details: Mapping[str, Any] | None = None

    def __init__(
        self,
        message: str = "",
        *,
        retry_after: float | None = None,
        status: int | None = None,
        details: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        facts = {"retry_after": retry_after, "status": status, "details": details}
        for name, value in facts.items():
            if value is not None:
                setattr(self, name, _json_data(value))
        if not isinstance(self.details, Mapping | None):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError("the details of a ToolError are a mapping, such as a dict")

    @property
    def data(self) -> dict[str, Any]:
        """The retry time, status and details that are set, by their keys in the answer."""
        facts = {"retry_after": self.retry_after, "status": self.status, "details": self.details}
        return {key: value for key, value in facts.items() if value is not None}


def _json_data(value: object) -> Any:
    # Checked when the error is created, since the code that reports errors must not fail.
    import pydantic_core  # noqa: PLC0415  - this module is imported before Ctrl-C is handled

    try:
        return pydantic_core.from_json(pydantic_core.to_json(value, inf_nan_mode="null"))
    except ValueError as exc:
        raise TypeError(f"the data of a ToolError cannot be written as JSON: {exc}") from exc


class InvalidInputError(ToolError):
    """An argument has a value that the tool cannot work with."""

    error_type = "invalid_input"


class NotFoundError(ToolError):
    """The arguments name something that does not exist."""

    error_type = "not_found"


class ApiError(ToolError):
    """A service or a store on which the tool depends has failed."""

    error_type = "api_error"


class CannotAskError(ToolError):
    """The client cannot do what a tool asks of it, such as to ask the user a question.

    Args:
        question: The question to the user.
        message: The message in place of the default one.

    Attributes:
        ability: The capability that the client would have to declare.
    """

    error_type = "cannot_ask"

    def __init__(
        self, question: str = "", *, ability: Ability = "elicitation", message: str = ""
    ) -> None:
        default = _CANNOT_MESSAGES[ability].format(question=question)
        super().__init__(message or default, details={"missing_capability": ability})
        self.ability = ability


_CANNOT_MESSAGES: Final[Mapping[Ability, str]] = {
    "elicitation": "This client cannot ask its user. Ask in the conversation: {question!r}, and "
    "call again with the answer among the arguments.",
    "sampling": "This client does not let servers use its model. Do this tool's work yourself, or "
    "use another client.",
    "roots": "This client does not say in which folders its user works. Ask in the conversation, "
    "and call again with the folder among the arguments, if the tool has one for it.",
}


class NotServedError(StandardsMcpError):
    """No prompt or resource of this name is served."""


class UnknownToolError(StandardsMcpError):
    """No plugin declares a tool of this name."""


class RateLimitedError(ToolError):
    """The tool was called too often."""

    error_type = "rate_limited"


class TooLargeError(ToolError):
    """A prompt or a resource is longer than it may be."""

    error_type = "too_large"


class TimedOutError(ToolError):
    """The deadline passed before the answer."""

    error_type = "timeout"


class CrashedError(ToolError):
    """A function raised an unexpected exception; the log has it under an id."""

    error_type = "internal_error"


class ThreadsStuckError(ToolError):
    """Abandoned calls occupy all threads that a plugin may have."""

    error_type = "internal_error"


class NotAuditedError(ToolError):
    """The audit log cannot be written, and no call may run without it."""

    error_type = "not_audited"

    def __init__(self) -> None:
        super().__init__(
            "The service cannot write its audit log, and runs no calls without it. Try again "
            "later, and tell its administrator."
        )


class PluginDeprecationWarning(DeprecationWarning):
    """A part of the plugin API is deprecated; the message says what to use instead."""
