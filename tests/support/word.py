"""Word documents and archives for the tests of programs that read them."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable
from typing import Any

import docx


def word_document(change: Callable[[Any], None] | None = None) -> bytes:
    """Return a Word document with a heading, a list, a table and a last line."""
    word, file = docx.Document(), io.BytesIO()
    word.core_properties.title = ""
    word.add_heading("Platform engineer", 1)
    word.add_paragraph("Ran Kafka clusters", style="List Bullet")
    word.add_paragraph("")
    table = word.add_table(2, 2)
    table.cell(0, 0).text = "Go\nRust"
    table.cell(0, 1).text = "five years"
    table.cell(1, 0).merge(table.cell(1, 1)).text = "Terraform"
    word.add_paragraph("The end")
    if change is not None:
        change(word)
    word.save(file)
    return file.getvalue()


def zipped(parts: dict[str, int]) -> bytes:
    """Return an archive with files of these sizes, all zeros."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, size in parts.items():
            archive.writestr(name, bytes(size))
    return file.getvalue()
