"""Assessment items of QTI 2.1 and 3.0, and the questions of Common Cartridges (QTI 1.2)."""

from __future__ import annotations

from typing import Final
from xml.etree.ElementTree import Element

from .items import InputError, Item, checked_items, make_item
from .xml_parser import text_of

_BODIES: Final = {"assessmentItem": "itemBody", "qti-assessment-item": "qti-item-body"}
# Texts for the people or programs that score an answer, not for students.
_WITHOUT: Final = frozenset(
    (
        "rubricBlock", "feedbackBlock", "feedbackInline", "templateBlock", "qti-rubric-block",
        "qti-feedback-block", "qti-feedback-inline", "qti-template-block", "itemfeedback",
        "resprocessing", "itemmetadata", "qtimetadata", "style", "script",
    )
)  # fmt: skip


def qti_items(name: str, root: Element, place: str = "", codes: tuple[str, ...] = ()) -> list[Item]:
    """Return the items of an XML file: one for an assessment item, several for a QTI 1.2 file.

    Args:
        codes: Codes of standards that a manifest states for the file.

    Raises:
        InputError: The file is XML of another kind, or the item has no text.
    """
    if root.tag == "questestinterop":
        questions = [(element, text_of(element, _WITHOUT)) for element in root.iter("item")]
    elif root.tag in _BODIES:
        bodies = root.iter(_BODIES[root.tag])
        questions = [(root, "\n".join(text_of(body, _WITHOUT) for body in bodies))]
    else:
        kinds = f"{', '.join(_BODIES)} or questestinterop"
        raise InputError(
            f"its root element is {root.tag[:40]!r}, not {kinds}; pack it with its manifest if it "
            "belongs to a cartridge"
        )
    items = checked_items(
        make_item(
            name,
            place,
            {
                "id": element.get("identifier") or element.get("ident"),
                "title": element.get("title"),
                "text": text,
                "codes": codes,
            },
        )
        for element, text in questions
        if text
    )
    if not items:
        raise InputError("its items have no text")
    return items
