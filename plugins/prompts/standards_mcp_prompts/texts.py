"""What the prompts say.

Each is a plan in numbered steps that names the tools by the names that clients see. What the user
wrote stands in a tag of its own, so that a model can tell it from the plan.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from typing import Annotated, Final

from pydantic import Field

SEARCH: Final = "find_relevant_standards"
DETAILS: Final = "get_standard_details"
BROWSE: Final = "browse_standards"
RELATED: Final = "get_related_standards"

Tools = Mapping[str, str]
Grade = Annotated[str, Field(description="Grade, such as K, 3 or 9; leave out for any.")]
Subject = Annotated[str, Field(description="Subject, such as Mathematics; leave out for any.")]

_HONESTY: Final = """\
Cite every standard by its code (statement_notation) and use only standards that the tools returned:
none from memory. Where text_status is 'paraphrase', say once that the wording is not the official
one. If a tool finds nothing or fails, say so and what you tried."""


def align_lesson(
    lesson: Annotated[str, Field(description="What students do in the lesson, in plain words.")],
    grade: Grade = "",
    subject: Subject = "",
    *,
    tools: Tools,
) -> str:
    """Return the prompt."""
    details = tools.get(DETAILS)
    read_on = f"Read the closest ones in full with {details} before you decide." if details else ""
    steps = f"""
        Break the lesson into the two to four things that students really do or make.

        For each of them call {tools[SEARCH]} with that description as
        activity{_arguments(grade, subject)}.

        Keep a standard only if students practise what it asks; a shared word or topic is not
        enough. {read_on}

        Answer with a table: code, what it asks in a few words, which part of the lesson meets it,
        and how fully (meets, partly, prepares). At most six rows, the best first.

        End with one change to the lesson that would turn a 'partly' into a 'meets'.
    """
    task = f"Find the standards that this lesson meets{_for(grade, subject)}."
    return _plan(task, {"lesson": lesson}, steps)


def unpack_standard(
    standard: Annotated[
        str, Field(description="A code such as 3.NF.A.1, or another id of the standard.")
    ],
    *,
    tools: Tools,
) -> str:
    """Return the prompt."""
    related = ""
    if tool := tools.get(RELATED):
        related = f"""Call {tool} with the same standard_id and relation 'previous_grade', then
            'next_grade', to see where students come from and where they go."""
    steps = f"""
        Call {tools[DETAILS]} with the standard as standard_id. If there are several matches, ask
        which is meant, unless one is plainly right. {related}

        Say in one sentence, without terms of the trade, what a student can do who has learned it.

        Then list: the skills (verbs) and the ideas (nouns) in it; what must be known before; words
        to teach; two usual misunderstandings, each with a question that uncovers it.

        Write it as an 'I can' sentence for students, and as two sentences for families.

        Give one quick task that shows whether a student has it, and what a right answer has.
    """
    return _plan("Unpack this standard in plain words.", {"standard": standard}, steps)


def build_progression(
    idea: Annotated[
        str, Field(description="The idea or skill to follow, such as fractions on a number line.")
    ],
    first_grade: Annotated[str, Field(description="Where it begins, such as K or 2.")],
    last_grade: Annotated[str, Field(description="Where it ends, such as 5.")],
    subject: Subject = "",
    *,
    tools: Tools,
) -> str:
    """Return the prompt."""
    related = ""
    if tool := tools.get(RELATED):
        related = f"""From one standard in the middle, call {tool} with relation 'previous_grade'
            and 'next_grade', and mend the line where it leads elsewhere."""
    steps = f"""
        For each grade from {_quoted(first_grade)} to {_quoted(last_grade)} call {tools[SEARCH]}
        with the idea, put as students of that grade would meet it, as activity and the grade as
        grade{_arguments("", subject)}.

        Read the best one or two of each grade in full with {tools[DETAILS]}. {related}

        Answer with one row a grade: code, what is new in it, what it builds on, and one task that
        shows the step. Say where a grade has no such standard.

        End with the two steps at which students most often fall behind, and what to look for there.
    """
    return _plan("Lay out how this idea grows from grade to grade.", {"idea": idea}, steps)


def check_coverage(
    unit: Annotated[str, Field(description="The unit: its goals, lessons and tasks.")],
    grade: Grade = "",
    subject: Subject = "",
    standards: Annotated[
        str, Field(description="Codes that the unit should meet, if they are set.")
    ] = "",
    *,
    tools: Tools,
) -> str:
    """Return the prompt."""
    if standards.strip():
        expected = f"Read each of the given standards with {tools[DETAILS]}."
    elif tool := tools.get(BROWSE):
        expected = f"""Find what is expected with {tool}: from the set of this grade and subject
            down to the headings that the unit is about, and the standards below them."""
    else:
        expected = f"""Find what is expected: read with {tools[DETAILS]} the heading (a parent)
            above the standards that step 1 found, and what else stands below it."""
    steps = f"""
        List the lessons and tasks of the unit, and for each what students do. Call {tools[SEARCH]}
        with each as activity{_arguments(grade, subject)}.

        {expected}

        Compare. Answer with a table: code; taught, practised, assessed (yes or no each, with the
        lesson); verdict: met, touched or missing.

        Name the lessons that meet no standard, without judging them.

        End with the smallest change that closes the most important gap.
    """
    task = f"Check which standards this unit covers{_for(grade, subject)}."
    return _plan(task, {"unit": unit, "standards": standards}, steps)


def differentiate_activity(
    activity: Annotated[str, Field(description="The activity as it is planned.")],
    grade: Grade = "",
    subject: Subject = "",
    students: Annotated[
        str, Field(description="Who is in the class: languages, needs, strengths.")
    ] = "",
    *,
    tools: Tools,
) -> str:
    """Return the prompt."""
    if tool := tools.get(RELATED):
        around = f"Call {tool} with it and relation 'previous_grade', then 'next_grade'"
    else:
        around = f"""Call {tools[SEARCH]} with the same activity and the grade before, then the
            grade after"""
    steps = f"""
        Call {tools[SEARCH]} with the activity as activity{_arguments(grade, subject)}, and choose
        the one standard that it is mainly about.

        {around}: what students may still need, and what comes after.

        Write three versions: with support, as planned, and further. Each keeps the standard's verb,
        names what changed (materials, numbers or texts, steps, help, way to answer), and takes no
        more than five lines.

        Add a question to put to everybody at the end, which all three versions prepare.
    """
    task = f"Vary this activity so that every student works on its standard{_for(grade, subject)}."
    return _plan(task, {"activity": activity, "students": students}, steps)


def _plan(task: str, given: Mapping[str, str], steps: str) -> str:
    """Return a prompt.

    Args:
        given: What the user wrote, by its name; what is empty is left out.
        steps: Paragraphs, each of which becomes a numbered step.
    """
    quoted = [
        f"<{name}>\n{text.strip()}\n</{name}>" for name, text in given.items() if text.strip()
    ]
    paragraphs = [" ".join(text.split()) for text in steps.split("\n\n")]
    numbered = [_fill(f"{number}. {text}") for number, text in enumerate(paragraphs, 1)]
    return "\n\n".join([task, *quoted, "\n".join(numbered), _HONESTY])


def _fill(line: str) -> str:
    return textwrap.fill(
        line, 100, subsequent_indent="   ", break_on_hyphens=False, break_long_words=False
    )


def _for(grade: str, subject: str) -> str:
    """Return the scope as the end of a sentence."""
    words = [f"grade {grade.strip()}" if grade.strip() else "", subject.strip()]
    scope = ", ".join(word for word in words if word)
    return f" ({scope})" if scope else ""


def _arguments(grade: str, subject: str) -> str:
    """Return the arguments of a search that narrow it, as the end of a sentence."""
    given = [
        f"{name} {_quoted(value)}"
        for name, value in (("grade", grade), ("subject", subject))
        if value.strip()
    ]
    return f", {' and '.join(given)}" if given else ""


def _quoted(text: str) -> str:
    return f"'{text.strip()}'"
