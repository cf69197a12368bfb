"""Memories as JSON, one a line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StrictInt, ValidationError

from standards_mcp_memory.answers import Skipped
from standards_mcp_memory.origins import SOURCE_KEY, STORED, origins_in
from standards_mcp_memory.records import LARGEST_ID, Document, Draft


def _whole(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError("it has half a character (a lone surrogate)") from None
    return text


_Text = Annotated[str, AfterValidator(_whole)]


class _Line(BaseModel):
    model_config = ConfigDict(extra="ignore", strict=True)

    id: Annotated[StrictInt, Field(ge=1, le=LARGEST_ID)] | None = None
    title: _Text
    preview: _Text | None = None
    content: _Text
    tags: list[_Text] | None = None
    source: list[dict[str, _Text]] | dict[str, _Text] | None = None


def read_jsonl(text: str, where: str) -> Iterator[Draft | Skipped]:
    """Yield the memories of a file, and what is wrong with lines that have none."""
    # Not splitlines: a string may have other line breaks in it.
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        place = f"{where}:{number}"
        try:
            read = _Line.model_validate(json.loads(line))
        except ValidationError as error:
            yield {"where": place, "reason": _reason(error)}
            continue
        except (ValueError, RecursionError):
            yield {"where": place, "reason": "is no JSON"}
            continue
        tags = None if read.tags is None else tuple(read.tags)
        origins = origins_in(read.source)
        yield Draft(read.title, read.content, read.preview, tags, read.id, place, origins=origins)


def line_of(document: Document) -> str:
    """Return a memory as a line that `read_jsonl` reads."""
    tags = {} if document.own_tags is None else {"tags": document.own_tags}
    texts = {"title": document.title, "preview": document.preview, "content": document.content}
    origins = document.origins
    source = {SOURCE_KEY: [each.as_payload() for each in origins]} if origins != (STORED,) else {}
    return json.dumps({"id": document.id, **texts, **tags, **source}, ensure_ascii=False)


def _reason(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_input=False)[0]
    place = ".".join(map(str, first["loc"]))
    return f"{place}: {first['msg']}" if place else first["msg"]
