"""A small catalog with two jurisdictions, in both stores."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
from support.catalogs import STORES, FilledCatalogs

from standards_mcp.config.loading import LoadedSettings
from standards_mcp.config.models.settings import Settings
from standards_mcp.host import Host
from standards_mcp.loading.records import PluginInfo
from standards_mcp_catalog import Catalog, StandardRecord
from standards_mcp_catalog.importing.formats.tree import Node, build_tree
from standards_mcp_catalog.local.catalog import LocalCatalog
from standards_mcp_resources import ResourcesPlugin

GUID = "6B9BF846F1EF4A2C8C7A1B2C3D4E5F60"
ALAND = {"jurisdiction_id": GUID, "jurisdiction_title": "Aland Common Standards"}
BORDURIA = {"jurisdiction_id": "borduria", "jurisdiction_title": "Borduria"}
ODD_ID = "own id/1&2?x=%20#+"

Rows = Iterable[tuple[str, str, str, str]]

MATH = [
    # id, parent, code, text
    ("D3", "", "3.NF", "Fractions as numbers"),
    ("C3", "D3", "3.NF.A", "Understand a fraction as part of a whole"),
    ("S31", "C3", "3.NF.A.1", "Understand a unit fraction as one part of a whole"),
    ("S32", "C3", "3.NF.A.2", "Place a fraction on a number line"),
    ("S310", "C3", "3.NF.A.10", "Share a cake"),
]
NEXT_MATH = [
    ("D4", "", "4.NF", "Fractions go on"),
    ("S41", "D4", "4.NF.A.1", "Explain why a fraction equals another fraction of the same whole"),
    ("S42", "D4", "4.NF.A.2", "Compare two fractions"),
    ("M4", "", "4.MD", "Measurement"),
    ("S43", "M4", "4.MD.A.1", "Know a unit of a whole system, part by part"),
]
FIFTH_MATH = [("D5", "", "5.NF", "Fractions end"), ("S51", "D5", "5.NF.B.3", "See a fraction")]
SIXTH_MATH = [
    ("N6", "", "6.NS", "Numbers"),
    ("S61", "N6", "6.NS.A.1", "Divide a fraction by a fraction"),
    ("E6", "", "6.EE", "Expressions"),
    ("S62", "E6", "6.EE.A.1", "See a fraction in an expression"),
]
STORIES_3 = [("R31", "", "RL.3.1", "Ask about a story"), ("R32", "", "RL.3.2", "Retell a story")]
STORIES_4 = [
    ("R41", "", "RL.4.1", "Refer to details of a story"),
    ("R42", "", "RL.4.2", "Find the theme of a story"),
    ("L41", "", "L.4.1", "Grammar of sentences"),
    ("L41a", "L41", "L.4.1a", "Use relative pronouns"),
    ("F43", "", "RF.4.3", "Decode words and sentences"),
]
STORIES_5 = [
    ("R51", "", "RL.5.1", "Quote the words of a story"),
    ("L51", "", "L.5.1", "Grammar of verbs"),
    ("L51a", "L51", "L.5.1a", "Use conjunctions as words"),
]
SCIENCE_3 = [
    ("B1", "", "B.3", "Matter and energy"),
    ("B2", "B1", "B.3.1", "Learners sort materials by what they are made of"),
    ("T3", "B1", "B.3.2", "Sorting"),
    ("T31", "T3", "B.3.2.1", "Learners sort coins"),
    ("B3", "", "", "Weather"),
]
SCIENCE_4 = [
    ("B4", "", "B.4", "Matter and Energy."),
    ("B5", "B4", "B.4.7", "Learners mix materials and sort them again"),
    ("T4", "B4", "B.4.9", "Sorting"),
    ("T41", "T4", "B.4.9.1", "Learners sort stamps"),
    ("B6", "", "B.4.8", "Learners sort materials of the weather"),
]


def standards(
    rows: Rows, grade: str, subject: str, place: Mapping[str, str], **fields: Any
) -> list[StandardRecord]:
    nodes = [
        Node(id=id_, parents=(parent,) if parent else (), notation=code, description=text)
        for id_, parent, code, text in rows
    ]
    title = f"{subject} {grade}"

    def set_fields(_: object) -> dict[str, Any]:
        return {
            **place,
            "standard_set_id": f"{place['jurisdiction_title'][:1]}-{subject[:4]}-{grade}",
            "standard_set_title": title,
            "subject": subject,
            "text_status": "paraphrase" if grade == "03" else "official",
            **fields,
        }

    levels = {"K-12": ["K", *(f"{each:02}" for each in range(1, 13))]}.get(grade, [grade])
    built = build_tree(nodes, set_fields, "test")
    return [
        each.model_copy(update={"education_levels": tuple(levels)})
        for each in built
        if isinstance(each, StandardRecord)
    ]


def all_records() -> list[StandardRecord]:
    english = "English Language Arts"
    return [
        *standards(MATH, "03", "Mathematics", ALAND, source_url="https://example.org/3.NF"),
        *standards(NEXT_MATH, "04", "Mathematics", ALAND),
        *standards(FIFTH_MATH, "05", "Mathematics", ALAND),
        *standards(SIXTH_MATH, "06", "Mathematics", ALAND),
        *standards(STORIES_3, "03", english, ALAND),
        *standards(STORIES_4, "04", english, ALAND),
        *standards(STORIES_5, "05", english, ALAND),
        *standards([("A1", "", "CCRA.R.1", "Read the words of a story")], "K-12", english, ALAND),
        *standards(
            [
                (ODD_ID, "", "6.X", "Read words and sentences of a story"),
                ("X2", "", "3.NF.A.1", "A pie"),
            ],
            "06", english, BORDURIA,
        ),
        *standards([("X4", "", "4.NF.A.5", "One part of a whole")], "04", "Mathematics", BORDURIA),
        *standards([("A0", "", "RL.5.1", "Quote a poem")], "05", english, BORDURIA),
        *standards(SCIENCE_3, "03", "Science", BORDURIA),
        *standards(SCIENCE_4, "04", "Science", BORDURIA, also_in_set_ids=["Other"]),
        *standards(
            [("P1", "", "P.1", "Name one part of a whole, a unit fraction")],
            "03", "Math", BORDURIA,
        ),
    ]  # fmt: skip


@pytest.fixture(scope="session")
def catalogs(tmp_path_factory: pytest.TempPathFactory) -> FilledCatalogs:
    return FilledCatalogs(all_records(), tmp_path_factory.mktemp("resources") / "catalog")


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
async def catalog(store: str, catalogs: FilledCatalogs, tmp_path: Path) -> AsyncIterator[Catalog]:
    async with catalogs.opened(store, tmp_path / "catalog") as catalog:
        yield catalog


@pytest.fixture
def unfilled(tmp_path: Path) -> LocalCatalog:
    return LocalCatalog(tmp_path / "unfilled", "none")


MakeHost = Callable[..., Host]


@pytest.fixture
def make_host(tmp_path: Path) -> MakeHost:
    """Return a function that loads the plugin alone over a catalog."""

    def make(catalog: Catalog) -> Host:
        installed = [PluginInfo(name="resources", load=lambda: ResourcesPlugin)]
        loaded = LoadedSettings(Settings(state_dir=tmp_path / "state", strict=True), None)
        host = Host(loaded, installed=installed, services={Catalog: catalog})
        host.load()
        return host

    return make


Ask = Callable[..., Any]


@pytest.fixture
def ask(catalog: Catalog, make_host: MakeHost) -> Ask:
    """Return a function that calls a tool as a client would."""
    host = make_host(catalog)

    async def ask(tool: str, **arguments: Any) -> Any:
        return (await host.call_tool(tool, arguments)).structured

    return ask
