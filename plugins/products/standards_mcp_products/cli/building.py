"""The command that makes products of a file."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import click

from standards_mcp.commands import examples, json_option, print_result, progress_bar
from standards_mcp_products.building import SUFFIXES, Options, build, read_mapping
from standards_mcp_products.encoders import Encoder
from standards_mcp_products.service import catalogue_of
from standards_mcp_products.settings import NAMES, ProductsSettings

from .showing import report

_FILE: Final = click.Path(exists=True, dir_okay=False, path_type=Path)


def build_command(settings: ProductsSettings, state_dir: Path) -> click.Command:
    """Return the command ``build``."""
    about = f"Make the products of FILE ({', '.join(SUFFIXES)}) searchable."

    @click.command(
        "build",
        help=about,
        epilog=examples(
            "products build products.csv",
            "products build products.jsonl --mapping mapping.toml --dry-run",
        ),
    )
    @click.argument("file", type=_FILE)
    @click.option("--mapping", type=_FILE, help="Fields and their columns, in TOML or JSON.")
    @click.option("--collection", help="Another name than that of the settings.")
    @click.option("--limit", type=click.IntRange(min=1), help="Read only the first rows.")
    @click.option("--dry-run", is_flag=True, help="Only tell what would be done.")
    @json_option
    def build_products(
        file: Path,
        mapping: Path | None,
        collection: str | None,
        limit: int | None,
        *,
        dry_run: bool,
        as_json: bool,
    ) -> None:
        wanted = _named(settings, collection)
        columns = read_mapping(mapping)
        encoder = Encoder(settings.model, settings.embedding_api_key)
        with progress_bar("Building", is_shown=not as_json) as progress:
            built = build(
                catalogue_of(wanted, state_dir),
                file,
                columns,
                encoder,
                Options(limit, dry_run),
                progress,
            )
        print_result(built, lambda: report(built, dry_run=dry_run), as_json=as_json)

    return build_products


def _named(settings: ProductsSettings, collection: str | None) -> ProductsSettings:
    if collection is None:
        return settings
    if not re.fullmatch(NAMES, collection):
        raise click.UsageError(
            "--collection has 3 to 512 letters, digits, '.', '_' and '-', and begins and ends with "
            "a letter or digit."
        )
    return settings.model_copy(update={"collection": collection})
