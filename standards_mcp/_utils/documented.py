"""Models that take the descriptions of their fields from their docstrings."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, GetJsonSchemaHandler
from pydantic_core import CoreSchema

_ATTRIBUTE: Final = re.compile(r"^ {4}(\w+): (.*(?:\n {8}.*)*)", re.MULTILINE)


class Documented(BaseModel):
    """A model whose JSON Schema has the descriptions of its docstring's ``Attributes:``."""

    # Most tables are only validated as a part of another one, which builds them, too.
    model_config = ConfigDict(defer_build=True)

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


def _attributes(model: type[BaseModel]) -> Iterator[tuple[str, str]]:
    """Yield the names and descriptions of attributes in the docstrings of a model and its bases."""
    for base in reversed(model.__mro__):
        _, _, section = inspect.cleandoc(base.__doc__ or "").partition("\n\nAttributes:\n")
        for name, text in _ATTRIBUTE.findall(section):
            yield name, _plain(text)


def _plain(text: str) -> str:
    return " ".join(text.replace("``", "`").split())
