"""The answers of the tools, in the envelope of all standards tools."""

from typing import Generic, Literal, NotRequired, TypeAlias, TypeVar

from typing_extensions import TypedDict

FoundBy: TypeAlias = Literal["stated", "tree", "code", "strand", "heading", "meaning"]


Relation: TypeAlias = Literal["related", "siblings", "next_grade", "previous_grade", "elsewhere"]


class Node(TypedDict):
    """A jurisdiction, a standard set or a standard in `browse_standards`.

    ``children`` counts the sets of a jurisdiction or the parts of a standard. ``standards`` counts
    all records of a jurisdiction or a set. ``jurisdiction_title`` is set if the nodes belong to
    several jurisdictions.
    """

    _id: str
    kind: Literal["jurisdiction", "set", "standard"]
    description: str
    statement_notation: NotRequired[str]
    statement_label: NotRequired[str]
    jurisdiction_title: NotRequired[str]
    subject: NotRequired[str]
    education_levels: NotRequired[list[str]]
    children: NotRequired[int]
    standards: NotRequired[int]
    text_status: NotRequired[str]


class Twin(TypedDict):
    """Another standard with the same text as a related one."""

    _id: str
    statement_notation: NotRequired[str]
    jurisdiction_title: str


class Heading(TypedDict):
    """The nearest heading above a standard without a code, if possible one with a code."""

    statement_notation: NotRequired[str]
    description: str


class Related(TypedDict):
    """A standard that is related to the requested one.

    ``relation`` and ``origin`` are set if a source states the relation (``found_by`` is
    ``stated``). If such a standard is not loaded (``loaded`` is false), only its ``_id`` is known.
    """

    _id: str
    statement_notation: NotRequired[str]
    heading: NotRequired[Heading]
    description: str
    education_levels: list[str]
    standard_set_title: str
    jurisdiction_title: str
    found_by: FoundBy
    relation: NotRequired[str]
    origin: NotRequired[str]
    loaded: NotRequired[Literal[False]]
    score: NotRequired[float]
    text_status: NotRequired[str]
    also_in: NotRequired[list[Twin]]


ResultT = TypeVar("ResultT", bound=Node | Related)


class Envelope(TypedDict, Generic[ResultT]):
    """The answer of the tools. Errors have the same shape, with ``error_type``."""

    success: bool
    results: list[ResultT]
    message: str
    error_type: NotRequired[str]


class Level(Envelope[Node]):
    """A page of one level of the tree. ``next_page`` is set if the level has more pages."""

    next_page: NotRequired[int]
