"""The answer of ``compare_standards``, field for field."""

from typing import Final, Literal, NotRequired, TypeAlias, get_args

from typing_extensions import TypedDict

from standards_mcp_alignment.answers import Digests

Kind: TypeAlias = Literal["reworded", "moved", "split", "merged", "new", "gone", "kept"]
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
Action: TypeAlias = Literal["add", "drop", "revise"]


class Reference(TypedDict):
    """A standard of one edition. ``code`` is empty if it has none."""

    code: str
    _id: str
    text: str
    grades: str


class ChangeAnswer(TypedDict):
    """One change. ``basis`` says how the standards were paired, with the ``score`` of a likeness.

    ``diff`` marks ``[-removed-]`` and ``{+added+}`` words, if one standard has other words now.
    """

    kind: Kind
    left: list[Reference]
    right: list[Reference]
    basis: str
    score: NotRequired[float]
    diff: NotRequired[str]


class Task(TypedDict):
    """A task of a teacher of the grade: ``add``, ``drop`` or ``revise`` a standard."""

    action: Action
    code: str
    text: str
    why: str


class ComparisonAnswer(TypedDict):
    """The answer of the tool. ``counts`` has kept standards, which ``changes`` may leave out."""

    success: bool
    message: str
    left: str
    right: str
    grades: list[str]
    counts: dict[Kind, int]
    changes: list[ChangeAnswer]
    for_teacher: NotRequired[list[Task]]
    notes: list[str]
    digests: Digests
