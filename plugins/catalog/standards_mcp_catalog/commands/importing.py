"""``standards-mcp data import``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import click

from standards_mcp.commands import Report, divert_stdout, examples, reports

from .workplace import ProgressLine, Workplace

if TYPE_CHECKING:
    from standards_mcp_catalog.importing.files import Document
    from standards_mcp_catalog.importing.readers import Format
    from standards_mcp_catalog.importing.report import Item, Problem
    from standards_mcp_catalog.importing.selection import Selection
    from standards_mcp_catalog.records import StandardRecord

STARTER: Final = "starter"
"""Name of the starter set among sources and sets."""


@click.command(
    "import",
    epilog=examples(
        "data import standards.csv",
        "data import --dry-run downloads/ more.zip",
        "data import package.json --jurisdiction Florida",
        "data import crosswalk.csv",
        "data import --from-api csp --jurisdiction Ohio --subject math",
        "data import --from-api case https://case.example.org",
    ),
)
@click.argument("sources", nargs=-1, metavar="[PATH|URL]...")
@click.option(
    "--format",
    "format_",
    type=click.Choice(["auto", "csp", "case", "jsonl", "csv", "crosswalk"]),
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
    "--jurisdiction",
    multiple=True,
    metavar="NAME",
    help="Whose standards they are, such as Florida or FL: the name of all, whatever the source "
    "says; of several, and from an API, only these are taken.",
)
@click.option(
    "--subject", multiple=True, help="Take only this one, for example math. May be repeated."
)
@click.option("--grade", multiple=True, help="Take only these grades, for example K-2.")
@click.option("--replace", is_flag=True, help="Delete what is gone from the sets that are read.")
@click.option("--dry-run", is_flag=True, help="Say what would change, and change nothing.")
@click.option("--strict", is_flag=True, help="Import nothing if anything must be skipped.")
@click.pass_obj
@reports
def import_command(workplace: Workplace, /, **given: Any) -> Report:
    """Load standards from each PATH (a file, a folder or an archive), each URL, or an API.

    A table with the columns from, to and relation is a crosswalk between standards.

    `starter` stands for the starter set. Official texts that are loaded stay as they are.

    What is loaded already and has not changed is not touched. Options that may be repeated take
    any of their values. Exit code 1 when nothing could be taken from the sources, 2 when the
    options are wrong.
    """
    from standards_mcp_catalog.importing.formats.values import clean
    from standards_mcp_catalog.importing.importer import (
        ImportOptions,
        StrictImportError,
        import_sources,
    )

    options = _Options(**given)
    if not all(map(clean, options.jurisdiction)):
        raise click.UsageError("--jurisdiction: the name is empty")
    how = ImportOptions(
        selection=_selection(options), replace=options.replace, dry_run=options.dry_run,
        strict=options.strict, jurisdiction=options.name,
    )  # fmt: skip
    store, notes = workplace.embedded.store, list[str]()
    with divert_stdout(), ProgressLine() as progress:
        documents = _documents(options, how.selection, workplace, progress)
        try:
            report = import_sources(store, documents, how, on_read=progress.read, progress=progress)
        except StrictImportError as error:
            report, notes = error.report, [f"Error: {error}"]
    code = 1 if notes or not report.has_effect else 0
    return Report(report.to_dict(), lambda: "\n".join(report.lines()), code, notes)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Options:
    """The options of the command line by their names."""

    sources: tuple[str, ...]
    format_: Format
    api: Literal["csp", "case"] | None
    api_key: str
    refresh: bool
    jurisdiction: tuple[str, ...]
    subject: tuple[str, ...]
    grade: tuple[str, ...]
    replace: bool
    dry_run: bool
    strict: bool

    @property
    def name(self) -> str:
        """New name of the jurisdiction of files; an API has several jurisdictions."""
        return self.jurisdiction[0] if len(self.jurisdiction) == 1 and self.api != "csp" else ""


def _selection(options: _Options) -> Selection:
    from standards_mcp_catalog.importing.selection import Selection
    from standards_mcp_catalog.vocabulary.grades import UnknownGradeError

    try:
        return Selection(
            jurisdictions=() if options.name else options.jurisdiction,
            subjects=options.subject,
            grades=options.grade,
        )
    except UnknownGradeError as error:
        raise click.UsageError(f"--grade: {error}") from None


def _documents(
    options: _Options, selection: Selection, workplace: Workplace, progress: ProgressLine
) -> Iterator[Iterable[Item]]:
    """Return the records of each document, after the records of the starter set."""
    from standards_mcp_catalog.importing.files import open_sources
    from standards_mcp_catalog.importing.readers import read_documents
    from standards_mcp_catalog.starter import starter_records
    from standards_mcp_catalog.vocabulary.names import proper_name

    sources = options.sources
    starter: list[Sequence[StandardRecord]] = []
    if STARTER in sources and not options.api and not Path(STARTER).exists():
        store = workplace.embedded.store
        starter = [starter_records() if options.dry_run else store.load_seed()]
        sources = tuple(source for source in sources if source != STARTER)
    if not (sources or starter or options.api == "csp"):
        raise click.UsageError("name a file, a folder or an address to import from")
    if options.api:
        documents = _from_api(options, selection, workplace, progress)
    else:
        documents = open_sources(sources)
    name = proper_name(options.name)
    return chain(starter, read_documents(documents, options.format_, jurisdiction=name))


def _from_api(
    options: _Options, selection: Selection, workplace: Workplace, progress: ProgressLine
) -> Iterator[Document | Problem]:
    from platformdirs import user_cache_path

    from standards_mcp_catalog.importing.services import (
        CSP_URL,
        case_documents,
        csp_documents,
        csp_web,
    )
    from standards_mcp_catalog.importing.web import Cache

    folder = user_cache_path("standards-mcp", appauthor=False) / "sources" / str(options.api)
    cache = Cache(folder, days=0 if options.refresh else 7)
    if options.api == "case":
        creators = replace(selection, jurisdictions=options.jurisdiction)
        for base_url in options.sources:
            yield from case_documents(base_url, creators, cache=cache, on_package=progress.fetched)
        return
    configured = workplace.settings.csp.api_key
    key = options.api_key.strip() or (configured.get_secret_value() if configured else "")
    for base_url in options.sources or (CSP_URL,):
        yield from csp_documents(
            selection, base_url=base_url, web=csp_web(key), cache=cache, on_set=progress.fetched
        )
