"""The kinds of relations, and links as they are kept."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from standards_mcp_catalog.relations import (
    identifier_of,
    inverse,
    link,
    links_of,
    parse_kind,
)
from standards_mcp_catalog.vocabulary.notation import identifier_key
from standards_mcp_catalog.vocabulary.relation_kinds import KINDS

GUID = "6b9bf846-f1ef-4a2c-8c7a-1b2c3d4e5f60"


@given(st.sampled_from(KINDS), st.text(min_size=1), st.text(min_size=1))
def test_a_relation_is_one_link_from_whichever_end_it_is_said(kind: str, start: str, end: str):
    assert link(start, kind, end) == link(end, inverse(kind), start)
    assert inverse(inverse(kind)) == kind


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        ("exactMatchOf", "exactMatchOf"),
        ("Exact Match", "exactMatchOf"),
        ("supersedes", "replaces"),
        ("part-of", "isPartOf"),
        ("isChildOf", None),
        ("", None),
    ],
)
def test_kinds_are_understood_as_people_write_them(words: str, kind: str | None):
    assert parse_kind(words) == kind


def test_a_record_states_its_relations_in_fields():
    key = identifier_key(GUID) or ""
    fields = {
        "replaced_by": [GUID.upper(), "", 7, "Own"],
        "follows": "A",
        "is_peer_of": None,
        "exact_match_of": ["http://asn.jesandco.org/resources/S11437E2"],
    }
    assert links_of("Own", fields) == {
        ("id:Own", "replacedBy", key),
        ("id:A", "precedes", "id:Own"),
        ("asn:S11437E2", "exactMatchOf", "id:Own"),
    }


def test_the_key_of_what_is_not_loaded_leads_back_to_its_identifier():
    for text in (GUID, "own/1", "S11437E2", "https://example.org/x:y"):
        assert identifier_of(identifier_key(text) or "") == text
