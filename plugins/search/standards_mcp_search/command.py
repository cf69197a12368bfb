"""``standards-mcp search``."""

from __future__ import annotations

import re
import textwrap
from typing import Any

import click

from standards_mcp import ToolCaller
from standards_mcp.commands import examples, json_option, print_json, print_text

_COMMAND_TERMS = {
    "find_relevant_standards": "`standards-mcp search`",
    "max_results": "--top",
    "activity (?=is|has)": "TEXT ",
}


@click.command(
    "search",
    epilog=examples(
        'search "Students fold paper strips into equal parts" --grade 3',
        'search "persuasive letters" --subject ELA --top 10 --json',
    ),
)
@click.argument("text")
@click.option("--grade", help="Grade or grades, for example 3, K-2 or 'high school'.")
@click.option("--subject", help="Subject, for example math or ELA.")
@click.option("--top", type=int, help="How many standards to show, 1 to 50.")
@json_option
@click.pass_context
def search_command(
    ctx: click.Context,
    *,
    text: str,
    grade: str | None,
    subject: str | None,
    top: int | None,
    as_json: bool,
) -> None:
    """Find the standards that fit the activity described by TEXT.

    Exit code 1 when nothing is found, 2 when an option is wrong.
    """
    call: ToolCaller = ctx.obj
    arguments = {"activity": text, "grade": grade, "subject": subject, "max_results": top}
    given = {name: value for name, value in arguments.items() if value is not None}
    answer = call("find_relevant_standards", given).structured or {}
    if as_json:
        print_json(answer)
    else:
        _show(answer)
    if not answer.get("success"):
        ctx.exit(2 if answer.get("error_type") == "invalid_input" else 1)


def _show(answer: dict[str, Any]) -> None:
    for rank, standard in enumerate(answer["results"], 1):
        weak = ", weak" if standard.get("weak") else ""
        headline = f"{rank}. {_name(standard)}  (score {standard['score']:.2f}{weak})"
        print_text(textwrap.fill(headline, 79, subsequent_indent="   ", break_on_hyphens=False))
        publisher = standard.get("jurisdiction_title") or answer["jurisdiction_title"]
        _paragraph(f"{standard['standard_set_title']}, {publisher}")
        _paragraph(standard.get("description") or standard["content"])
        if why := standard.get("why"):
            _paragraph(f"Why: {why}")
        if twins := standard.get("also_in"):
            names = (
                twin.get("statement_notation") or f"in {twin['standard_set_title']}"
                for twin in twins
            )
            _paragraph(f"Also: {', '.join(dict.fromkeys(names))}")
        if "statement_notation" not in standard:
            print_text(f"   id {standard['_id']}")
        print_text("")
    print_text(textwrap.fill(_for_people(answer["message"]), 79), err=not answer["success"])


def _name(standard: dict[str, Any]) -> str:
    """Return the code of a standard, or the heading above it if it has no code."""
    if code := standard.get("statement_notation"):
        return str(code)
    above = standard.get("heading")
    if not above:
        return "(no code)"
    words = f"{above.get('statement_notation', '')} {above['description']}"
    return textwrap.shorten(f"(no code) under {words}", 75, placeholder=" ...")


def _for_people(message: str) -> str:
    """Replace names of tools and arguments by terms of the command line, except in quotes."""
    for name, term in _COMMAND_TERMS.items():
        message = re.sub(rf"(?<!')\b{name}\b(?!')", term, message)
    return message


def _paragraph(text: str) -> None:
    print_text(textwrap.fill(text, 79, initial_indent="   ", subsequent_indent="   "))
