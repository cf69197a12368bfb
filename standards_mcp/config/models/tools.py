"""``[tools]``, ``[prompts]``, ``[resources]`` and ``[profiles.*]``.

Which of what plugins contribute is served, as what, and within which limits.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from fnmatch import fnmatchcase
from typing import Annotated, Any, Literal, Self, TypeAlias
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, field_validator, model_validator

from .base import AtStart, Like, NoFlag, Seconds, Table, error_at

Kind: TypeAlias = Literal["tools", "prompts", "resources"]
"""What plugins contribute, as its table is called."""
ToolName = Annotated[
    str,
    Like(
        r"[A-Za-z][A-Za-z0-9_.-]{0,63}",
        "a letter and up to 63 letters, digits, '_', '-' and '.', for example 'search_docs'",
    ),
]
Count = Annotated[int, Field(gt=0), NoFlag]
RateLimit = Annotated[
    str,
    Like(
        r"[1-9][0-9]*/(second|minute|hour|day)",
        "a number of calls for each second, minute, hour or day, for example '60/minute'",
    ),
]


class Rules(Table):
    """Rules that a prompt or a resource passes to be served. A match in ``disable`` always wins.

    Attributes:
        enable: Globs over declared and published names.
        disable: Globs over declared and published names.
    """

    enable: tuple[str, ...] = ("*",)
    disable: tuple[str, ...] = ()

    def hidden_reason(self, names: Collection[str], table: str) -> str:
        """Return why what has these names is not served, or an empty string.

        Args:
            table: What to call these rules in the reason.
        """
        if pattern := first_match(names, self.disable):
            return f"[{table}] disable has {pattern!r}"
        if not first_match(names, self.enable):
            return f"[{table}] enable has no pattern for it"
        return ""


class ToolRules(Rules):
    """Rules that a tool passes to be served. A match in ``disable`` always wins.

    Attributes:
        enable: Globs over declared and published names.
        disable: Globs over declared and published names.
        read_only: Serve only tools that change nothing.
    """

    read_only: bool = False

    def hidden_reason(
        self, names: Collection[str], table: str = "tools", *, read_only: bool = True
    ) -> str:
        """Return why a tool with these names is not served, or an empty string.

        Args:
            table: What to call these rules in the reason.
            read_only: Whether the tool changes nothing.
        """
        if self.read_only and not read_only:
            return f"it is not read-only, and [{table}] read_only = true"
        return super().hidden_reason(names, table)


class Override(Table):
    """What an admin changes of one prompt or resource.

    Attributes:
        name: The name that clients see.
        title: In place of the author's.
        description: In place of the author's.
    """

    name: ToolName | None = None
    title: str | None = None
    description: Annotated[str, Field(min_length=1)] | None = None


class ContributionSettings(Rules):
    """``[prompts]`` or ``[resources]``.

    Attributes:
        overrides: By a declared or published name.
    """

    overrides: dict[str, Override] = Field(default_factory=dict[str, Override])


class ArgumentOverride(Table):
    """What an admin changes of one argument.

    Attributes:
        description: In place of the author's.
        default: What the tool gets where the client leaves the argument out.
        fixed: What the tool always gets; clients no longer see the argument.
    """

    description: str | None = None
    default: Any = None
    fixed: Any = None

    @model_validator(mode="after")
    def _check_one_value(self) -> Self:
        if self.default is not None and self.fixed is not None:
            raise error_at("default", "it is fixed to a value; remove fixed or default")
        return self


class ToolOverride(Override):
    """``[tools.overrides."<name>"]``: what an admin changes of one tool.

    Attributes:
        name: The name that clients see; the tool still answers to its declared one.
        title: In place of the author's.
        description: In place of the author's.
        arguments: By their names.
        timeout: Seconds for one call.
        rate_limit: How often it may be called, such as ``60/minute``.
        cache_ttl: Seconds for which an answer is given again; 0: never. Read-only tools only.
        concurrency: How many calls of it run at a time; more wait.
        max_output_tokens: About how long an answer may be; more is cut, and a note says so.
    """

    arguments: dict[str, ArgumentOverride] = Field(default_factory=dict[str, ArgumentOverride])
    timeout: Seconds | None = None
    rate_limit: RateLimit | None = None
    cache_ttl: Annotated[float, Field(ge=0, allow_inf_nan=False), NoFlag] | None = None
    concurrency: Count | None = None
    max_output_tokens: Count | None = None


class ToolSettings(ToolRules):
    """``[tools]``.

    Attributes:
        timeout: Seconds for one call of a tool that sets no timeout of its own.
        concurrency: How many calls of one plugin's tools run at a time; more wait.
        rate_limit: How often each tool may be called, such as ``60/minute``, where its override
            says nothing else.
        max_output_tokens: About how long an answer may be, a token taken as 4 bytes; more is cut,
            and a note says so.
        storage: A ``redis://`` URL where several processes share rate limits and cached answers;
            each keeps its own without.
        overrides: By a tool's declared or published name.
    """

    timeout: Seconds = 30.0
    concurrency: Count = 16
    rate_limit: RateLimit | None = None
    max_output_tokens: Count = 20_000
    storage: Annotated[SecretStr | None, AtStart()] = None
    overrides: dict[str, ToolOverride] = Field(default_factory=dict[str, ToolOverride])

    @field_validator("storage")
    @classmethod
    def _check_storage(cls, storage: SecretStr | None) -> SecretStr | None:
        url = storage.get_secret_value() if storage else ""
        if url and not url.startswith(("redis://", "rediss://")):
            raise ValueError("must be a redis:// or rediss:// URL")
        try:
            _ = urlsplit(url).port
        except ValueError:  # it quotes what it takes for the port: a part of the password
            raise ValueError("is not a URL; write %2F for a '/' in its password") from None
        return storage


class Profile(ToolRules):
    """``[profiles.<name>]``: rules that apply beside ``[tools]``, and so can only narrow it.

    Attributes:
        plugins: Globs over the names of plugins; nothing of the others is served.
        prompts: Rules for prompts, beside ``[prompts]``.
        resources: Rules for resources, beside ``[resources]``.
    """

    plugins: tuple[str, ...] = ("*",)
    prompts: Rules = Field(default_factory=Rules)
    resources: Rules = Field(default_factory=Rules)


def first_match(names: Collection[str], patterns: Iterable[str]) -> str:
    """Return the first pattern that matches one of *names*, or an empty string."""
    return next(
        (pattern for pattern in patterns if any(fnmatchcase(name, pattern) for name in names)), ""
    )
