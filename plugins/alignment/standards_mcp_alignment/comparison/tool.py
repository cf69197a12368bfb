"""The tool ``compare_standards`` and its prompt."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Final, Literal

from pydantic import BeforeValidator, Field

from standards_mcp import Prompt, Tool, ToolResult
from standards_mcp_catalog import Catalog
from standards_mcp_catalog.arguments import as_text

from .answers import ComparisonAnswer

if TYPE_CHECKING:
    from standards_mcp_catalog import StandardRecord

    from .changes import Change
    from .editions import Edition
    from .pairing import Link

_TIMEOUT: Final = 120
_ENCODER: Final = "minilm"
DESCRIPTION: Final = """\
Compare two sets of standards, or two editions of a state's: which standards were reworded (with \
the words that changed), moved to another grade, split, merged, new, gone or kept. Relations that \
sources state come first, then equal texts, then likeness of words and meaning: each change has \
its basis. With grade, also list what a teacher of this grade must add, drop and revise. Name a \
side by the id or title of a set, or by a jurisdiction, with the year of an edition if it has \
several ('Ohio 2017'). For the counterparts of one standard, call get_related_standards instead."""

Side = Annotated[
    str,
    Field(
        description="A standard set by its id or title, or a jurisdiction, with words of the title "
        "or the year of one edition: 'Ohio 2017'."
    ),
]
Grade = Annotated[
    str,
    BeforeValidator(as_text),
    Field(description="One grade, such as '3' or '9-12': only what concerns it."),
]
Subject = Annotated[str, Field(description="The subject, if the sides have several: 'math'.")]
Detail = Annotated[
    Literal["short", "full"], Field(description="full: also list the standards that are kept.")
]


def comparison_tool(open_catalog: Callable[[], Catalog]) -> Tool:
    """Return the tool ``compare_standards``."""

    async def compare_standards(
        left: Side,
        right: Side,
        grade: Grade = "",
        subject: Subject = "",
        detail: Detail = "short",
    ) -> ToolResult:
        from anyio import to_thread

        from standards_mcp_alignment.digests import digest, records_digest
        from standards_mcp_alignment.loaded import one_grade, paraphrase_notes

        from .editions import open_editions
        from .likeness import MIN_SCORE
        from .report import as_markdown, comparison_answer

        catalog = open_catalog()
        levels = one_grade(grade) if grade.strip() else ()
        one, other, notes = await open_editions(catalog, left, right, subject)
        links = await _links(catalog, one.records)
        changes, model = await to_thread.run_sync(_compared, one, other, links)
        answer = comparison_answer(
            (one, other),
            changes,
            levels,
            [*notes, *paraphrase_notes([*one.records, *other.records]), *catalog.notes()],
            {
                "catalog": records_digest([*one.records, *other.records]),
                "model": model,
                "settings": digest([left, right, grade, subject, detail, MIN_SCORE]),
                "input": digest([sorted(one.ids), sorted(other.ids)]),
            },
            with_kept=detail == "full",
        )
        return ToolResult(text=as_markdown(answer, changes), structured=dict(answer))

    return Tool(
        name="compare_standards",
        title="Compare two sets or editions of standards",
        description=DESCRIPTION,
        function=compare_standards,
        output_schema=ComparisonAnswer,
        read_only=True,
        idempotent=True,
        open_world=False,
        returns_untrusted_text=True,
        timeout=_TIMEOUT,
    )


async def _links(catalog: Catalog, records: Sequence[StandardRecord]) -> list[Link]:
    """Return the relations to successors that sources state for *records*."""
    from .pairing import Link

    stated = await catalog.relations(records, ("exactMatchOf", "replacedBy"))
    return [
        Link(record.id, each.kind, each.record.id, each.origin)
        for record, relations in zip(records, stated, strict=True)
        for each in relations
        if each.record
    ]


def _compared(one: Edition, other: Edition, links: Sequence[Link]) -> tuple[list[Change], str]:
    """Return the changes, and the name of the text encoder."""
    from standards_mcp_encoders import open_encoder

    from .changes import changes_of
    from .pairing import paired
    from .statements import in_tree_order, statement_of

    encoder = open_encoder(_ENCODER)
    left, right = (
        [statement_of(record) for record in in_tree_order(each.records)] for each in (one, other)
    )
    return changes_of(left, right, paired(left, right, links, encoder.encode)), encoder.name


def comparison_prompt() -> Prompt:
    """Return the prompt for a teacher whose state has a new edition."""
    return Prompt(
        name="adopt_new_edition",
        title="Move to a new edition of standards",
        description=(
            "Find out what a new edition of standards changes for one grade, and plan the work. "
            "Needs compare_standards."
        ),
        function=_prompt,
        needs=("compare_standards",),
        uses=("get_standard_details",),
    )


def _prompt(
    old: Annotated[str, Field(description="The old edition or set, such as 'Ohio 2010'.")],
    new: Annotated[str, Field(description="The new edition or set, such as 'Ohio 2017'.")],
    grade: Annotated[str, Field(description="The grade, such as K, 3 or 9-12.")],
    subject: Annotated[str, Field(description="The subject, such as Mathematics.")],
    *,
    tools: Mapping[str, str],
) -> str:
    details = tools.get("get_standard_details")
    reading = f" Read both in full with {details} where the texts are cut." if details else ""
    return f"""\
Tell me what changes for a teacher when these standards are replaced.

1. Call {tools["compare_standards"]} with left {old!r}, right {new!r}, grade {grade!r} and \
subject {subject!r}. If it lists editions or sets to choose from, ask me which ones.
2. For each pair that rests on likeness and not on a stated relation, say whether both ask the \
same of students.{reading}
3. Answer with three lists, to add, to drop and to revise: each standard with its code, the work \
of students now, and their work before.
4. Say which old lessons can stay, and name the two changes that take the most work.

Cite codes from the answer only. If the text of a standard is a paraphrase, say so once."""
