"""The public types of pages that plugins have on the admin page.

A plugin returns an `AdminPage` from the hook ``register_admin_page``: its content as data, and
perhaps an import. The service has the address, the layout and the forms, checks the scope ``admin``
and the origin of forms, and writes the audit log. The objects need not inherit from these types.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from typing import Final, NamedTuple, Protocol, TypeAlias

from standards_mcp.transports import Host

log = logging.getLogger("standards_mcp.service")

_NAME: Final = re.compile("[a-z][a-z0-9-]{0,31}")

Progress: TypeAlias = Callable[[str, int, int], None]
"""Called with the phase of an import in words, the finished and the total items; 0 is unknown."""


class Table(Protocol):
    """A table of a page; the service shows the first rows of a long one."""

    title: str
    headings: Sequence[str]
    rows: Sequence[Sequence[str]]


class Field(Protocol):
    """A field in the form of an import: a line of text, or a box to tick, which then has "on"."""

    name: str
    label: str
    is_flag: bool


class Importer(Protocol):
    """Imports a file or an address, in a process of its own.

    Attributes:
        max_bytes: The largest file.
        hint: The formats and what the import changes, in a sentence or two.
        fields: More fields of the form.
        function: ``module:name`` of the function that imports. It gets the result of `arguments`
            and a `Progress`, and returns an `ImportResult` or raises a `StandardsMcpError`. It may
            be killed at any moment, and must leave the data whole then.
    """

    max_bytes: int
    hint: str
    fields: Sequence[Field]
    function: str

    def arguments(self, source: str, values: Mapping[str, str]) -> Mapping[str, object]:
        """Return the arguments of the function, as JSON data; they may contain secrets.

        Args:
            source: The path of a file, or an address that begins with http:// or https://.
            values: The values of `fields` that are not empty.

        Raises:
            StandardsMcpError: A value is wrong.
        """
        ...


class ImportResult(NamedTuple):
    """The result of an import, as an array of JSON.

    Attributes:
        message: The result in a sentence, with the next step if it is an error.
        is_error: True if nothing was imported.
        counts: Numbers by their labels.
        lists: Lines of text by their headings, such as the rejected records.
    """

    message: str
    is_error: bool
    counts: Mapping[str, int]
    lists: Mapping[str, Sequence[str]]


class AdminPage(Protocol):
    """A page at ``/admin/NAME``.

    Attributes:
        name: Up to 32 lower-case letters, digits and hyphens.
        title: The heading, and the text of the link.
        importer: What the form of the page imports; None for no form.
    """

    name: str
    title: str
    importer: Importer | None

    async def content(self) -> tuple[Mapping[str, str], Sequence[Table]]:
        """Return facts by their labels, and tables.

        Raises:
            StandardsMcpError: The content is not available; the text says why.
        """
        ...


def pages_of(host: Host, taken: Container[str]) -> Iterator[tuple[str, AdminPage]]:
    """Yield the pages of plugins, each with the name of its plugin.

    Args:
        taken: The names of the service's own pages, which a plugin cannot replace.
    """
    names = set[str]()
    for record in host.manager.records.values():
        try:
            for page in host.manager.call(record, "register_admin_page"):
                name = str(page.name)
                if _NAME.fullmatch(name) and name not in names and name not in taken:
                    names.add(name)
                    yield record.name, page
        except Exception:
            log.exception("a page of a plugin is left out", extra={"plugin": record.name})
