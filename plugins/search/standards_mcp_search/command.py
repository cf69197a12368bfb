"""``standards-mcp search``."""

from __future__ import annotations

import re
import textwrap
from typing import Any, Final, cast

import click

from standards_mcp import ToolCaller
from standards_mcp.commands import Look, examples, json_option, print_json, print_text

_COMMAND_TERMS = {
    "find_relevant_standards": "`standards-mcp search`",
    "max_results": "--top",
    "activity (?=is|has)": "TEXT ",
}
_HEADLINE: Final[Look] = {r"^\d+\. .*?(?=  \(score|$)": "strong", r"\bweak(?=\)$)": "warning"}
_QUIET: Final[Look] = {".+": "quiet"}


@click.command(
    "search",
    epilog=examples(
        'search "Students fold paper strips into equal parts" --grade 3',
        'search "persuasive letters" --subject ELA --top 10 --json',
        'search "comparing fractions" --open',
    ),
)
@click.argument("text")
@click.option("--grade", help="Grade or grades, for example 3, K-2 or 'high school'.")
@click.option("--subject", help="Subject, for example math or ELA.")
@click.option("--top", type=int, help="How many standards to show, 1 to 50.")
@click.option("--open", "in_browser", is_flag=True, help="Search in a page in your browser.")
@json_option
@click.pass_context
def search_command(  # noqa: PLR0913  - its options
    ctx: click.Context,
    *,
    text: str,
    grade: str | None,
    subject: str | None,
    top: int | None,
    in_browser: bool,
    as_json: bool,
) -> None:
    """Find the standards that fit the activity described by TEXT.

    Exit code 1 when nothing is found, 2 when an option is wrong. --open needs the plugin views.
    """
    if in_browser:
        if subject or top or as_json:
            raise click.UsageError("--open takes --grade, but not --subject, --top or --json")
        _open_page(ctx, text, grade or "")
        return
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


def _open_page(ctx: click.Context, text: str, grade: str) -> None:
    """Run `views explore` with the query.

    Raises:
        click.ClickException: The plugin views has no commands here, with the reason.
    """
    root = ctx.find_root()
    views = cast("click.Group", root.command).get_command(root, "views")
    explore = cast("click.Group", views).get_command(ctx, "explore")
    ctx.invoke(cast("click.Command", explore), query=text, grade=grade)


def _show(answer: dict[str, Any]) -> None:
    for rank, standard in enumerate(answer["results"], 1):
        weak = ", weak" if standard.get("weak") else ""
        headline = f"{rank}. {_name(standard)}  (score {standard['score']:.2f}{weak})"
        lines = textwrap.fill(headline, 79, subsequent_indent="   ", break_on_hyphens=False)
        print_text(lines, look=_HEADLINE)
        publisher = standard.get("jurisdiction_title") or answer["jurisdiction_title"]
        _paragraph(f"{standard['standard_set_title']}, {publisher}", _QUIET)
        _paragraph(standard.get("description") or standard["content"])
        if why := standard.get("why"):
            _paragraph(f"Why: {why}", _QUIET)
        if twins := standard.get("also_in"):
            names = (
                twin.get("statement_notation") or f"in {twin['standard_set_title']}"
                for twin in twins
            )
            _paragraph(f"Also: {', '.join(dict.fromkeys(names))}", _QUIET)
        if "statement_notation" not in standard:
            print_text(f"   id {standard['_id']}", look=_QUIET)
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


def _paragraph(text: str, look: Look | None = None) -> None:
    lines = textwrap.fill(text, 79, initial_indent="   ", subsequent_indent="   ")
    print_text(lines, look=look)
