"""The page of the catalog on the admin page of the service: what is loaded, and an import.

The service shows the content and the form, see `standards_mcp_service.admin.contributed`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, NoReturn, TypeAlias, cast

from pydantic import SecretStr
from typing_extensions import override

from standards_mcp.commands import counted
from standards_mcp_catalog import Catalog
from standards_mcp_catalog.results import CatalogStats
from standards_mcp_catalog.settings import CatalogSettings, LocalCatalogSettings

from .workplace import ProgressLine, Workplace

if TYPE_CHECKING:
    from standards_mcp_catalog.importing.report import Report

_Progress: TypeAlias = Callable[[str, int, int], None]
_MAX_BYTES: Final = 256_000_000


class _Field(NamedTuple):
    name: str
    label: str
    is_flag: bool = False


class _Table(NamedTuple):
    title: str
    headings: Sequence[str]
    rows: Sequence[Sequence[str]]


class CatalogImporter:
    """The import of the page, with the rules of ``standards-mcp data import``."""

    max_bytes = _MAX_BYTES
    hint = (
        "CASE packages, files of the Common Standards Project, tables (CSV) and exports (JSONL),"
        " also packed as zip, tar or gz. Unchanged records are not written again, and searches"
        " use the old data until the end."
    )
    fields = (
        _Field("jurisdiction", "Jurisdiction, such as Florida, if not as in the source"),
        _Field("replace", "Delete records that are no longer in the sets that are read", True),
        _Field("strict", "Import nothing if anything must be skipped", True),
        _Field("dry_run", "Show the changes, and make none", True),
    )
    function = f"{__name__}:run_import"

    def __init__(self, settings: CatalogSettings) -> None:
        self._settings = settings

    def arguments(self, source: str, values: Mapping[str, str]) -> Mapping[str, object]:
        """Return the arguments of `run_import`."""
        local = self._settings.local
        return {
            "source": source,
            "jurisdiction": values.get("jurisdiction", ""),
            **{name: name in values for name in ("replace", "strict", "dry_run")},
            "path": str(self._settings.path or ""),
            "model": local.model,
            "api_key": local.api_key.get_secret_value() if local.api_key else "",
        }


class CatalogPage:
    """The page ``/admin/data``.

    Args:
        catalog: Returns the catalog that searches use.
    """

    name, title = "data", "Data"

    def __init__(self, settings: CatalogSettings, catalog: Callable[[], Catalog]) -> None:
        self._catalog = catalog
        # With Pinecone, an import alone would not change what searches use.
        self.importer = CatalogImporter(settings) if settings.choice[0] == "local" else None

    async def content(self) -> tuple[Mapping[str, str], Sequence[_Table]]:
        """Return the state of the catalog and its standard sets.

        Raises:
            CatalogError: The catalog cannot be read.
        """
        catalog = self._catalog()
        listing = await catalog.sets()  # fills a new catalog
        stats = await catalog.stats()
        rows = [
            (item.title, item.jurisdiction_title, item.subject, f"{item.records:,}")
            for item in listing.sets
        ]
        title = "Standard sets" if listing.complete else "Some of the standard sets"
        headings = ("Set", "Jurisdiction", "Subject", "Records")
        return _facts(stats), [_Table(title, headings, rows)]


def _facts(stats: CatalogStats) -> Mapping[str, str]:
    facts: dict[str, object] = {
        "Records": f"{stats.records:,}",
        "Store": stats.backend,
        "Location": stats.location,
        "Text model": stats.model or "none; searches go by words",
    }
    if stats.size_bytes is not None:
        facts["Size"] = f"{stats.size_bytes / 1e6:,.1f} MB"
    for key, value in stats.details.items():
        if isinstance(value, Mapping):
            counts = cast("Mapping[str, int]", value)
            facts[_label(key)] = ", ".join(f"{name} {count:,}" for name, count in counts.items())
        else:
            facts[_label(key)] = f"{value:,}" if isinstance(value, int) else value
    return {label: str(fact) for label, fact in facts.items()}


def _label(key: str) -> str:
    return key.replace("_", " ").capitalize()


class _JobProgress(ProgressLine):
    """Passes the progress of an import on."""

    def __init__(self, tell: _Progress) -> None:
        super().__init__()
        self._tell = tell

    @override
    def read(self, report: Report) -> None:
        self._tell("Reading records", report.read, 0)

    @override
    def __call__(self, done: int, total: int) -> None:
        self._tell("Embedding and indexing new texts", done, total)


def run_import(arguments: Mapping[str, Any], progress: _Progress) -> tuple[Any, ...]:
    """Import one source, in a process of its own.

    Returns:
        An ``ImportResult``.

    Raises:
        click.UsageError: The jurisdiction is not one.
        CatalogError: The catalog cannot be read or written.
    """
    from standards_mcp_catalog.importing.public import PublicWeb

    from .importing import ImportCommandOptions, import_with

    path, key = arguments["path"], arguments["api_key"]
    local = LocalCatalogSettings(model=arguments["model"], api_key=SecretStr(key) if key else None)
    workplace = Workplace(
        CatalogSettings(path=Path(path) if path else None, local=local),
        _no_catalog,
        _no_catalog,
        lambda: _JobProgress(progress),
        PublicWeb(),
    )
    source, jurisdiction = Path(arguments["source"]), arguments["jurisdiction"]
    options = ImportCommandOptions(
        sources=(arguments["source"],),
        jurisdiction=(jurisdiction,) if jurisdiction else (),
        **{name: arguments[name] for name in ("replace", "strict", "dry_run")},
    )
    progress("Opening the catalog", 0, 0)
    try:
        report, errors = import_with(workplace, options)
    finally:
        workplace.close()
    return _result(report, errors, f"{source.parent}{os.sep}" if source.is_absolute() else "")


def _no_catalog() -> NoReturn:
    raise NotImplementedError("an import uses the embedded catalog only")


def _result(report: Report, errors: Sequence[str], folder: str) -> tuple[Any, ...]:
    """Return an ``ImportResult``; the folder of a file is left out of its texts."""
    from standards_mcp_catalog.importing.report import KEPT_PER_REASON

    would = "would be " if report.dry_run else ""
    counts = {
        "Read": report.read,
        f"Records {would}added": report.new,
        f"Records {would}changed": report.changed,
        "Unchanged": report.unchanged,
        "Repeated in several sets or files, and joined": report.collapsed,
        f"Records {would}deleted": report.deleted,
        f"Records {would}taken out of a set": report.left,
        "Relations": report.relations,
        "Skipped": report.skipped_records,
    }
    skipped = [problem for problem in report.problems if problem.skipped]
    noted = [problem for problem in report.problems if not problem.skipped]
    lists = {
        "Skipped, by reason": _reasons(report.skipped),
        f"Skipped, the first {KEPT_PER_REASON} of each reason": [str(item) for item in skipped],
        "Corrected, by reason": _reasons(report.notes),
        f"Corrected, the first {KEPT_PER_REASON} of each reason": [str(item) for item in noted],
    }
    if errors:
        message = errors[0].removeprefix("Error: ")
    elif report.has_effect:
        message = f"{counted(report.written, 'record')} {would}written."
    else:
        message = (
            "Nothing could be read, and nothing is changed. Correct the source, and try again."
        )
    return (
        message,
        bool(errors) or not report.has_effect,
        {label: count for label, count in counts.items() if count or label == "Read"},
        {title: [line.replace(folder, "") for line in lines] for title, lines in lists.items()},
    )


def _reasons(counts: Mapping[str, int]) -> list[str]:
    return [f"{reason}: {count:,}" for reason, count in counts.items()]
