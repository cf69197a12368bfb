"""``standards-mcp data import``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

import click

from standards_mcp._utils.streams import divert_stdout
from standards_mcp.cli.invocation import Invocation
from standards_mcp.cli.output import examples, print_json

from .progress import ImportProgress

if TYPE_CHECKING:
    from standards_mcp.catalog.importing.problems import Problem
    from standards_mcp.catalog.importing.readers import Format
    from standards_mcp.catalog.importing.report import Report
    from standards_mcp.catalog.importing.selection import Wanted
    from standards_mcp.catalog.importing.sources.files import Document
    from standards_mcp.catalog.local.store import LocalStore
    from standards_mcp.catalog.records import StandardRecord

STARTER: Final = "starter"
"""What stands for the starter set among sources and sets."""


@click.command(
    "import",
    epilog=examples(
        "data import standards.csv",
        "data import --dry-run downloads/ more.zip",
        "data import --from-api csp --jurisdiction Ohio --subject math",
        "data import --from-api case https://case.example.org",
    ),
)
@click.argument("sources", nargs=-1, metavar="[PATH|URL]...")
@click.option(
    "--format",
    "format_",
    type=click.Choice(["auto", "csp", "case", "jsonl", "csv"]),
    default="auto",
    help="How to read the files; found out for each by default.",
)
@click.option(
    "--from-api",
    "api",
    type=click.Choice(["csp", "case"]),
    help="Read from the Common Standards Project, or from the CASE services at the given URLs.",
)
@click.option(
    "--api-key",
    default="",
    help="Key of the csp API, if any. Others see it on a command line; better set CSP_API_KEY in "
    "the environment or in .env.",
)
@click.option("--refresh", is_flag=True, help="Ask an API again for what is kept on disk.")
@click.option(
    "--jurisdiction", multiple=True, help="Take only this one: its id or part of a title."
)
@click.option(
    "--subject", multiple=True, help="Take only this one, for example math. May be repeated."
)
@click.option("--grade", multiple=True, help="Take only these grades, for example K-2.")
@click.option("--replace", is_flag=True, help="Delete what is gone from the sets that are read.")
@click.option("--dry-run", is_flag=True, help="Say what would change, and change nothing.")
@click.option("--strict", is_flag=True, help="Import nothing if anything must be skipped.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def import_command(ctx: click.Context, /, **given: Any) -> None:
    """Load standards from each PATH (a file, a folder or an archive), each URL, or an API.

    `starter` stands for the starter set. Official texts that are loaded stay as they are.

    What is loaded already and has not changed is not touched. Options that may be repeated take
    any of their values. Exit code 1 when nothing could be read, 2 when the
    options are wrong.
    """
    from standards_mcp.catalog.importing.importer import (
        ImportOptions,
        StrictImportError,
        import_sources,
    )
    from standards_mcp.catalog.importing.readers import read_documents

    wanted = _wanted(given)
    flags = {name: given[name] for name in ("replace", "dry_run", "strict")}
    options = ImportOptions(wanted=wanted, **flags)
    invocation = ctx.ensure_object(Invocation)
    store = invocation.embedded_catalog.store
    if given["api"] == "csp" and not given["api_key"].strip():
        configured = invocation.host.settings.catalog.csp.api_key
        given["api_key"] = configured.get_secret_value() if configured else ""
    with divert_stdout(), ImportProgress() as progress:
        starter = _starter(store, given)
        found = _documents(given, wanted, progress) if given["sources"] or not starter else ()
        documents = chain(starter, read_documents(found, cast("Format", given["format_"])))
        try:
            report = import_sources(
                store, documents, options, on_read=progress.read, progress=progress
            )
        except StrictImportError as error:
            progress.close()
            _print(error.report, as_json=given["as_json"])
            raise
    _print(report, as_json=given["as_json"])
    if not report.read:
        ctx.exit(1)


def _wanted(given: dict[str, Any]) -> Wanted:
    from standards_mcp.catalog.importing.selection import Wanted
    from standards_mcp.catalog.vocabulary.grades import UnknownGradeError

    try:
        return Wanted(
            jurisdictions=given["jurisdiction"], subjects=given["subject"], grades=given["grade"]
        )
    except UnknownGradeError as error:
        raise click.UsageError(f"--grade: {error}") from None


def _starter(store: LocalStore, given: dict[str, Any]) -> list[Sequence[StandardRecord]]:
    """Take the starter set out of the sources, and return it if it was among them."""
    if given["api"] or STARTER not in given["sources"] or Path(STARTER).exists():
        return []
    from standards_mcp.catalog.starter import starter_records

    given["sources"] = tuple(source for source in given["sources"] if source != STARTER)
    return [starter_records() if given["dry_run"] else store.offer_seed()]


def _documents(
    given: dict[str, Any], wanted: Wanted, progress: ImportProgress
) -> Iterator[Document | Problem]:
    sources: tuple[str, ...] = given["sources"]
    if given["api"] == "csp":
        return _csp(given, wanted, progress)
    if not sources:
        raise click.UsageError("name a file, a folder or an address to import from")
    if given["api"] == "case":
        return _case(given, wanted, progress)
    from standards_mcp.catalog.importing.sources.files import open_sources

    return open_sources(sources)


def _csp(
    given: dict[str, Any], wanted: Wanted, progress: ImportProgress
) -> Iterator[Document | Problem]:
    from standards_mcp.catalog.importing.sources.csp_api import BASE_URL, csp_documents, csp_web
    from standards_mcp.catalog.importing.sources.web import Cache

    cache = Cache(_cache_folder() / "csp", days=0 if given["refresh"] else 7)
    for base_url in given["sources"] or (BASE_URL,):
        yield from csp_documents(
            wanted, base_url=base_url, web=csp_web(given["api_key"]), cache=cache,
            on_set=progress.fetched,
        )  # fmt: skip


def _case(
    given: dict[str, Any], wanted: Wanted, progress: ImportProgress
) -> Iterator[Document | Problem]:
    from standards_mcp.catalog.importing.sources.case_api import case_documents
    from standards_mcp.catalog.importing.sources.web import Cache

    cache = Cache(_cache_folder() / "case", days=0 if given["refresh"] else 7)
    for base_url in given["sources"]:
        yield from case_documents(base_url, wanted, cache=cache, on_package=progress.fetched)


def _cache_folder() -> Path:
    from platformdirs import user_cache_path

    return user_cache_path("standards-mcp", appauthor=False) / "sources"


def _print(report: Report, *, as_json: bool) -> None:
    if as_json:
        print_json(report.to_dict())
    else:
        click.echo("\n".join(report.lines()))
