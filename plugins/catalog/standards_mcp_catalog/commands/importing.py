"""``standards-mcp data import``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

import click

from standards_mcp.commands import Report, divert_stdout, examples, reports
from standards_mcp_catalog.importing.readers import Format

from .workplace import ProgressLine, Workplace

if TYPE_CHECKING:
    from standards_mcp_catalog.importing.files import Document
    from standards_mcp_catalog.importing.report import Item, Problem
    from standards_mcp_catalog.importing.report import Report as ImportReport
    from standards_mcp_catalog.importing.selection import Selection
    from standards_mcp_catalog.records import StandardRecord

STARTER: Final = "starter"
"""The starter set, as a source of `data import` and as the SET of `data remove`."""


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
    type=click.Choice(get_args(Format)),
    default="auto",
    help="Format of the files; detected for each file by default.",
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
    help="Key of the csp API, if any. Other users can read a command line; better set CSP_API_KEY "
    "in the environment or in .env.",
)
@click.option("--refresh", is_flag=True, help="Request the cached answers of an API again.")
@click.option(
    "--jurisdiction",
    multiple=True,
    metavar="NAME",
    help="Jurisdiction, such as Florida or FL. If only one is read, it gets this name; of several, "
    "and with --from-api csp, only this one is imported. May be repeated.",
)
@click.option(
    "--subject", multiple=True, help="Import only this subject, such as math. May be repeated."
)
@click.option("--grade", multiple=True, help="Import only these grades, such as K-2.")
@click.option("--replace", is_flag=True, help="Delete records no longer in the sets that are read.")
@click.option("--dry-run", is_flag=True, help="Show the changes, and make none.")
@click.option("--strict", is_flag=True, help="Import nothing if anything must be skipped.")
@click.pass_obj
@reports
def import_command(workplace: Workplace, /, **values: Any) -> Report:
    """Load standards from each PATH (a file, a folder or an archive), each URL, or an API.

    A table with the columns from, to and relation is a crosswalk between standards.

    The source `starter` is the starter set. It does not replace official texts.

    Unchanged records are not written again. If an option is repeated, a record needs to fit only
    one of its values. Exit code 1 if nothing could be read from the sources or --strict refused
    them, 2 if the options are wrong.
    """
    report, errors = import_with(workplace, ImportCommandOptions(**values))
    code = 1 if errors or not report.has_effect else 0
    return Report(report.to_dict(), lambda: "\n".join(report.lines()), code, errors)


def import_with(
    workplace: Workplace, options: ImportCommandOptions
) -> tuple[ImportReport, list[str]]:
    """Run an import.

    Returns:
        The report, and the error of a strict import.

    Raises:
        click.UsageError: The options are wrong.
        CatalogError: The catalog cannot be read or written.
    """
    from standards_mcp_catalog.importing.formats.values import clean
    from standards_mcp_catalog.importing.importer import (
        ImportOptions,
        StrictImportError,
        import_sources,
    )
    from standards_mcp_catalog.importing.selection import Selection
    from standards_mcp_catalog.vocabulary.grades import UnknownGradeError

    if not all(map(clean, options.jurisdiction)):
        raise click.UsageError("--jurisdiction: the name is empty")
    wanted = () if options.new_name else options.jurisdiction
    try:
        selection = Selection(jurisdictions=wanted, subjects=options.subject, grades=options.grade)
    except UnknownGradeError as error:
        raise click.UsageError(f"--grade: {error}") from None
    import_options = ImportOptions(
        selection=selection, replace=options.replace, dry_run=options.dry_run,
        strict=options.strict, jurisdiction=options.new_name,
    )  # fmt: skip
    store, errors = workplace.embedded.store, list[str]()
    if not options.dry_run:
        store.check_changeable()
    with divert_stdout(), workplace.progress() as progress:
        documents = _documents(options, selection, workplace, progress)
        try:
            report = import_sources(
                store, documents, import_options, on_read=progress.read, progress=progress
            )
        except StrictImportError as error:
            report, errors = error.report, [f"Error: {error}"]
    return report, errors


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportCommandOptions:
    """Arguments and options of `data import`."""

    sources: tuple[str, ...]
    format_: Format = "auto"
    api: Literal["csp", "case"] | None = None
    api_key: str = ""
    refresh: bool = False
    jurisdiction: tuple[str, ...] = ()
    subject: tuple[str, ...] = ()
    grade: tuple[str, ...] = ()
    replace: bool = False
    dry_run: bool = False
    strict: bool = False

    @property
    def new_name(self) -> str:
        """New name of the jurisdiction, or "" if the option --jurisdiction is only a filter."""
        return self.jurisdiction[0] if len(self.jurisdiction) == 1 and self.api != "csp" else ""


def _documents(
    options: ImportCommandOptions,
    selection: Selection,
    workplace: Workplace,
    progress: ProgressLine,
) -> Iterator[Iterable[Item]]:
    """Return an iterator over the items of each document, the starter set (if any) first."""
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
        documents = open_sources(sources, workplace.web)
    name = proper_name(options.new_name)
    return chain(starter, read_documents(documents, options.format_, jurisdiction=name))


def _from_api(
    options: ImportCommandOptions,
    selection: Selection,
    workplace: Workplace,
    progress: ProgressLine,
) -> Iterator[Document | Problem]:
    from platformdirs import user_cache_path

    from standards_mcp_catalog.importing import services
    from standards_mcp_catalog.importing.web import Cache, Web

    folder = user_cache_path("standards-mcp", appauthor=False) / "sources" / str(options.api)
    cache = Cache(folder, days=0 if options.refresh else 7)
    if options.api == "case":
        # A new name is missing in *selection*, but still selects the frameworks to download.
        selection = replace(selection, jurisdictions=options.jurisdiction)
        for base_url in options.sources:
            web = Web(cache=cache)
            yield from services.case_documents(
                base_url, selection, web=web, progress=progress.fetched
            )
        return
    secret = workplace.settings.csp.api_key
    key = options.api_key.strip() or (secret.get_secret_value() if secret else "")
    for base_url in options.sources or (services.CSP_URL,):
        web = services.csp_web(key, cache)
        yield from services.csp_documents(
            selection, base_url=base_url, web=web, progress=progress.fetched
        )
