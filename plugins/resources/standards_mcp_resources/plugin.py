"""The plugin: its resources, its tools, and their descriptions."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from typing import Annotated, Any, Final

from pydantic import Field

from standards_mcp import Plugin, resource, tool
from standards_mcp_catalog import Catalog

from .answers import Envelope, Level, Related, Relation
from .declared import GRADES, MAX_CHARACTERS, SETS, STANDARDS, SUBJECTS

JSON: Final = "application/json"
BROWSE: Final = """\
Walk through the educational standards that are loaded here from the top: without parent the \
jurisdictions (states and bodies), then the standard sets of one (a subject in a grade), then the \
headings and standards of a set, then the parts of a standard. Answers with the children \
of parent, in order, 50 a page, each with the number of its own children. To find standards by \
topic, call find_relevant_standards instead."""
RELATED: Final = """\
Find the standards around one: the relations that sources state (crosswalks, successors), \
then standards of similar meaning; its siblings under the same heading; its continuation in \
the next grade or its preparation in the previous grade of the same strand; or its counterparts in \
another jurisdiction (elsewhere), such as another state. Each result says how it was found \
(found_by: stated, tree, code, strand, heading or meaning): a stated result has a relation and its \
origin, and a result of a search has a score from 0 to 1. Call only stated results a crosswalk. \
For the parts and the headings of a standard, call get_standard_details."""

Parent = Annotated[
    str,
    Field(
        description="The _id or name of a jurisdiction or a standard set, the _id or code of a "
        "standard, or the beginning of codes, such as RL.3. Leave it out for the jurisdictions."
    ),
]
Page = Annotated[int, Field(ge=1, description="The page of a long answer, from 1.")]
StandardId = Annotated[
    str,
    Field(description="A code such as '3.NF.A.1', or a GUID, an ASN id or a CASE URI."),
]
WhichRelation = Annotated[
    Relation,
    Field(
        description="related: what sources state, then likeness in meaning; siblings; next_grade; "
        "previous_grade; or elsewhere: other jurisdictions."
    ),
]
Jurisdiction = Annotated[
    str,
    Field(
        max_length=MAX_CHARACTERS,
        description="For elsewhere only: the jurisdiction to look in, by name or id, such as "
        "'Texas'. Left out, all others are searched.",
    ),
]
Most = Annotated[
    int, Field(ge=1, le=20, description="How many standards to find by meaning, at most.")
]


class ResourcesPlugin(Plugin):
    """Contributes resources under ``standards://`` and two tools that walk the tree."""

    title = "Educational standards"
    needs = (Catalog,)

    async def complete_set(self, typed: str, _: Mapping[str, str]) -> list[str]:
        """Return the ids of the sets whose id or title begins with a text."""
        from . import completing

        return await completing.set_ids(self.context.service(Catalog), typed)

    async def complete_standard(self, typed: str, _: Mapping[str, str]) -> list[str]:
        """Return the codes of standards that begin with a text, or else such ids."""
        from . import completing

        return await completing.standard_ids(self.context.service(Catalog), typed)

    # Resources of the list first, then templates.

    @resource(SETS, name="sets", title="Standard sets", mime_type=JSON)
    async def all_sets(self) -> dict[str, Any]:
        """List the standard sets: a subject in a grade, of one jurisdiction."""
        return await self.sets()

    @resource(SUBJECTS, name="subjects", title="Subjects", mime_type=JSON)
    async def all_subjects(self) -> dict[str, Any]:
        """List the subjects that have standards, with how many."""
        return await self.subjects()

    @resource(GRADES, title="Grades", mime_type=JSON)
    async def grades(self) -> dict[str, Any]:
        """List the grades and levels that have standards, with how many."""
        from . import reading

        return await self._read(reading.grades(self.context.service(Catalog)))

    @resource(
        f"{SETS}{{?page}}",
        name="sets.page",
        title="Standard sets, by page",
        mime_type=JSON,
    )
    async def sets(self, page: Page = 1) -> dict[str, Any]:
        """List the standard sets, a hundred a page."""
        from . import reading

        return await self._read(reading.sets(self.context.service(Catalog), page))

    @resource(
        f"{SUBJECTS}{{?page}}",
        name="subjects.page",
        title="Subjects, by page",
        mime_type=JSON,
    )
    async def subjects(self, page: Page = 1) -> dict[str, Any]:
        """List the subjects that have standards, a hundred a page."""
        from . import reading

        return await self._read(reading.subjects(self.context.service(Catalog), page))

    @resource(
        f"{SETS}/{{id}}{{?page}}",
        name="set",
        title="A standard set with its standards",
        mime_type=JSON,
        complete={"id": complete_set},
    )
    async def standard_set(self, id: str, page: Page = 1) -> dict[str, Any]:  # noqa: A002
        """Read one standard set: its facts, and all of its standards in order."""
        from . import reading

        return await self._read(reading.standard_set(self.context.service(Catalog), id, page))

    @resource(
        f"{STANDARDS}/{{id}}",
        title="A standard",
        mime_type=JSON,
        complete={"id": complete_standard},
    )
    async def standard(self, id: str) -> dict[str, Any]:  # noqa: A002
        """Read everything about one standard, by its id or its code."""
        from . import reading

        return await self._read(reading.standard(self.context.service(Catalog), id))

    @resource(
        f"{STANDARDS}/{{id}}/tree{{?page}}",
        name="standard.tree",
        title="A standard with all below it",
        mime_type=JSON,
        complete={"id": complete_standard},
    )
    async def tree(self, id: str, page: Page = 1) -> dict[str, Any]:  # noqa: A002
        """Read a heading or a standard with its subtree, in order."""
        from . import reading

        return await self._read(reading.tree(self.context.service(Catalog), id, page))

    async def _read(self, contents: Awaitable[dict[str, Any]]) -> dict[str, Any]:
        read = await contents
        notes = self.context.service(Catalog).notes()
        return {**read, "notes": notes} if notes else read

    @tool(
        title="Browse standards",
        description=BROWSE,
        read_only=True,
        idempotent=True,
        open_world=False,
        returns_untrusted_text=True,
    )
    async def browse_standards(self, parent: Parent = "", page: Page = 1) -> Level:
        """Return the children of a jurisdiction, a set or a standard."""
        from .browsing import browse

        return await browse(self.context.service(Catalog), parent, page)

    @tool(
        title="Get related standards",
        description=RELATED,
        read_only=True,
        idempotent=True,
        open_world=False,
        returns_untrusted_text=True,
    )
    async def get_related_standards(
        self,
        standard_id: StandardId,
        relation: WhichRelation = "related",
        jurisdiction: Jurisdiction = "",
        max_results: Most = 5,
    ) -> Envelope[Related]:
        """Return the standards that are related to one."""
        from .relations import related_standards

        return await related_standards(
            self.context.service(Catalog), standard_id, relation, jurisdiction, max_results
        )
