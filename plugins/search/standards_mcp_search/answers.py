"""The answer of ``find_relevant_standards``, field for field."""

from typing import Any, Literal, NotRequired

from typing_extensions import TypedDict


class Twin(TypedDict):
    """Another standard with the same text as a result."""

    _id: str
    statement_notation: NotRequired[str]
    standard_set_title: str
    education_levels: list[str]


class Heading(TypedDict):
    """The nearest heading above a result without a code, if possible one with a code."""

    statement_notation: NotRequired[str]
    description: str


class Standard(TypedDict):
    """One result.

    ``why`` is what made it fit: words or a code of the text, or a phrase in teachers' words; only
    the meaning did if it is missing.
    ``content`` is the standard's own text, or with full detail the searched text, which begins
    with the headings above it. ``description`` is then the standard's own text.
    ``statement_notation`` is its code; a standard without a code has its ``heading``, if there is
    one. ``source_url`` leads to the official text. A ``weak`` result hardly fits. Without a
    measured threshold, as for Pinecone, no result is marked. A ``retired`` standard is no longer in
    force; it has a status and its successors.
    """

    _id: str
    content: str
    subject: str
    education_levels: list[str]
    statement_notation: NotRequired[str]
    heading: NotRequired[Heading]
    why: NotRequired[str]
    standard_set_title: str
    score: float
    jurisdiction_title: NotRequired[str]
    description: NotRequired[str]
    weak: NotRequired[Literal[True]]
    retired: NotRequired[dict[str, Any]]
    text_status: NotRequired[str]
    source_url: NotRequired[str]
    also_in: NotRequired[list[Twin]]


class SearchEnvelope(TypedDict):
    """The tool's answer. Errors have the same shape, with ``error_type``.

    A jurisdiction, a status and a link that all results share are here, and not in the results.
    """

    success: bool
    results: list[Standard]
    jurisdiction_title: NotRequired[str]
    text_status: NotRequired[str]
    source_url: NotRequired[str]
    message: str
    error_type: NotRequired[str]
