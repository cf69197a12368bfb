"""Fits arguments to a JSON Schema where a client sent a neighbouring type, such as "91" for 91.

The neighbours are those that the arguments of annotated functions accept, too: pydantic's. What
fits already stays as it is.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import islice
from typing import Any, Final, cast

from pydantic import FiniteFloat, TypeAdapter, ValidationError

_ROUNDS: Final = 4  # a list that was sent as text may hold numbers that were
_MENDED: Final = 1_000  # in a round: each mistake costs up to 0.2 ms to find
_NONE: Final = object()
_TYPES: Final[Mapping[str, Any]] = {"integer": int, "number": int | FiniteFloat, "boolean": bool}


def fitted(validator: Any, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return *arguments*, with values of a neighbouring type as the schema has them.

    A null for an optional argument that cannot be null is left out.

    Args:
        validator: A validator of JSON Schema, of the schema of all arguments.
    """
    fitting = dict(arguments)
    for round_ in range(_ROUNDS):
        wrong = list(islice(_wrong_types(validator.iter_errors(fitting)), _MENDED))
        if not wrong:
            break
        if not round_:
            fitting = copy.deepcopy(fitting)
        mended = [_mend(fitting, error, validator.schema) for error in wrong]
        if not any(mended):
            break
    return fitting


def _wrong_types(errors: Any) -> Iterator[Any]:
    """Yield the errors about types, also those within alternatives."""
    for error in errors:
        if error.validator == "type":
            yield error
        elif error.context:
            yield from _wrong_types(error.context)


def _mend(arguments: dict[str, Any], error: Any, schema: Mapping[str, Any]) -> bool:
    """Replace the value that an error is about by its neighbour; tell whether there is one."""
    path: Sequence[Any] = tuple(error.absolute_path)
    if not path:
        return False
    holder: Any = arguments
    for key in path[:-1]:
        holder = holder[key]
    try:
        value: Any = holder[path[-1]]
    except KeyError:  # left out already
        return False
    if value is None and len(path) == 1 and path[0] not in schema.get("required", ()):
        del arguments[path[0]]
        return True
    if value is not error.instance:  # another alternative has mended it
        return False
    wanted = error.validator_value
    for kind in cast("list[str]", wanted if isinstance(wanted, list) else [wanted]):
        neighbour = _neighbour(value, kind)
        if neighbour is not _NONE:
            holder[path[-1]] = neighbour
            return True
    return False


@cache
def _adapter(kind: str) -> TypeAdapter[Any]:
    # Built when the first value needs it: to build all three takes milliseconds of every start.
    return TypeAdapter(_TYPES[kind])


def _neighbour(value: Any, kind: str) -> Any:
    if kind in _TYPES:
        try:
            return _adapter(kind).validate_python(value)
        except ValidationError:
            return _NONE
    if kind in ("array", "object") and isinstance(value, str):
        try:
            decoded: Any = json.loads(value)
        except (ValueError, RecursionError):
            return _NONE
        wanted: Any = list if kind == "array" else dict
        return decoded if isinstance(decoded, wanted) else _NONE
    return _NONE
