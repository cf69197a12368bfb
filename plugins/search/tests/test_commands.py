"""The commands `search` and `lookup`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.command_line import run

pytestmark = pytest.mark.usefixtures("starter_catalog")


def test_search_shows_codes_and_texts_within_80_columns():
    text = "comparing fractions with fraction strips"
    outcome = run("search", text, "--grade", "3", "--top", "2")
    assert outcome.exit_code == 0
    assert "1. CCSS.Math.Content.3.NF" in outcome.stdout
    assert "   Common Core Mathematics: Grade 3, Common Core State Standards" in outcome.stdout
    assert "   Why: " in outcome.stdout
    assert "Found 2 matching standards" in outcome.stdout
    assert max(map(len, outcome.stdout.splitlines())) <= 80


def test_search_as_json_is_the_answer_of_the_tool():
    searched = run("search", "telling time", "--top", "2", "--json")
    arguments = json.dumps({"activity": "telling time", "max_results": 2})
    called = run("call", "find_relevant_standards", "--args", arguments)
    assert searched.exit_code == called.exit_code == 0
    assert json.loads(searched.stdout) == json.loads(called.stdout)
    assert len(json.loads(searched.stdout)["results"]) == 2


@pytest.mark.parametrize(
    ("arguments", "error_type", "told"),
    [
        (["search", "counting", "--grade", "pre-k"], "no_results", "Search again without grade"),
        (["lookup", "3.NF.A.9"], "not_found", "Standard '3.NF.A.9' not found. Try: standards-mcp"),
        (["lookup", "3.NF.A.9"], "not_found", "Nearest codes: CCSS.Math.Content.3.NF.A"),
    ],
)
def test_what_is_not_found_exits_with_1(arguments: list[str], error_type: str, told: str):
    outcome = run(*arguments)
    assert (outcome.exit_code, outcome.stdout) == (1, "")
    assert told in outcome.stderr.replace("\n", " ")
    as_json = run(*arguments, "--json")
    assert (as_json.exit_code, json.loads(as_json.stdout)["error_type"]) == (1, error_type)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["search", "counting", "--grade", "banana"], "banana"),
        (["search", "counting", "--top", "99"], "--top: "),
        (["search", " "], "TEXT is empty."),
        (["lookup", " ", "MP1"], "ID is empty."),
        (["lookup", "x" * 600], "use `standards-mcp search`"),
    ],
)
def test_wrong_input_exits_with_2_in_the_words_of_the_command(arguments: list[str], told: str):
    outcome = run(*arguments)
    assert outcome.exit_code == 2
    assert told in outcome.stderr.replace("\n", " ")
    as_json = run(*arguments, "--json")
    assert (as_json.exit_code, json.loads(as_json.stdout)["error_type"]) == (2, "invalid_input")
    assert told not in json.loads(as_json.stdout)["message"] or told == "banana"


@pytest.mark.parametrize(
    ("command", "tool"),
    [("search", "find_relevant_standards"), ("lookup", "get_standard_details")],
)
def test_a_command_with_a_disabled_tool_quotes_the_rule(command: str, tool: str):
    refused = run("--set", f"tools.disable=['{tool}']", command, "MP1")
    told = " ".join(refused.stderr.split())
    assert refused.exit_code == 1
    assert f"`standards-mcp {command}` is not served here ([tools] disable has '{tool}')" in told


def test_lookup_shows_the_standard_and_its_neighbours():
    outcome = run("lookup", "3.NF.A.2")
    assert outcome.exit_code == 0
    assert outcome.stdout.startswith("CCSS.Math.Content.3.NF.A.2\n")
    for text in ("ancestors:", "children:", "CCSS.Math.Content.3.NF.A.2a", "siblings:"):
        assert text in outcome.stdout
    assert max(map(len, outcome.stdout.splitlines())) <= 80


@pytest.mark.slow
def test_a_standard_without_a_code_is_headed_by_its_parent(tmp_path: Path):
    rows = "id,code,text,parent\nG1,P,Pottery,\nG2,,At the wheel,P\nG3,,Students centre clay.,G2\n"
    (tmp_path / "arts.csv").write_text(f"{rows}G4,,Kilns glow.,\n", encoding="utf-8")
    settings = (f"plugins.catalog.path={tmp_path / 'arts'}", "plugins.catalog.local.model=none")
    options = [part for setting in settings for part in ("--set", setting)]
    assert run(*options, "data", "import", str(tmp_path / "arts.csv")).exit_code == 0
    searched = run(*options, "search", "students centre clay", "--top", "1").stdout
    assert searched.startswith("1. (no code) under P Pottery  (score ")
    assert "\n   id G3\n" in searched
    assert run(*options, "search", "kilns glow", "--top", "1").stdout.startswith("1. (no code)  (")
    looked_up = run(*options, "lookup", "G3").stdout
    assert looked_up.startswith("(no code) under P Pottery\n")
    assert "\n    At the wheel\n" in looked_up
    assert run(*options, "lookup", "G4").stdout.startswith("(no code)\n  Kilns glow.")


def test_lookup_of_several_in_one_text_lists_the_missing_ones():
    texts = ("MP1 and MP2, 111.5.b.3", "RL.4.3")
    outcome = run("lookup", *texts)
    assert outcome.exit_code == 1
    codes = [f"CCSS.{code}" for code in ("Math.Practice.MP1", "Math.Practice.MP2")]
    codes += ["CCSS.ELA-Literacy.RL.4.3"]
    assert [line for line in outcome.stdout.splitlines() if line.startswith("CCSS")] == codes
    assert "Not found: '111.5.b.3' (Family: the Texas Essential" in outcome.stderr.replace(
        "\n", " "
    )
    as_json = run("lookup", *texts, "--json")
    assert (as_json.exit_code, json.loads(as_json.stdout)["not_found"]) == (1, ["111.5.b.3"])
    assert [
        result["statement_notation"] for result in json.loads(as_json.stdout)["results"]
    ] == codes
    assert "111.5.b.3" in json.loads(as_json.stdout)["message"]
    assert run("lookup", "MP1", "RL.4.3").exit_code == 0


@pytest.mark.parametrize("option", [["--json"], ["--top", "3"], ["--subject", "math"]])
def test_the_page_takes_no_option_that_it_does_not_have(option: list[str]):
    outcome = run("search", "fractions", "--open", *option)
    assert outcome.exit_code == 2
    assert "--open takes --grade, but not --subject, --top or --json" in outcome.stderr


def test_without_the_plugin_views_open_says_how_to_install_it():
    outcome = run("search", "fractions", "--open")
    assert (outcome.exit_code, outcome.stdout) == (1, "")
    assert "standards-mcp-views is not installed; run `" in outcome.stderr
    assert "views" in outcome.stderr.partition("run `")[2]
