"""Lessons and questions of Common Cartridges (1.3) and of QTI packages (2.1 and 3.0)."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final
from xml.etree.ElementTree import Element

from standards_mcp_documents import KINDS, DocumentError, DocumentReader

from .archives import Archive
from .items import (
    InputError,
    Item,
    SkippedFile,
    checked_items,
    make_item,
    plain_line,
    without_markup,
)
from .qti import qti_items
from .xml_parser import child, parse_xml, text_of

_MANIFEST: Final = "imsmanifest.xml"
_TEXTS: Final = ("text", "description", "instructor_text")
"""Elements with the text of a discussion topic, an assignment or a tool."""


@dataclass(frozen=True, slots=True)
class _Resource:
    """A resource of a manifest.

    Attributes:
        kind: Its type, such as ``webcontent`` or ``imsqti_item_xmlv2p1``.
        member: The name of its file in the archive; None if it has none there.
        codes: GUIDs and codes of standards in its metadata.
    """

    kind: str
    member: str | None
    codes: tuple[str, ...]

    @property
    def has_questions(self) -> bool:
        """True if its file has the texts of questions; a test only lists them."""
        return "imsqti" in self.kind and "test" not in self.kind and self.member is not None


def package_items(
    name: str, archive: Archive, documents: DocumentReader
) -> tuple[list[Item], list[SkippedFile]]:
    """Return the items of a package, and the members that cannot be read.

    The entries of the package's outline are items, each with the text of its file. Without an
    outline, each question is an item.

    Raises:
        InputError: The archive has no manifest, or the manifest cannot be read.
    """
    member = archive.find(_MANIFEST)
    if member is None:
        raise InputError(f"it has no {_MANIFEST}; unpack it, and name its folder")
    manifest = parse_xml(archive.read(member))
    resources = dict(_resources(manifest, archive))
    reader = _PackageReader(name, archive, documents)
    for place, title, reference, codes in _outline(manifest):
        resource = resources.get(reference)
        if resource is not None:
            reader.add(place, title, resource, codes)
    for resource in resources.values():
        if resource.has_questions:
            reader.add("", "", resource, ())
    return checked_items(reader.items), reader.skipped


class _PackageReader:
    """Collects the items of resources. Each member is read once, even if it is damaged.

    Attributes:
        texts: The texts of the members that were read, by their names.
    """

    def __init__(self, name: str, archive: Archive, documents: DocumentReader) -> None:
        self._name = name
        self._archive = archive
        self._documents = documents
        self.items: list[Item] = []
        self.skipped: list[SkippedFile] = []
        self.texts: dict[str, str] = {}

    def add(self, place: str, title: str, resource: _Resource, codes: tuple[str, ...]) -> None:
        """Add the items of a resource, or the reason why it cannot be read."""
        codes = tuple(dict.fromkeys((*codes, *resource.codes)))
        member = resource.member
        if resource.has_questions and member in self.texts:
            return
        if member and member not in self.texts:
            self.texts[member] = ""
            try:
                if resource.has_questions:
                    root = parse_xml(self._archive.read(member))
                    self.items += qti_items(self._name, root, place or member, codes)
                    return
                self.texts[member] = self._read(member)
            except (DocumentError, InputError) as error:
                self.skipped.append(SkippedFile(f"{self._name}:{member}", str(error)))
        text = self.texts[member] if member else ""
        item = make_item(self._name, place, {"title": title, "text": text, "codes": codes})
        if item is not None:
            self.items.append(item)

    def _read(self, member: str) -> str:
        suffix = posixpath.splitext(member)[1].lower()
        if suffix in KINDS:
            return self._documents.parse(self._archive.read(member), suffix).text
        if suffix != ".xml":
            return ""  # a picture or a film has a title only
        root = parse_xml(self._archive.read(member))
        texts = [text_of(element) for element in root.iter() if element.tag in _TEXTS]
        return without_markup("\n".join(texts))


def _resources(manifest: Element, archive: Archive) -> Iterator[tuple[str, _Resource]]:
    section = child(manifest, "resources")
    if section is None:
        return
    for element in section:
        files = [file.get("href", "") for file in element if file.tag == "file"]
        href = element.get("href") or next(iter(files), "")
        base = posixpath.join(section.get("base", ""), element.get("base", ""))
        codes = tuple(_stated_codes(element))
        member = archive.find(posixpath.join(base, href)) if href else None
        yield element.get("identifier", ""), _Resource(element.get("type", ""), member, codes)


def _outline(manifest: Element) -> Iterator[tuple[str, str, str, tuple[str, ...]]]:
    """Yield place, title, reference and codes of each entry of the outline with a resource."""
    section = child(manifest, "organizations")
    if section is None:
        return
    stack: list[tuple[Element, tuple[str, ...]]] = [(entry, ()) for entry in reversed(section)]
    while stack:
        element, titles = stack.pop()
        if element.tag not in {"organization", "item"}:
            continue
        title = plain_line(text_of(child(element, "title")))
        if reference := element.get("identifierref"):
            yield " > ".join(titles) or title, title, reference, tuple(_own_codes(element))
        above = (*titles, title) if title else titles
        stack += [(entry, above) for entry in reversed(element)]


def _own_codes(element: Element) -> Iterator[str]:
    metadata = child(element, "metadata")
    return iter(()) if metadata is None else _stated_codes(metadata)


def _stated_codes(element: Element) -> Iterator[str]:
    """Yield the codes, or else the GUIDs, of the standards that metadata states."""
    for labelled in element.iter("labelledGUID"):
        texts: Mapping[str, str] = {part.tag: plain_line(part.text or "") for part in labelled}
        if code := texts.get("label") or texts.get("GUID"):
            yield code
