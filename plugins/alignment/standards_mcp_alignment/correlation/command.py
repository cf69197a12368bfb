"""``standards-mcp alignment align``."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final, get_args

import anyio
import click
import filelock

from standards_mcp import InvalidInputError
from standards_mcp.commands import Report, counted, examples, progress_bar, reports
from standards_mcp.files import replacing
from standards_mcp_alignment.inputs.documents import Split
from standards_mcp_catalog import Catalog

from .features import DEPTH
from .journal import Journal
from .outcomes import AlignmentReport
from .report_texts import summary_lines
from .reports import BY_SUFFIX, Format, format_of, is_report, render
from .review import read_review, write_review
from .run import Options, align, read_inputs

_MOST_LINES: Final = 20


def align_command(open_catalog: Callable[[], Catalog]) -> click.Command:
    """Return the command ``align``.

    Args:
        open_catalog: Returns the catalog of the standards.
    """

    @click.command(
        "align",
        epilog=examples(
            "alignment align lessons --grade 4 --out alignment.html",
            "alignment align course.imscc --auto 0.95 --out course.csv",
        ),
    )
    @click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path))
    @click.option("--grade", default="", help="Grade of items that do not state one.")
    @click.option("--subject", default="", help="Subject of items that do not state one.")
    @click.option("--jurisdiction", default="", help="Only standards of this state or body.")
    @click.option(
        "--set", "standard_set", default="", help="Only this standard set, by title or id."
    )
    @click.option(
        "--top", type=click.IntRange(1, DEPTH - 1), default=3, show_default=True,
        help="Standards for an item.",
    )  # fmt: skip
    @click.option(
        "--auto", type=click.FloatRange(0, 1, min_open=True), metavar="PRECISION",
        help="Accept pairs automatically if held-out data supports this precision.",
    )  # fmt: skip
    @click.option(
        "--each", "split", type=click.Choice(get_args(Split)), default="file", show_default=True,
        help="Split documents into one item for each file or section.",
    )  # fmt: skip
    @click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="The report.")
    @click.option(
        "--format", "kind", type=click.Choice(get_args(Format)),
        help="Format of the report; default: by the suffix of --out, else markdown.",
    )  # fmt: skip
    @click.option(
        "--review", type=click.Path(dir_okay=False, path_type=Path),
        help="File with a person's decisions; default: beside --out.",
    )  # fmt: skip
    @reports
    def align_files(
        paths: tuple[Path, ...], out: Path | None, kind: Format | None, review: Path | None,
        **options: Any,
    ) -> Report:  # fmt: skip
        """Find the standards that the lessons and items in PATHS meet.

        PATHS are files and folders: Markdown, HTML, text, Word, PDF, CSV and JSON files, Common
        Cartridges and QTI items. With --out, a review file is written beside the report: write
        accept, reject or replace into it, and run again. A run that was interrupted goes on where
        it ended. Exit code 1 if a file cannot be read or there is no item, 2 for a wrong option or
        review file.
        """
        if out and not kind and not format_of(out):
            raise click.UsageError(f"--out ends with none of {', '.join(BY_SUFFIX)}; add --format")
        kind = kind or (format_of(out) if out else None) or "markdown"
        if out and not review:
            review = out.with_name(f"{out.stem}.review.csv")
        _check_outputs(paths, out, review)
        try:
            with _locked(path for path in (out, review) if out and path):
                report, open_rows = _run(open_catalog, paths, Options(**options), out, review)
                text = render(report, kind)
                if out:
                    with replacing(out) as file:
                        file.write(text)
        except InvalidInputError as error:
            raise click.UsageError(str(error)) from None
        exit_code = 1 if report.skipped or not report.outcomes else 0
        if not out:
            return Report(report.to_dict(), lambda: text.rstrip("\n"), exit_code, _notes(report))
        data = {"out": str(out), "review": str(review), "to_review": open_rows, **_short(report)}
        return Report(data, lambda: _out_text(report, out, review, open_rows), exit_code)

    return align_files


def _check_outputs(paths: Sequence[Path], out: Path | None, review: Path | None) -> None:
    """Check that the run replaces no input, and that it has two outputs.

    Raises:
        click.UsageError: An output is an input or the other output.
    """
    if out and review and out.resolve() == review.resolve():
        raise click.UsageError("--out and --review are the same file; name another one")
    inputs = {path.resolve() for path in paths}
    for option, path in (("--out", out), ("--review", review)):
        if path and path.resolve() in inputs:
            raise click.UsageError(f"{option} {path} is one of PATHS; name another file")
    # The review file is recognised when it is read.
    if out and out.is_file() and any(out.resolve().is_relative_to(path) for path in inputs):
        try:
            is_earlier_report = is_report(out)
        except OSError as error:
            raise click.UsageError(f"{out} cannot be read: {error.strerror}") from None
        if not is_earlier_report:
            raise click.UsageError(
                f"--out {out} is a file in PATHS, and no earlier report; name another file"
            )


def _run(
    open_catalog: Callable[[], Catalog],
    paths: Sequence[Path],
    options: Options,
    out: Path | None,
    review: Path | None,
) -> tuple[AlignmentReport, int]:
    """Return the report, and the number of pairs that a person has to review."""
    with ExitStack() as stack:
        decisions = read_review(review) if review else {}
        with progress_bar("Reading") as progress:
            own_files = [path for path in (out, review) if path]
            inputs = read_inputs(paths, options.split, progress, own_files)
        journal_path = out.with_name(f"{out.name}.journal") if out else None
        journal = stack.enter_context(Journal.opened(journal_path))
        catalog = open_catalog()
        with progress_bar("Aligning") as progress:
            report = anyio.run(
                partial(
                    _align_and_close, catalog, inputs, options,
                    journal=journal, decisions=decisions, progress=progress,
                )
            )  # fmt: skip
    open_rows = 0
    if review and out:
        # The person may have saved the file during the run.
        open_rows = write_review(review, report.outcomes, decisions | read_review(review))
    return report, open_rows


async def _align_and_close(catalog: Catalog, *arguments: Any, **options: Any) -> AlignmentReport:
    try:
        return await align(catalog, *arguments, **options)
    finally:
        await catalog.aclose()


@contextmanager
def _locked(paths: Iterable[Path]) -> Generator[None]:
    """Lock output files against other runs.

    Raises:
        click.ClickException: Another run writes one of them, or its folder cannot be written.
    """
    with ExitStack() as stack:
        # In one order, so that two runs never wait for each other.
        for path in sorted({path.resolve() for path in paths}):
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                stack.enter_context(filelock.FileLock(path.with_name(f".{path.name}.lock"), 0))
            except filelock.Timeout:
                raise click.ClickException(
                    f"another run is writing {path}; run again when it has ended"
                ) from None
            except OSError as error:
                raise click.ClickException(f"{path} cannot be written: {error.strerror}") from None
        yield


def _short(report: AlignmentReport) -> dict[str, Any]:
    data = report.to_dict()
    del data["items"]
    return data


def _notes(report: AlignmentReport) -> list[str]:
    """Return the lines for stderr if the report itself goes to stdout."""
    lines = [f"Not read: {file.name}: {file.reason}." for file in report.skipped]
    return [*lines[:_MOST_LINES], *_more(len(lines) - _MOST_LINES)]


def _out_text(report: AlignmentReport, out: Path, review: Path | None, open_rows: int) -> str:
    lines = list(summary_lines(report))
    shown = [*lines[:_MOST_LINES], *_more(len(lines) - _MOST_LINES), f"Report: {out}"]
    if review:
        shown.append(f"Review file: {review} ({counted(open_rows, 'open row')})")
    return "\n".join(shown)


def _more(count: int) -> list[str]:
    return [f"... and {count:,} more, in the report."] if count > 0 else []
