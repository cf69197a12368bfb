"""Parse XML without entities, external files or deep nesting, and read its elements."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat

from .items import InputError

_DEEPEST: Final = 200
_LARGEST: Final = 10_000_000
_BLOCKS: Final = frozenset(
    (
        "p", "div", "li", "tr", "td", "th", "br", "h1", "h2", "h3", "h4", "h5", "h6", "prompt",
        "simpleChoice", "inlineChoice", "gap", "qti-prompt", "qti-simple-choice",
        "qti-inline-choice", "material", "response_label",
    )
)  # fmt: skip
"""Elements that begin a line; all others are parts of a line."""


def parse_xml(data: bytes) -> Element:
    """Return the root element; names of elements and attributes have no namespace.

    Raises:
        InputError: The file is damaged, declares an entity, is nested too deep, or has more than
            10 MB. Entities can make a small file huge, or read other files of this machine.
    """
    if len(data) > _LARGEST:
        raise InputError(f"it is XML of more than {_LARGEST // 1_000_000} MB; split it")
    builder = TreeBuilder()
    # Nothing is loaded: the parser has no handler for external entities.
    parser = expat.ParserCreate(namespace_separator="}")
    depth = 0

    def start(name: str, attributes: dict[str, str]) -> None:
        nonlocal depth
        depth += 1
        if depth > _DEEPEST:
            raise InputError("its elements are nested too deep")
        builder.start(_local(name), {_local(key): value for key, value in attributes.items()})

    def end(name: str) -> None:
        nonlocal depth
        depth -= 1
        builder.end(_local(name))

    def refuse_entity(*declaration: Any) -> None:
        raise InputError(f"it declares the entity {str(declaration[0])[:40]!r}; remove entities")

    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = builder.data
    parser.EntityDeclHandler = refuse_entity
    try:
        parser.Parse(data, True)
        return builder.close()
    except (expat.ExpatError, LookupError, ValueError) as error:
        raise InputError(f"it is damaged, or not XML: {error}") from None


def text_of(element: Element | None, without: frozenset[str] = frozenset()) -> str:
    """Return the text of an element and of those in it, with a line for each block.

    Args:
        without: Names of elements to leave out.
    """
    return "" if element is None else "".join(_texts(element, without)).strip()


def child(element: Element, name: str) -> Element | None:
    """Return the first child with this name."""
    return next((inner for inner in element if inner.tag == name), None)


def _texts(element: Element, without: frozenset[str]) -> Iterator[str]:
    if element.tag in without:
        return
    if element.tag in _BLOCKS:
        yield "\n"
    yield element.text or ""
    for inner in element:
        yield from _texts(inner, without)
        yield inner.tail or ""


def _local(name: str) -> str:
    return name.rpartition("}")[2]
