"""Read documents as text: Markdown, HTML, plain text, reStructuredText, PDF and Word files.

``with DocumentReader() as reader: reader.read(path).text`` reads a file in another process, which a
damaged or malicious file may end. `KINDS` lists the file types by their suffixes. The libraries
that parse the files belong to the extra ``documents``.
"""

from .document import KINDS, Block, Document, DocumentError, Section
from .reader import DocumentReader, Limits

__all__ = ["KINDS", "Block", "Document", "DocumentError", "DocumentReader", "Limits", "Section"]
