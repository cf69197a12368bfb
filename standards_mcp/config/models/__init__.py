"""The tables of the configuration as pydantic models, with their base class and shared types."""

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    ClassVar,
    Final,
    NamedTuple,
    TypeAlias,
    Union,
    get_args,
    get_origin,
)

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    ValidationError,
)
from pydantic_core import CoreSchema, PydanticCustomError, core_schema
from typing_extensions import TypeIs

from standards_mcp.plugin.settings import Documented, is_unencrypted


def _refuse_bool(value: object) -> object:
    if isinstance(value, bool):
        raise ValueError("input should be a number")  # noqa: TRY004  for pydantic
    return value


NotBool: Final = BeforeValidator(_refuse_bool)
"""Refuses true and false for a number; pydantic would take them for 1 and 0."""
Seconds: TypeAlias = Annotated[float, Field(gt=0, allow_inf_nan=False), NotBool]


class Table(Documented):
    """A table of the host itself; an unknown key is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    # Not the class of the table: it would need a validator besides the one of the whole.
    empty: ClassVar[Any] = Field(default_factory=dict[str, Any], validate_default=True)


def is_table(annotation: object) -> TypeIs[type[BaseModel]]:
    """Return True if a field of this type is a table with keys of its own."""
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)


def type_of(model: type[BaseModel], path: Iterable[object]) -> Any:
    """Return the type of the key at *path*, or None if the host's models do not declare it."""
    kind: Any = model
    for part in path:
        if get_origin(kind) in (Union, UnionType):  # a table that may be left out
            kind = next(filter(is_table, get_args(kind)), None)
        if get_origin(kind) is dict:  # tables by name, such as [plugins.*]
            kind = get_args(kind)[1]
        elif is_table(kind) and (field := kind.model_fields.get(str(part))):
            kind = field.annotation
        else:
            return None
    return kind


def takes_json(annotation: Any) -> bool:
    """Return True if a type is a list or a table; variables hold their values as JSON."""
    origin, members = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return takes_json(members[0])
    if origin in (Union, UnionType):
        return all(takes_json(member) for member in members if member is not NoneType)
    return is_table(annotation) or (isinstance(origin, type) and issubclass(origin, Collection))


@dataclass(frozen=True, slots=True)
class AtStart:
    """Mark a setting that takes effect at the next start, not on reload."""


class TextFormat(NamedTuple):
    """A format of text: a pattern, also for editors, and a description for error messages.

    Attributes:
        words: The description, which follows "input should be" in an error.
    """

    pattern: str
    words: str

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler, /
    ) -> CoreSchema:
        """Return the schema of the text, followed by the check."""
        return core_schema.no_info_after_validator_function(self._check, handler(source))

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler, /
    ) -> dict[str, Any]:
        """Return the schema for editors."""
        return {**handler(schema), "pattern": f"^({self.pattern})$"}

    def _check(self, text: str) -> str:
        if not re.fullmatch(self.pattern, text):
            raise ValueError(f"input should be {self.words}")
        return text


def _secure(url: str) -> str:
    if is_unencrypted(url):
        raise ValueError("use https; plain http is for addresses of this machine")
    return url


Url: TypeAlias = Annotated[
    str, TextFormat(r"https?://[^\s/]+(/\S*)?", "an address such as https://a.b/c")
]
SecureUrl: TypeAlias = Annotated[Url, AfterValidator(_secure)]
ScopePart: TypeAlias = Annotated[str, TextFormat(r"[!#-\[\]-~]+", "a scope without spaces")]


def error_at(key: str, message: str) -> ValidationError:
    """Return an error at one key, for a validator of the whole table."""
    error = PydanticCustomError("value_error", "{message}", {"message": message})
    return ValidationError.from_exception_data("", [{"type": error, "loc": (key,), "input": None}])
