"""Schemas of the requests and answers of Pinecone's API of 2026-07 that this project uses.

They follow the OpenAPI files in https://github.com/pinecone-io/pinecone-api, folder 2026-07, and
https://docs.pinecone.io/reference/api/database-limits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from operator import ge, gt, le, lt
from typing import Any

from jsonschema import Draft202012Validator, ValidationError, validators

API_VERSION = "2026-07"
MAX_RECORDS = 96
MAX_RERANKED = 100
RERANK_FIELDS = 1

ID = {"type": "string", "pattern": "^[\x01-\x7f]+$", "minLength": 1, "maxLength": 512}
IDS = {"type": "array", "items": ID, "minItems": 1, "maxItems": 1000}
METADATA = {"type": "object", "metadata": True}
USAGE = {"type": "object", "properties": {"readUnits": {"type": "integer"}}}
PAGINATION = {"type": "object", "required": ["next"], "properties": {"next": {"type": "string"}}}


def _metadata_errors(
    _: object, wanted: object, fields: object, __: object
) -> Iterator[ValidationError]:
    """Check the fields of a record: a schema would take most of the time of many tests."""
    for name, value in fields.items() if wanted and isinstance(fields, dict) else ():
        if name.startswith("$"):
            yield ValidationError(f"{name!r} begins with $")
        texts = isinstance(value, list) and all(isinstance(each, str) for each in value)
        if not texts and not _is_scalar(value):
            yield ValidationError(f"{value!r} is no text, number, boolean or list of texts")


Validator = validators.extend(Draft202012Validator, {"metadata": _metadata_errors})


def strict(required: list[str], **properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "required": required,
        "properties": properties,
        "additionalProperties": False,
    }


def compiled(**schemas: dict[str, Any]) -> dict[str, Draft202012Validator]:
    """Return a validator for each schema, made once: that takes longer than most checks."""
    for schema in schemas.values():
        Draft202012Validator.check_schema(schema)
    return {name: Validator(schema) for name, schema in schemas.items()}


VECTOR = strict(["id", "values"], id=ID, values={"type": "array"}, metadata=METADATA)
VECTORS = {"type": "object", "additionalProperties": VECTOR}
FILTER = {"type": "object", "minProperties": 1}

REQUESTS = compiled(
    create=strict(
        ["name", "cloud", "region", "embed"],
        name={"type": "string", "pattern": "^[a-z0-9-]{1,45}$"},
        cloud={"enum": ["gcp", "aws", "azure"]},
        region={"type": "string"},
        embed=strict(
            ["model", "field_map"],
            model={"type": "string"},
            metric={"enum": ["cosine", "euclidean", "dotproduct"]},
            field_map=strict(["text"], text={"type": "string"}),
        ),
    ),
    record=METADATA | {"required": ["_id"], "not": {"required": ["id"]}},
    search=strict(
        ["query"],
        query=strict(
            ["top_k", "inputs"],
            top_k={"type": "integer", "minimum": 1, "maximum": 10_000},
            filter={"type": "object"},
            inputs=strict(["text"], text={"type": "string", "minLength": 1}),
        ),
        rerank=strict(
            ["model", "rank_fields"],
            model={"type": "string"},
            rank_fields={"type": "array", "items": {"type": "string"}, "maxItems": RERANK_FIELDS},
            top_n={"type": "integer", "minimum": 1},
            parameters=strict([], truncate={"enum": ["NONE", "END"]}),
        ),
    ),
    fetch_by_metadata=strict(
        ["filter"],
        filter=FILTER,
        namespace={"type": "string"},
        limit={"type": "integer", "minimum": 1, "maximum": 10_000},
        paginationToken={"type": "string"},
    ),
    delete=strict(["namespace", "ids"], ids=IDS, namespace={"type": "string"}),
    stats=strict([]),
    id=ID,
    ids=IDS,
    limit={"minimum": 1, "maximum": 100},
)

INDEX = {
    "type": "object",
    "required": ["name", "host", "status", "deployment", "schema", "deletion_protection"],
    "properties": {
        "status": strict(["ready", "state"], ready={"type": "boolean"}, state={"type": "string"}),
        "deployment": {"type": "object", "required": ["deployment_type"]},
        "schema": strict(["fields"], fields={"type": "object"}),
    },
}
ANSWERS = compiled(
    create=INDEX,
    describe=INDEX,
    search=strict(
        ["usage", "result", "namespace"],
        usage={"type": "object", "required": ["read_units"]},
        namespace={"type": "string"},
        result=strict(
            ["hits"],
            hits={
                "type": "array",
                "items": strict(
                    ["_id", "_score", "fields"],
                    _id=ID,
                    _score={"type": "number"},
                    fields={"type": "object"},
                ),
            },
        ),
    ),
    fetch=strict([], vectors=VECTORS, namespace={"type": "string"}, usage=USAGE),
    fetch_by_metadata=strict(
        [], vectors=VECTORS, namespace={"type": "string"}, usage=USAGE, pagination=PAGINATION
    ),
    list=strict(
        [],
        vectors={"type": "array", "items": strict(["id"], id=ID)},
        pagination=PAGINATION,
        namespace={"type": "string"},
        usage=USAGE,
    ),
    delete=strict([]),
    stats=strict(
        [],
        namespaces={
            "type": "object",
            "additionalProperties": strict([], vectorCount={"type": "integer"}),
        },
        dimension={"type": "integer"},
        indexFullness={"type": "number"},
        totalVectorCount={"type": "integer"},
        metric={"type": "string"},
        vectorType={"type": "string"},
    ),
)

ORDERINGS: dict[str, Callable[[float, float], bool]] = {
    "$gt": gt,
    "$gte": ge,
    "$lt": lt,
    "$lte": le,
}


class ContractError(Exception):
    """A request that Pinecone would refuse with 400."""


def check(validator: Draft202012Validator, value: object) -> None:
    """Raise `ContractError` if *value* does not match the schema of the validator."""
    try:
        validator.validate(value)
    except ValidationError as exc:
        path = "".join(f"[{part!r}]" for part in exc.absolute_path)
        raise ContractError(f"{path} {exc.message[:200]}") from None


def matches(expression: dict[str, Any], fields: dict[str, Any], *, top: bool = True) -> bool:
    """Return True if a record passes a filter; raise `ContractError` for an invalid filter."""
    verdicts = []
    for key, value in expression.items():
        if key in ("$and", "$or"):
            if not top:
                raise ContractError(f"{key} is only allowed at the top of a filter")
            if not isinstance(value, list) or not value:
                raise ContractError(f"{key} takes a list that is not empty")
            nested = [matches(each, fields, top=False) for each in value]
            verdicts.append(all(nested) if key == "$and" else any(nested))
        elif key.startswith("$"):
            raise ContractError(f"{key} is not a valid operator")
        else:
            operators = value if isinstance(value, dict) else {"$eq": value}
            verdicts += [_holds(*entry, fields.get(key)) for entry in operators.items()]
    return all(verdicts)


def _holds(operator: str, operand: Any, value: Any) -> bool:
    values = value if isinstance(value, list) else [] if value is None else [value]
    if operator == "$exists" and isinstance(operand, bool):
        return bool(values) == operand
    if operator in ("$eq", "$ne") and _is_scalar(operand):
        found = any(_same(each, operand) for each in values)
        return found if operator == "$eq" else bool(values) and not found
    if operator in ("$in", "$nin") and isinstance(operand, list):
        if not 0 < len(operand) <= 10_000 or not all(map(_is_scalar, operand)):
            raise ContractError(f"{operator} takes 1 to 10,000 texts, numbers or booleans")
        found = any(_same(each, item) for each in values for item in operand)
        return found if operator == "$in" else bool(values) and not found
    if operator in ORDERINGS and _is_number(operand):
        return any(_is_number(each) and ORDERINGS[operator](each, operand) for each in values)
    raise ContractError(f"{operator} {operand!r} is not valid")


def _is_scalar(value: object) -> bool:
    return isinstance(value, str | int | float | bool)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _same(left: object, right: object) -> bool:
    return isinstance(left, bool) == isinstance(right, bool) and left == right
