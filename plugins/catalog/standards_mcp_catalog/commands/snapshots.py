"""``standards-mcp data publish`` and ``data pull``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from standards_mcp.commands import Report, counted, divert_stdout, examples, reports

from .workplace import ProgressLine, Workplace

if TYPE_CHECKING:
    from standards_mcp_catalog.snapshots.format import Manifest

_MB: Final = 1_000_000


@click.command(
    "publish", epilog=examples("data publish /srv/standards", "data publish --json /mnt/shared")
)
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@click.pass_obj
@reports
def publish_command(workplace: Workplace, folder: Path) -> Report:
    """Write a signed snapshot of the catalog into FOLDER, for `data pull` on other machines.

    Serve FOLDER with any web server, or share it. The first run makes the private key, and each
    prints the public key for the nodes. If nothing has changed since the last run, nothing is
    written. The embedded catalog is published, even if searches use Pinecone.
    """
    from standards_mcp_catalog.snapshots.format import public_text
    from standards_mcp_catalog.snapshots.keys import private_key
    from standards_mcp_catalog.snapshots.publishing import publish

    with divert_stdout(), ProgressLine() as progress:
        key = private_key(workplace.state_folder())
        result = publish(workplace.embedded.store, folder, key, progress)
    public, manifest = public_text(key), result.manifest
    verb = "Published" if result.is_new else "Nothing has changed since"
    lines = [
        f"{verb} {manifest.title}: {_contents(manifest)}, {_megabytes(result.written)} written.",
        f"Public key: {public}",
        "Nodes have it in their configuration:",
        f'[plugins.catalog.snapshots]\npublisher = "{public}"',
    ]
    data = _data(manifest, is_new=result.is_new) | {"written": result.written, "publisher": public}
    return Report(data, lambda: "\n".join(lines))


@click.command(
    "pull",
    epilog=examples(
        "data pull https://standards.example.org/snapshot", "data pull /mnt/standards --json"
    ),
)
@click.argument("source")
@click.option("--replace", is_flag=True, help="Replace records of your own, too.")
@click.pass_obj
@reports
def pull_command(workplace: Workplace, source: str, *, replace: bool) -> Report:
    """Make the catalog a copy of the snapshot in SOURCE, a folder or an https address.

    [plugins.catalog.snapshots] publisher names the key that must have signed it. Only changed parts
    are downloaded, and an interrupted pull goes on where it stopped. Servers search the old data
    until the new data is complete. Afterwards, imports and other changes here are refused.
    """
    from standards_mcp_catalog.snapshots.pulling import pull
    from standards_mcp_catalog.snapshots.sources import open_source

    publisher = workplace.settings.snapshots.publisher
    if publisher is None:
        raise click.UsageError(
            "set [plugins.catalog.snapshots] publisher to the public key that `standards-mcp data "
            "publish` prints at the publisher"
        )
    with divert_stdout(), ProgressLine() as progress:
        result = pull(
            workplace.embedded.store, open_source(source), publisher, replace_own=replace,
            progress=lambda done, total: progress.show(f"Pulled {done / total:.0%}"),
        )  # fmt: skip
    manifest = result.manifest
    verb = "The catalog is now" if result.is_new else "The catalog was already"
    text = f"{verb} {manifest.title}: {_contents(manifest)}, {_megabytes(result.downloaded)} read."
    data = _data(manifest, is_new=result.is_new) | {"downloaded": result.downloaded}
    return Report(data, lambda: text)


def _contents(manifest: Manifest) -> str:
    return f"{counted(manifest.records, 'record')}, {_megabytes(manifest.size)}"


def _megabytes(size: int) -> str:
    return f"{size / _MB:,.1f} MB"


def _data(manifest: Manifest, *, is_new: bool) -> dict[str, Any]:
    facts = manifest.model_dump(mode="json", include={"counter", "time", "records", "model"})
    return facts | {"size": manifest.size, "is_new": is_new}
