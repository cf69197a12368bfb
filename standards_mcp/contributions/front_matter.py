"""Read the front matter of a ``SKILL.md``: YAML that every client reads as the same JSON."""

import json
import re
from typing import Annotated, Any, Final, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from standards_mcp._utils.text import json_copy
from standards_mcp.config.models import TextFormat

_BLOCK: Final = re.compile(r"---\r?\n(.*?)^---\r?(?:\n|\Z)", re.DOTALL | re.MULTILINE)
_MAX_DEPTH: Final = 20
_PLAIN_LINE: Final = re.compile(r"([a-z][a-z-]+): ([A-Za-z][\w .,;()/'-]*[\w.)])", re.ASCII)
_YAML_WORDS: Final = {"y", "n", "yes", "no", "on", "off", "true", "false", "null"}
_SkillName = Annotated[
    str,
    TextFormat(
        r"(?=.{1,64}\Z)[a-z0-9]+(-[a-z0-9]+)*",
        "1 to 64 lowercase letters, digits and single hyphens, such as 'plan-a-unit'",
    ),
]


class FrontMatter(BaseModel):
    """The fields of the Agent Skills format; others are allowed."""

    model_config = ConfigDict(extra="allow", strict=True)
    name: _SkillName
    description: Annotated[str, Field(max_length=1024, pattern=r"\S")]
    license: str = ""
    compatibility: Annotated[str, Field(min_length=1, max_length=500)] = "any"
    metadata: dict[str, str] = {}
    allowed_tools: Annotated[str, Field(alias="allowed-tools")] = ""


def read_front_matter(text: str) -> dict[str, Any]:
    """Return the front matter of a ``SKILL.md`` as JSON data.

    Raises:
        ValueError: There is none, it breaks a rule of the Agent Skills format, or clients could
            read it as different values.
    """
    block = _BLOCK.match(text)
    if block is None:
        raise ValueError("SKILL.md must begin with front matter between two lines '---'")
    fields = _plain_fields(block[1]) or _yaml_fields(block[1])
    try:
        metadata = FrontMatter.model_validate(fields).metadata
    except ValidationError as exc:
        mistake = exc.errors(include_url=False, include_input=False, include_context=False)[0]
        where = ".".join(map(str, mistake["loc"])) or "front matter"
        raise ValueError(f"its {where}: {mistake['msg']}") from None
    if reserved := [key for key in metadata if key.startswith("io.modelcontextprotocol/")]:
        raise ValueError(f"its metadata has the key {reserved[0]!r}, which the protocol reserves")
    return cast("dict[str, Any]", fields)


def _plain_fields(text: str) -> dict[str, str] | None:
    """Return the fields of lines such as ``name: plan-a-unit``, or None if YAML must be parsed.

    A start of the server reads each skill: the parser takes 12 ms to import and 2 ms for a skill.
    """
    lines = [_PLAIN_LINE.fullmatch(line) for line in text.removesuffix("\n").split("\n")]
    fields = {line[1]: line[2] for line in lines if line}
    words = {word.lower() for field in fields.items() for word in field}
    return fields if len(fields) == len(lines) and not words & _YAML_WORDS else None


def _yaml_fields(text: str) -> Any:
    # PyYAML reads YAML 1.1, and other parsers read 1.2.
    fields, other = (_data_of(text, version) for version in ("1.1", "1.2"))
    if json.dumps(fields) != json.dumps(other):
        raise ValueError("YAML 1.1 and 1.2 read its front matter differently; quote the values")
    return fields


def _data_of(text: str, version: str) -> Any:
    """Return YAML as JSON data.

    Raises:
        ValueError: It is not YAML, or has a duplicate key, an alias, or what JSON does not have.
    """
    from ruamel.yaml import YAML  # noqa: PLC0415  - few plugins have skills
    from ruamel.yaml.error import YAMLError  # noqa: PLC0415

    parser: Any = YAML(typ="safe", pure=True)
    parser.version = version
    depth = 0
    try:
        for event in parser.parse(text):
            name = type(event).__name__
            depth += name.endswith("StartEvent") - name.endswith("EndEvent")
            # A few aliases could expand to gigabytes, and parsing brackets takes quadratic time.
            if name == "AliasEvent" or depth > _MAX_DEPTH:
                raise ValueError("its front matter has a YAML alias, or is nested too deeply")
        value = parser.load(text)
    except (YAMLError, LookupError, TypeError, RecursionError) as exc:
        reason = " ".join(str(exc).split())[:300]
        raise ValueError(f"its front matter is not valid YAML: {reason}") from None
    data = json_copy(value)
    if data != value:
        raise ValueError("its front matter has a key that is not text; quote it")
    return data
