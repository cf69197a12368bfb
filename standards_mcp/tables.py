"""The base of settings models: tables of the configuration, described by their docstrings."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import Annotated, Any, Final, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, GetJsonSchemaHandler
from pydantic_core import CoreSchema

_ATTRIBUTE: Final = re.compile(r"^ {4}(\w+): (.*(?:\n {8}.*)*)", re.MULTILINE)


class Documented(BaseModel):
    """A model whose JSON Schema says what its docstring says under ``Attributes:``."""

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler, /
    ) -> dict[str, Any]:
        """Return the schema with a description of the table and of each key."""
        schema = handler(core_schema)
        model = handler.resolve_ref_schema(schema)
        model["description"] = _plain(inspect.cleandoc(cls.__doc__ or "").split("\n\n")[0])
        for name, text in _attributes(cls):
            if name in model.get("properties", {}):
                model["properties"][name]["description"] = text
        return schema


def _refuse_flag(value: object) -> object:
    if isinstance(value, bool):
        raise ValueError("input should be a number of seconds")  # noqa: TRY004  for pydantic
    return value


Seconds: TypeAlias = Annotated[
    float, Field(gt=0, allow_inf_nan=False), BeforeValidator(_refuse_flag)
]


class Table(Documented):
    """A table of the host's own, whose keys are all known."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def _attributes(model: type[BaseModel]) -> Iterator[tuple[str, str]]:
    """Yield what the docstrings of a model and of its bases say of its attributes."""
    for base in reversed(model.__mro__):
        _, _, section = inspect.cleandoc(base.__doc__ or "").partition("\n\nAttributes:\n")
        for name, text in _ATTRIBUTE.findall(section):
            yield name, _plain(text)


def _plain(text: str) -> str:
    return " ".join(text.replace("``", "`").split())
