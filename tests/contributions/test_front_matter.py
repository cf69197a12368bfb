"""The front matter of skills: refused wherever two clients could read different values."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml import YAML

from standards_mcp.contributions.front_matter import read_front_matter

# The library warns of an anchor that a text sets twice; JSON shows only the values.
pytestmark = pytest.mark.filterwarnings("ignore::ruamel.yaml.error.ReusedAnchorWarning")
NAMED = "name: plan-it\ndescription: Plan it.\n"


def skill(fields: str, body: str = "Do it.\n") -> str:
    return f"---\n{fields}---\n{body}"


@pytest.mark.parametrize(
    ("fields", "more"),
    [
        ("", {}),
        ("license: Apache-2.0\n", {"license": "Apache-2.0"}),
        ("metadata:\n  version: '1.0'\n", {"metadata": {"version": "1.0"}}),
        ("allowed-tools: Bash(ls:*) Read\n", {"allowed-tools": "Bash(ls:*) Read"}),
        ("tags: [a, 1, null, true]\n", {"tags": ["a", 1, None, True]}),
        ("note: >\n  Two\n  lines\n", {"note": "Two lines\n"}),
        ("note: 'a: --- b'\n", {"note": "a: --- b"}),
    ],
)
def test_all_fields_are_kept_as_the_author_wrote_them(fields: str, more: dict[str, object]):
    text = skill(NAMED + fields)
    assert read_front_matter(text) == {"name": "plan-it", "description": "Plan it."} | more
    assert read_front_matter(text.replace("\n", "\r\n")).keys() >= more.keys()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("# Plan it\n", "must begin with front matter"),
        ("\ufeff" + skill(NAMED), "must begin with front matter"),
        ("---\n" + NAMED, "must begin with front matter"),
        (skill(""), "its front matter: Input should be a valid dictionary"),
        (skill("- name\n"), "its front matter: Input should be a valid dictionary"),
        (skill("description: Plan it.\n"), "its name: Field required"),
        (skill("name: plan-it\n"), "its description: Field required"),
        (skill("name: plan-it\ndescription: ' '\n"), "its description"),
        (skill(f"name: plan-it\ndescription: {'x' * 1025}\n"), "its description"),
        *(
            (skill(f"name: {name}\ndescription: Plan it.\n"), "its name")
            for name in (
                "Plan",
                "plan_it",
                "-plan",
                "plan-",
                "plan--it",
                "plän",
                "'1\\n'",
                "a" * 65,
            )
        ),
        (skill("name: 7\ndescription: Plan it.\n"), "its name"),
        (skill(NAMED + "license: 1\n"), "its license"),
        (skill(NAMED + "license:\n"), "its license"),
        (skill(NAMED + "compatibility: ''\n"), "its compatibility"),
        (skill(NAMED + "metadata: {version: 1.0}\n"), "its metadata.version"),
        (skill(NAMED + "metadata: {io.modelcontextprotocol/x: z}\n"), "the protocol reserves"),
        (skill(NAMED + "allowed-tools: [Bash]\n"), "its allowed-tools"),
        (skill(NAMED + NAMED), "not valid YAML"),
        (skill(NAMED + "a: &x [1]\nb: *x\n"), "a YAML alias"),
        (skill(NAMED + "a: .nan\n"), "JSON compliant"),
        (skill(NAMED + "a: .inf\n"), "JSON compliant"),
        (skill(NAMED + "a: 2026-11-27\n"), "not JSON serializable"),
        (skill(NAMED + "a: !!set {x}\n"), "not JSON serializable"),
        (skill(NAMED + "a: !!python/name:os.system x\n"), "not valid YAML"),
        (skill(NAMED + "1: a\n"), "a key that is not text"),
        (skill(NAMED + "? [a, b]\n: c\n"), "keys must be"),
        (skill(NAMED + "a: yes\n"), "read its front matter differently"),
        (skill(NAMED + "a: 010\n"), "read its front matter differently"),
        (skill(NAMED + 'a: "\\uD800"\n'), "half a character"),
        (skill(NAMED + "a: [\n"), "not valid YAML"),
        (skill(NAMED + "a: \x00\n"), "not valid YAML"),
        (skill(NAMED + "a: " + "[" * 5000 + "\n"), "nested too deeply"),
        (skill(NAMED + "...\nname: other\n"), "not valid YAML"),
    ],
)
def test_what_clients_could_refuse_or_read_differently_is_refused(text: str, reason: str):
    with pytest.raises(ValueError, match=reason):
        read_front_matter(text)


TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), max_size=30)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(TEXTS.filter(lambda key: key not in {"name", "description"}), VALUES))
def test_json_in_the_front_matter_comes_back_unchanged(more: dict[str, object]):
    fixed = {"license", "compatibility", "metadata", "allowed-tools", "allowed_tools"}
    fields = {"name": "a", "description": "b"} | {
        key: value for key, value in more.items() if key not in fixed
    }
    # JSON in one line is YAML.
    text = json.dumps(fields, ensure_ascii=False)
    assert read_front_matter(skill(f"{text}\n")) == fields


WORDS = st.sampled_from(
    [
        *("on", "No", "true", "Null", "y", "plan", "a-b", "1.0", "2026-01-01", "0x1", ".inf"),
        *("12:30", "'s", "(or)", "a:", "#", "-", "[a]", "&a", "*a", "!t", "Yes.", "x,", "\u2028"),
        *("", "\t"),
    ]
)
LINES = st.tuples(WORDS, st.lists(WORDS, max_size=4).map(" ".join)).map(": ".join)


@given(st.lists(LINES, max_size=4))
def test_lines_without_a_parser_are_read_as_a_parser_reads_them(lines: list[str]):
    text = NAMED + "".join(f"{line}\n" for line in lines)
    try:
        fields = read_front_matter(skill(text))
    except ValueError:
        return
    assert YAML(typ="safe", pure=True).load(text) == fields


@given(st.text(max_size=200))
def test_any_text_is_read_or_refused_and_what_is_read_is_json(text: str):
    try:
        fields = read_front_matter(skill(NAMED + text + "\n"))
    except ValueError:
        return
    assert json.loads(json.dumps(fields, allow_nan=False)) == fields
    assert fields["name"] == "plan-it"
