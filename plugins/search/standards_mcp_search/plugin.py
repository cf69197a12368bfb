"""The plugin: its settings, its tool and its command."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Annotated, Any, Literal

import click
from pydantic import AfterValidator, BeforeValidator, Field

from standards_mcp import (
    FilterExpression,
    InvalidInputError,
    Plugin,
    PluginSettings,
    Tool,
    hookimpl,
)
from standards_mcp_catalog import Catalog
from standards_mcp_catalog.arguments import as_text

from .answers import SearchEnvelope
from .arguments import is_given, is_limiting

MAX_RESULTS = 50
MAX_CHARACTERS = 8000

DESCRIPTION = """\
Find the educational standards that are loaded here (Common Core mathematics and English language \
arts, NGSS, C3 and CSTA, unless others were added) that a learning activity, lesson, worksheet or \
question meets. \
Describe the activity in plain English or Spanish: the actions of the students and the topic. Pass \
the grade whenever the user has named one, also earlier in the conversation: it decides more than \
any wording. If it is unknown and the results are of several grades, ask for it. Without grade and \
subject, all are searched. Answers with the best matches first, each with its official code \
(statement_notation), its text, what made it fit (why) and a relevance score from 0 to 1; a \
text_status of all results is beside them. For one standard's full record, its parts and its \
headings, call get_standard_details with its code or _id."""
INSTRUCTIONS = """\
Educational standards for teachers.
Call {find_relevant_standards} with a plain description of a learning activity to get the \
standards it meets, best first; add the grade, and the subject if the user names one.
Quote statement_notation when you cite a standard.
Where text_status is 'paraphrase', say that the wording is not official, and link source_url.
"""


def _existing_grade(grade: str | None) -> str | None:
    """Refuse an unknown grade as a part of the type, so that overrides of admins are checked."""
    if is_limiting(grade):
        from standards_mcp_catalog.vocabulary.grades import parse_grades

        parse_grades(grade)
    return grade


Activity = Annotated[
    str,
    Field(
        description="The students' activity in plain words, for example 'comparing fractions with "
        "fraction strips and a number line'. Up to 8,000 characters."
    ),
]
ResultCount = Annotated[
    int, Field(ge=1, le=MAX_RESULTS, description="How many standards to return, 1 to 50.")
]
Grade = Annotated[
    str | None,
    BeforeValidator(as_text),
    AfterValidator(_existing_grade),
    Field(
        description="The students' grade or grades; pass it if it is known: 'K', '3', '3rd grade', "
        "'K-2', '3, 4', 'high school'; 'any' ignores a grade in the text."
    ),
]
Subject = Annotated[
    str | None, Field(description="Subject: 'math', 'ELA', or the name of a subject; or 'any'.")
]


Detail = Annotated[
    Literal["short", "full"],
    Field(
        description="short: content is a standard's own text. full: content begins with the "
        "headings above it, and description is its own text."
    ),
]


class SearchSettings(PluginSettings):
    """``[plugins.search]``.

    Attributes:
        max_results: A search returns this many standards if the client does not say how many.
    """

    max_results: int = Field(5, ge=1, le=MAX_RESULTS)


class SearchPlugin(Plugin[SearchSettings]):
    """Contributes ``find_relevant_standards`` and ``standards-mcp search``."""

    title = "Educational standards"
    settings_type = SearchSettings
    instructions = INSTRUCTIONS
    needs = (Catalog,)

    def _catalog(self) -> Catalog:
        return self.context.service(Catalog)

    @hookimpl
    def register_tools(self) -> Iterable[Tool]:
        """Return the one tool."""
        return [
            Tool(
                name="find_relevant_standards",
                title="Find relevant standards",
                description=DESCRIPTION,
                function=_search_function(self._catalog, self.settings.max_results),
                read_only=True,
                idempotent=True,
                open_world=False,
                returns_untrusted_text=True,
                accepts_filters=True,
                check_argument=self._check_argument,
            )
        ]

    async def _check_argument(self, name: str, value: Any) -> None:
        """Refuse a subject without standards in the catalog."""
        from .scope import scope_filter

        if name == "subject":
            await scope_filter(self._catalog(), None, value, None)

    @hookimpl
    def register_commands(self) -> Iterable[click.Command]:
        """Return ``standards-mcp search``."""
        from .command import search_command

        return [search_command]


def _search_function(open_catalog: Callable[[], Catalog], default_count: int) -> Callable[..., Any]:
    """Return the tool's function; the configured number of results is its default."""

    async def find_relevant_standards(
        activity: Activity,
        max_results: ResultCount = default_count,
        grade: Grade = None,
        subject: Subject = None,
        detail: Detail = "short",
        *,
        filter: FilterExpression | None = None,  # noqa: A002  - the host's name for it
    ) -> SearchEnvelope:
        from standards_mcp_catalog.relations import retired_hits

        from .envelope import no_results_envelope, results_envelope
        from .languages import message_in
        from .scope import how_to_widen, scope_filter
        from .text_search import search_by_text

        text, catalog = _checked_text(activity), open_catalog()
        expression = await scope_filter(catalog, grade, subject, filter)
        answer = await search_by_text(
            catalog,
            text,
            max_results,
            expression,
            reads_grade=not is_given(grade),
            reads_subject=not is_given(subject),
        )
        if answer.result.hits:
            retired = await retired_hits(catalog, answer.result.hits)
            envelope = results_envelope(
                answer.result, retired, answer.missing, full=detail == "full"
            )
        else:
            advice = await how_to_widen(catalog, answer.text, grade, subject, filter)
            envelope = no_results_envelope(advice, (*answer.missing, *answer.result.notes))
        if answer.language:
            envelope["message"] = message_in(answer.language, envelope["message"])
        return envelope

    return find_relevant_standards


def _checked_text(activity: str) -> str:
    text = activity.strip()
    if not text:
        raise InvalidInputError(
            "activity is empty. Describe the students' activity, for example 'measuring the "
            "classroom with rulers'."
        )
    if len(text) > MAX_CHARACTERS:
        raise InvalidInputError(
            f"activity has {len(text):,} characters, at most {MAX_CHARACTERS:,} are allowed. "
            "Shorten it to the students' activity."
        )
    return text
