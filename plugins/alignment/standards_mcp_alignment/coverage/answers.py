"""The answer of ``check_coverage``, field for field."""

from typing import Literal, NotRequired

from typing_extensions import TypedDict

from standards_mcp_alignment.answers import Digests


class Standard(TypedDict):
    """A standard of the grade.

    ``by`` has the numbers of the activities that meet it, best first, and ``maybe_by`` those that
    only come near. ``score`` is the best score of any activity, from 0 to 1.
    """

    code: str
    _id: str
    text: str
    domain: str
    cluster: NotRequired[str]
    covered: bool
    by: list[int]
    score: float
    basis: NotRequired[Literal["code", "meaning"]]
    maybe_by: NotRequired[list[int]]


class Cluster(TypedDict):
    """A cluster with its number of standards and how many of them are covered."""

    code: str
    text: str
    standards: int
    covered: int


class Domain(Cluster):
    """A domain with its counts, its clusters and the codes that are missing."""

    clusters: list[Cluster]
    missing: list[str]


class ActivitySummary(TypedDict):
    """An activity by its number, and the codes of the standards it meets.

    ``elsewhere`` has codes that it states and that belong to another grade, subject or
    jurisdiction, or are headings. ``unknown`` has codes that are not loaded.
    """

    number: int
    text: str
    meets: list[str]
    elsewhere: NotRequired[list[str]]
    unknown: NotRequired[list[str]]


class PlanStep(TypedDict):
    """One activity of a plan, and the codes that it adds to those of the steps before."""

    activity: int
    adds: list[str]


class Plan(TypedDict):
    """The smallest selection of activities that covers all that can be covered.

    ``exact`` is false if there were too many activities to be certain that none is smaller.
    """

    steps: list[PlanStep]
    covers: int
    not_needed: list[int]
    exact: bool


class Met(TypedDict):
    """The meaning of ``covered``. ``measured`` is false if no scores of the store were measured."""

    score: float
    measured: bool
    meaning: str


class CoverageAnswer(TypedDict):
    """The answer of the tool."""

    success: bool
    message: str
    jurisdiction: str
    subjects: list[str]
    grades: list[str]
    met: Met
    summary: list[Domain]
    standards: list[Standard]
    activities: list[ActivitySummary]
    plan: NotRequired[Plan]
    notes: list[str]
    digests: Digests
