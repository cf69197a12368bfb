"""Tables of contributions, and ``[profiles.*]``: selection, names and limits."""

from collections.abc import Collection, Iterable
from fnmatch import fnmatchcase
from typing import Annotated, Any, Final, Literal, Self, TypeAlias
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, field_validator, model_validator

from . import AtStart, NotBool, Seconds, Table, TextFormat, error_at

Kind: TypeAlias = Literal["tools", "prompts", "resources", "skills"]
"""The kind of a contribution, by the name of its table."""
ToolName = Annotated[
    str,
    TextFormat(
        r"[A-Za-z][A-Za-z0-9_.-]{0,63}",
        "a letter and up to 63 letters, digits, '_', '-' and '.', for example 'search_docs'",
    ),
]
Count = Annotated[int, Field(gt=0), NotBool]
Tokens = Annotated[int, Field(ge=100), NotBool]
"""A limit of fewer tokens would leave nothing of an answer."""
RATE_LIMIT: Final = r"[1-9][0-9]*/(second|minute|hour|day)"
RateLimit = Annotated[
    str,
    TextFormat(
        RATE_LIMIT,
        "a number of calls for each second, minute, hour or day, for example '60/minute'",
    ),
]


class Rules(Table):
    """Rules that select prompts, resources or skills. A match in ``disable`` always wins.

    Attributes:
        enable: Only contributions with a declared or published name that matches one of these globs
            are served.
        disable: Contributions with a declared or published name that matches one of these globs are
            not served.
    """

    enable: tuple[str, ...] = ("*",)
    disable: tuple[str, ...] = ()

    def hidden_reason(self, names: Collection[str], table: str) -> str:
        """Return why a contribution with these names is not served, or an empty string.

        Args:
            table: The name of these rules in the reason.
        """
        if pattern := first_match(names, self.disable):
            return f"[{table}] disable has {pattern!r}"
        if not first_match(names, self.enable):
            return f"[{table}] enable has no pattern for it"
        return ""


class ToolRules(Rules):
    """Rules that select tools. A match in ``disable`` always wins.

    Attributes:
        read_only: If true, only tools that change nothing are served.
        discovery: With ``search``, clients list few tools, and find and call the others with
            ``search_tools`` and ``call_tool``. By default, clients ``list`` all tools.
        structured: If false, answers have no structured content, and definitions no output schema:
            the text has the same data. By default it is true.
    """

    read_only: bool = False
    discovery: Literal["list", "search"] | None = None
    structured: bool | None = None

    def hidden_reason(
        self, names: Collection[str], table: str = "tools", *, read_only: bool = True
    ) -> str:
        """Return why a tool with these names is not served, or an empty string.

        Args:
            table: The name of these rules in the reason.
            read_only: True if the tool changes nothing.
        """
        if self.read_only and not read_only:
            return f"it is not read-only, and [{table}] read_only = true"
        return super().hidden_reason(names, table)


class Override(Table):
    """The changes of an admin to one prompt or resource.

    Attributes:
        name: This is the name that clients see.
        title: This title replaces the author's.
        description: This description replaces the author's.
        timeout: One call may take this many seconds.
        rate_limit: One caller may ask for it this often, such as ``60/minute``.
        concurrency: This many calls of it run at a time; further calls wait.
        max_output_tokens: An answer has about this many tokens at most. A longer one is refused.
    """

    name: ToolName | None = None
    title: str | None = None
    description: Annotated[str, Field(min_length=1)] | None = None
    timeout: Seconds | None = None
    rate_limit: RateLimit | None = None
    concurrency: Count | None = None
    max_output_tokens: Count | None = None


class ContributionSettings(Rules):
    """``[prompts]`` or ``[resources]``.

    Attributes:
        rate_limit: One caller may ask for each prompt or resource this often, such as
            ``60/minute``, unless its override sets another limit.
        max_output_tokens: An answer has about this many tokens at most, with 4 bytes a token. A
            longer one is refused.
        overrides: Each table changes the prompt or the resource with this declared or published
            name.
    """

    rate_limit: RateLimit | None = None
    max_output_tokens: Count | None = None
    overrides: dict[str, Override] = Field(default_factory=dict[str, Override])


class ArgumentOverride(Table):
    """The changes of an admin to one argument.

    Attributes:
        description: This description replaces the author's.
        default: The tool gets this value if the client leaves the argument out.
        fixed: The tool always gets this value, and clients no longer see the argument.
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
    """``[tools.overrides."<name>"]``: the changes of an admin to one tool.

    Attributes:
        name: This is the name that clients see. The tool still answers to its declared name.
        arguments: Each table changes the argument with this name.
        rate_limit: One caller may call the tool this often, such as ``60/minute``.
        cache_ttl: The same call gets the same answer for this many seconds; 0 means never. The tool
            must be read-only.
        max_output_tokens: An answer has about this many tokens at most. A longer one is cut, and a
            note says so.
    """

    arguments: dict[str, ArgumentOverride] = Field(default_factory=dict[str, ArgumentOverride])
    max_output_tokens: Tokens | None = None
    cache_ttl: Annotated[float, Field(ge=0, allow_inf_nan=False), NotBool] | None = None


class ToolSettings(ToolRules):
    """``[tools]``.

    Attributes:
        timeout: One call of a tool that has no timeout of its own may take this many seconds.
        concurrency: This many calls of one plugin's tools run at a time; further calls wait.
        rate_limit: One caller may call each tool this often, such as ``60/minute``, unless the
            tool's override sets another limit.
        max_output_tokens: An answer has about this many tokens at most, with 4 bytes for a token. A
            longer one is cut, and a note says so.
        max_argument_values: The arguments of one call may have this many values, including the
            values in lists and objects. A call with more is refused.
        search_above: With more tokens than this in the definitions of the tools, ``discovery`` is
            ``search``, unless it is set.
        always_listed: Tools with a declared or published name that matches one of these globs are
            listed even with ``search``. Clients that load tools late should load them at once.
        search_writing: If true, tools that may change something are searched, too. By default, they
            are listed even with ``search``, so that clients know which calls change nothing.
        storage: Several processes share rate limits and cached answers at this ``redis://`` URL.
            Without it, each process keeps its own.
        overrides: Each table changes the tool with this declared or published name.
    """

    timeout: Seconds = 30.0
    concurrency: Count = 16
    rate_limit: RateLimit | None = None
    max_output_tokens: Tokens = 20_000
    max_argument_values: Count = 10_000
    search_above: Tokens | None = None
    always_listed: tuple[str, ...] = ()
    search_writing: bool = False
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
        except ValueError:  # quotes a supposed port, which may be a part of the password
            raise ValueError("is not a URL; write %2F for a '/' in its password") from None
        return storage


class Profile(ToolRules):
    """``[profiles.<name>]``: rules that narrow those of each kind of contribution.

    Attributes:
        plugins: Only plugins with a name that matches one of these globs serve anything.
        prompts: These rules for prompts apply in addition to ``[prompts]``.
        resources: These rules for resources apply in addition to ``[resources]``.
        skills: These rules for skills apply in addition to ``[skills]``.
    """

    plugins: tuple[str, ...] = ("*",)
    prompts: Rules = Table.empty
    resources: Rules = Table.empty
    skills: Rules = Table.empty


def first_match(names: Collection[str], patterns: Iterable[str]) -> str:
    """Return the first pattern that matches one of *names*, or an empty string."""
    return next(
        (pattern for pattern in patterns if any(fnmatchcase(name, pattern) for name in names)), ""
    )
