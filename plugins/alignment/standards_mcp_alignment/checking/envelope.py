"""The structured answer of `check_alignment`."""

from typing import Final, Literal, NotRequired, TypeAlias

from typing_extensions import TypedDict

Status: TypeAlias = Literal[
    "ok",
    "wrong_grade",
    "wrong_subject",
    "other_jurisdiction",
    "retired",
    "misquoted",
    "unknown",
    "not_loaded",
]
STATUSES: Final[tuple[Status, ...]] = (
    "ok", "misquoted", "wrong_grade", "wrong_subject", "other_jurisdiction", "retired", "unknown",
    "not_loaded",
)  # fmt: skip
"""The statuses, from the best to the worst."""


class Nearest(TypedDict):
    """A standard that may be meant.

    ``by`` is how it was found: by the ``spelling`` of the code, by the ``meaning`` of the words
    next to it, by both, or as the ``successor`` of a retired standard.
    """

    code: str
    _id: str
    description: str
    by: Literal["spelling", "meaning", "both", "successor"]


class CheckedCode(TypedDict):
    """A code, or a quoted standard without a code, in the order of the text.

    ``code`` is the notation of the standard, and ``written`` the text in the lesson. ``start`` and
    ``end`` are positions in the lesson in characters, also of repetitions (``repeated``).
    ``note`` explains the status. ``diff`` shows the changes of the official wording:
    ``[-official-]{+lesson+}``. ``quote`` is ``exact`` or ``part`` if the official wording is kept.
    """

    code: str
    written: str
    status: Status
    note: str
    nearest: list[Nearest]
    start: NotRequired[int]
    end: NotRequired[int]
    repeated: NotRequired[list[list[int]]]
    _id: NotRequired[str]
    description: NotRequired[str]
    education_levels: NotRequired[list[str]]
    subject: NotRequired[str]
    jurisdiction_title: NotRequired[str]
    text_status: NotRequired[str]
    quote: NotRequired[Literal["exact", "part"]]
    diff: NotRequired[str]


class SuggestedStandard(TypedDict):
    """A standard that a part of the lesson may meet; ``score`` is from 0 to 1."""

    code: str
    _id: str
    description: str
    score: float


class Suggestion(TypedDict):
    """A part of the lesson without a code, and standards for it, best first."""

    passage: str
    start: int
    end: int
    standards: list[SuggestedStandard]


class Assumed(TypedDict):
    """The scope that the codes were compared with.

    ``grade_source`` is ``text`` if the lesson states the grade, and ``argument`` if the call does.
    """

    grade: NotRequired[str]
    grade_source: NotRequired[Literal["argument", "text"]]
    subject: NotRequired[str]
    jurisdiction: NotRequired[str]


class CheckedCatalog(TypedDict):
    """The catalog that was used: its number of records, and the time of its last change."""

    backend: str
    records: int
    changed: NotRequired[str]


class AlignmentCheck(TypedDict):
    """The answer. ``counts`` has the number of codes of each status.

    ``input_digest`` is the SHA-256 of the text and the codes of the call.
    """

    success: bool
    message: str
    codes: list[CheckedCode]
    suggestions: list[Suggestion]
    counts: dict[str, int]
    assumed: Assumed
    catalog: NotRequired[CheckedCatalog]
    input_digest: NotRequired[str]
    error_type: NotRequired[str]
