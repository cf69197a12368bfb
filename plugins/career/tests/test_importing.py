"""Files are imported whole or not at all, and each mistake is told with its place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from standards_mcp import InvalidInputError
from standards_mcp_career.database import Store
from standards_mcp_career.importing import import_files
from standards_mcp_career.records import (
    Atom,
    Interaction,
    Opportunity,
    Requirement,
    Tokens,
)
from standards_mcp_career.tables import scan

YAML = """
atoms:
  - atom_id: a-1
    domain: " Cloud OPS "
    title: " Platform "
    claim: Ran Kafka
    tags: [Kafka, "Terraform & Go"]
    verified: true
    evidence_refs: [" ", " https://example.org "]
"""
OPPORTUNITY: dict[str, Any] = {
    "opportunity_id": "o-1",
    "company": " Reed Works",
    "role_title": "Engineer",
    "requirements": [{"text": " Kafka\t", "tags": ["B", "a-b"], "required": False}],
}


def written(folder: Path, name: str, content: object) -> Path:
    file = folder / name
    file.write_text(content if isinstance(content, str) else json.dumps(content), "utf-8")
    return file


@pytest.mark.parametrize(("tokens", "tags"), [("meaningful", ("b",)), ("original", ())])
def test_records_are_imported_in_their_regular_form(
    store: Store, tmp_path: Path, tokens: Tokens, tags: tuple[str, ...]
):
    files = [
        written(tmp_path, "a.yaml", YAML),
        written(tmp_path, "o.json", {"opportunities": [OPPORTUNITY], "atoms": None}),
        written(
            tmp_path,
            "i.JSON",
            {"interactions": [{"interaction_id": "i-1", "opportunity_id": "o-1"}]},
        ),
    ]
    expected = {"atoms": 1, "opportunities": 1, "interactions": 1, "errors": []}
    assert import_files(store, files, tokens, dry_run=True) == expected
    with store.reading() as connection:
        assert list(scan(connection, Atom)) == []
    assert import_files(store, files, tokens) == expected
    with store.reading() as connection:
        assert list(scan(connection, Atom)) == [
            Atom(
                "a-1",
                "cloud ops",
                "Platform",
                "Ran Kafka",
                ("go", "kafka", "terraform"),
                verified=True,
                evidence_refs=("https://example.org",),
            )
        ]
        requirement = Requirement("Kafka", tags, required=False)
        assert list(scan(connection, Opportunity)) == [
            Opportunity("o-1", "Reed Works", "Engineer", "", (requirement,))
        ]
        assert list(scan(connection, Interaction)) == [Interaction("i-1", "o-1")]


@pytest.mark.parametrize(
    ("content", "where", "message"),
    [
        ("{", "", "cannot be read"),
        ("[" * 100_000, "", "cannot be read"),
        ("[]", "", "must be an object; expected atoms, opportunities, interactions"),
        (
            {"atom": []},
            ": atom",
            "unknown field; check its spelling; expected atoms, ",
        ),
        ({"atoms": {}}, ": atoms", "must be a list"),
        (
            {"atoms": [{"atom_id": "a", "claim": "c", "tags": "x"}]},
            ": atoms[0].tags",
            "must be a list",
        ),
        ({"atoms": ["x"]}, ": atoms[0]", "must be an object"),
        ({"atoms": [{}]}, ": atoms[0].atom_id", "Field required"),
        ({"atoms": [{"atom_id": ""}]}, ": atoms[0].atom_id", "atom_id must not be empty"),
        (
            {"atoms": [{"atom_id": "a", "claim": " "}]},
            ": atoms[0].claim",
            "claim must not be empty",
        ),
        ({"atoms": [{"atom_id": "a", "claim": "c", "tag": []}]}, ": atoms[0].tag", "unknown field"),
        (
            {"opportunities": [{**OPPORTUNITY, "company": ""}]},
            ": opportunities[0].company",
            "company must not be empty",
        ),
        (
            {"opportunities": [{**OPPORTUNITY, "requirements": [{"text": ""}]}]},
            ": opportunities[0].requirements[0].text",
            "invalid requirement: requirement text must not be empty",
        ),
        (
            {"opportunities": [{**OPPORTUNITY, "requirements": [{"text": "x", "tag": "y"}]}]},
            ": opportunities[0].requirements[0].tag",
            "unknown field; check its spelling",
        ),
        (
            {"opportunities": [{**OPPORTUNITY, "requirements": [{"tags": []}]}]},
            ": opportunities[0].requirements[0].text",
            "Field required",
        ),
        (
            {"interactions": [{"interaction_id": "i", "opportunity_id": ""}]},
            ": interactions[0].opportunity_id",
            "opportunity_id must not be empty",
        ),
        (
            {"interactions": [{"interaction_id": "i", "opportunity_id": "o", "state": 5}]},
            ": interactions[0].state",
            "less than or equal to 4",
        ),
        (
            {"interactions": [{"interaction_id": "i", "opportunity_id": "o", "state": -1}]},
            ": interactions[0].state",
            "greater than or equal to 0",
        ),
        (
            {
                "interactions": [
                    {
                        "interaction_id": "i",
                        "opportunity_id": "o",
                        "transition_index": 1_000_000_001,
                    }
                ]
            },
            ": interactions[0].transition_index",
            "less than or equal to 1000000000",
        ),
    ],
)
def test_each_mistake_is_told_with_its_place(
    store: Store, tmp_path: Path, content: object, where: str, message: str
):
    good = written(tmp_path, "good.yaml", YAML)
    bad = written(tmp_path, "bad.json", content)
    answer = import_files(store, [good, bad], "meaningful")
    assert (answer["atoms"], answer["opportunities"], answer["interactions"]) == (0, 0, 0)
    mistake = answer["errors"][0]
    assert mistake["where"] == f"{bad}{where}"
    assert message in mistake["message"]
    with store.reading() as connection:
        assert list(scan(connection, Atom)) == []


@pytest.mark.parametrize(
    "content",
    ["a: [", "a: !!python/object/apply:os.system [id]", "\t", "a: !!bool x", 'a: !!int ""'],
)
def test_yaml_that_is_damaged_or_makes_objects_is_refused(
    store: Store, tmp_path: Path, content: str
):
    (mistake,) = import_files(store, [written(tmp_path, "a.yml", content)], "meaningful")["errors"]
    assert mistake["message"].startswith("cannot be read: ")


@pytest.mark.parametrize("dry_run", [True, False])
def test_a_dry_run_refuses_what_the_database_refuses(store: Store, tmp_path: Path, dry_run: bool):
    half = {"atom_id": "a", "claim": "\ud800"}
    file = written(tmp_path, "a.json", {"atoms": [half]})
    with pytest.raises(InvalidInputError, match="lone surrogate"):
        import_files(store, [file], "meaningful", dry_run=dry_run)


def test_a_duplicate_id_is_a_mistake(store: Store, tmp_path: Path):
    twice = [{"atom_id": "a", "claim": "one"}, {"atom_id": "a", "claim": "two"}]
    files = [written(tmp_path, "a.json", {"atoms": twice[:1]})]
    files.append(written(tmp_path, "b.json", {"atoms": twice[1:]}))
    (mistake,) = import_files(store, files, "meaningful")["errors"]
    assert mistake == {"where": "atom a", "message": "duplicate id, 2 times"}


def test_files_that_cannot_be_read_are_told(store: Store, tmp_path: Path):
    (tmp_path / "bytes.json").write_bytes(b"\xff")
    names = ("none.json", "bytes.json", "")
    errors = import_files(store, [tmp_path / name for name in names], "meaningful")["errors"]
    assert [each["message"][:14] for each in errors] == [
        "No such file o",
        "cannot be read",
        "Is a directory",
    ]


def test_an_interaction_needs_its_opportunity(store: Store, tmp_path: Path):
    interaction = {"interaction_id": "i-1", "opportunity_id": "o-1"}
    file = written(tmp_path, "i.json", {"interactions": [interaction]})
    assert import_files(store, [file], "meaningful")["errors"] == [
        {"where": "interaction i-1", "message": "Opportunity not found: o-1"}
    ]
    import_files(
        store, [written(tmp_path, "o.json", {"opportunities": [OPPORTUNITY]})], "meaningful"
    )
    assert import_files(store, [file], "meaningful")["interactions"] == 1
