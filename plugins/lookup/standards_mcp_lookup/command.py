"""``standards-mcp lookup``."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable
from typing import Any, Final

import click

from standards_mcp import ToolCaller
from standards_mcp.commands import Look, examples, json_option, print_json, print_text

from .details import SEARCH_ADVICE

_PLAIN_SUCCESS = "Retrieved standard details"
_RELATIVES = ("ancestors", "children", "siblings")
_COMMAND_TERMS = {
    "find_relevant_standards": "`standards-mcp search`",
    "get_standard_details": "`standards-mcp lookup`",
    "standard_id": "ID",
}
_STRONG: Final[Look] = {".+": "strong"}
_QUIET: Final[Look] = {".+": "quiet"}


@click.command(
    "lookup",
    epilog=examples(
        "lookup 3.NF.A.1",
        "lookup hsf-le.a.1a CCSS.ELA-Literacy.RL.4.1 --json",
        'lookup "3.NF.A.1, 3.NF.A.2 and NY-4.NF.1"',
    ),
)
@click.argument("ids", nargs=-1, required=True, metavar="ID...")
@json_option
@click.pass_context
def lookup_command(ctx: click.Context, *, ids: tuple[str, ...], as_json: bool) -> None:
    """Show the standards named by each ID: a code such as 3.NF.A.1, a GUID, an ASN id or a URI.

    One ID may hold up to 20 of them, separated by commas. Exit code 1 when any of them is not
    found, 2 when one is not an ID. With several IDs, --json joins the answers.
    """
    call: ToolCaller = ctx.obj
    answers = [call("get_standard_details", {"standard_id": item}).structured or {} for item in ids]
    if as_json:
        print_json(_joined(answers))
    else:
        for answer in answers:
            _show(answer)
    failures = [answer for answer in answers if not answer.get("success")]
    if failures:
        ctx.exit(2 if any(map(_is_invalid, failures)) else 1)
    if any(answer.get("not_found") for answer in answers):
        ctx.exit(1)


def _is_invalid(answer: dict[str, Any]) -> bool:
    return answer.get("error_type") == "invalid_input"


def _joined(answers: list[dict[str, Any]]) -> dict[str, Any]:
    if len(answers) == 1:
        return answers[0]
    failures = [answer for answer in answers if not answer["success"]]
    incomplete = [answer for answer in answers if answer.get("not_found")]
    joined = {
        "success": not failures,
        "results": [result for answer in answers for result in answer["results"]],
        "message": " ".join(
            answer["message"] for answer in [*failures, *incomplete] or answers[:1]
        ),
    }
    if missing := [code for answer in answers for code in answer.get("not_found", ())]:
        joined["not_found"] = missing
    return joined | ({"error_type": failures[0]["error_type"]} if failures else {})


def _show(answer: dict[str, Any]) -> None:
    if not answer["success"]:
        _print_message(answer["message"])
        return
    for record in answer["results"]:
        print_text(_name(record), look=_STRONG)
        _paragraph(record["description"])
        _paragraph(f"{record['standard_set_title']}, {record['jurisdiction_title']}", _QUIET)
        print_text(f"  id {record['_id']}", look=_QUIET)
        if record.get("text_status") == "paraphrase":
            print_text(f"  A paraphrase. The official wording is at\n  {record['source_url']}")
        for name in _RELATIVES:
            _show_relatives(name, record[name])
        print_text("")
    if answer["message"] != _PLAIN_SUCCESS:
        _print_message(answer["message"])


def _name(record: dict[str, Any]) -> str:
    """Return the code of a standard, or else its nearest heading, if possible one with a code."""
    if code := record.get("statement_notation"):
        return str(code)
    above = record["ancestors"][::-1]
    if not above:
        return "(no code)"
    nearest = next((each for each in above if each["statement_notation"]), above[0])
    words = f"{nearest['statement_notation'] or ''} {nearest['description']}"
    return textwrap.shorten(f"(no code) under {words}", 75, placeholder=" ...")


def _print_message(message: str) -> None:
    # Commands are not broken at their hyphens.
    text = textwrap.fill(_for_people(message), 79, break_on_hyphens=False)
    print_text(text, err=True)


def _for_people(message: str) -> str:
    """Replace names of tools and arguments by terms of the command line, except in quotes."""
    message = message.replace(SEARCH_ADVICE, 'Try: standards-mcp search "what students do".')
    for name, term in _COMMAND_TERMS.items():
        message = re.sub(rf"(?<!')\b{name}\b(?!')", term, message)
    return message


def _show_relatives(name: str, relatives: Iterable[dict[str, Any]]) -> None:
    for index, relative in enumerate(relatives):
        if index == 0:
            print_text(f"  {name}:", look=_STRONG)
        code = f"{relative['statement_notation']}  " if relative["statement_notation"] else ""
        line = textwrap.shorten(f"{code}{relative['description']}", 75, placeholder=" ...")
        print_text(f"    {line}")


def _paragraph(text: str, look: Look | None = None) -> None:
    lines = textwrap.fill(text, 79, initial_indent="  ", subsequent_indent="  ")
    print_text(lines, look=look)
