"""The command `align` from files to reports, in this process."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import os
import re
import socket
from pathlib import Path

import filelock
import pytest

from standards_mcp_alignment.correlation import calibration
from standards_mcp_alignment.inputs.xml_parser import parse_xml

HOSTILE = "<script>alert(1)</script> | [x](http://a) =1+1 `code`"


def rows(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(path.read_text("utf-8-sig"))))


def decide(review: Path, **decisions: tuple[str, str]) -> None:
    """Write decisions into the rows of these codes (with ``_`` for ``.``), as a person does."""
    table = rows(review)
    for row in table:
        if decision := decisions.get(row["code"].replace(".", "_")):
            row["decision"], row["replacement"] = decision
    with review.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(table[0]))
        writer.writeheader()
        writer.writerows(table)


def test_each_lesson_gets_its_standard_with_a_probability(align, lessons):
    report = json.loads(align(lessons, "--top", "1", "--json").stdout)
    best = {item["title"]: item["standards"][0] for item in report["items"]}
    assert best["Strips"]["code"] == "3.NF.A.2"
    assert best["Ramps"]["code"] == "4.PS.3.1"
    assert all(0 < pair["probability"] < 1 for pair in best.values())
    assert all(pair["status"] == "proposed" for pair in best.values())
    assert report["summary"]["pairs"] == 2


def test_options_limit_the_standards_and_an_item_s_own_grade_counts_more(align, lessons):
    options = ("--jurisdiction", "Borduria", "--grade", "5", "--json")
    report = json.loads(align(lessons, *options).stdout)
    strips = next(item for item in report["items"] if item["title"] == "Strips")
    assert [pair["statement"] for pair in strips["standards"]] == [
        "Share a cake fairly among friends"
    ]
    report = json.loads(align(lessons, "--set", "aland-science", "--json").stdout)
    codes = {pair["code"] for item in report["items"] for pair in item["standards"]}
    assert codes == {"4.PS.3.1"}


@pytest.mark.parametrize(
    ("option", "value", "told"),
    [
        ("--jurisdiction", "Narnia", "No jurisdiction here is 'Narnia'"),
        ("--set", "Aland Maths", "Did you mean"),
        ("--grade", "fortnight", "'fortnight' is not a grade"),
        ("--subject", "alchemy", "No standards of 'alchemy' are loaded"),
        ("--out", "report.xyz", "--out ends with none of"),
        ("--auto", "0", "0 is not in the range"),
    ],
)
def test_a_wrong_option_ends_the_run(align, lessons, option, value, told):
    output = align(lessons, option, value, status=2).output
    assert told in re.sub(r"[\s│]+", " ", output)


def test_unknown_grades_and_subjects_of_items_are_told(align, tmp_path):
    (tmp_path / "a.csv").write_text("title,grade,subject\nFold paper,soon,alchemy\n", "utf-8")
    [item] = json.loads(align(tmp_path / "a.csv", "--json").stdout)["items"]
    assert item["notes"] == [
        "the grade 'soon' is not known and was ignored",
        "no standards of the subject 'alchemy' are loaded; all count",
    ]
    assert item["standards"]


def test_stated_codes_come_first_and_ambiguous_ones_are_told(align, tmp_path):
    (tmp_path / "a.csv").write_text(
        'title,codes\nRoll balls,"4.NF.A.1, 3.NF.A.1, 9.ZZ.1"\nVersion 3.2.1a and 4.PS.3.1,\n',
        "utf-8",
    )
    first, second = json.loads(align(tmp_path / "a.csv", "--json").stdout)["items"]
    assert (first["standards"][0]["code"], first["standards"][0]["basis"]) == ("4.NF.A.1", "stated")
    assert first["notes"] == [
        "the code 3.NF.A.1 is used in Aland and Borduria; add --jurisdiction",
        "the code 9.ZZ.1 is not loaded, or does not exist",
    ]
    assert second["standards"][0]["code"] == "4.PS.3.1"
    assert second["notes"] == []
    options = ("--jurisdiction", "Borduria", "--json")
    first, _ = json.loads(align(tmp_path / "a.csv", *options).stdout)["items"]
    assert first["standards"][0]["statement"] == "Share a cake fairly among friends"
    assert "the code 4.NF.A.1 is of another grade, subject, set or jurisdiction" in first["notes"]


def test_a_column_of_codes_may_have_texts_beside_them(align, tmp_path):
    text = 'title,standards\nRoll,"4.PS.3.1 Roll balls; see also 4.NF.A.1"\n'
    (tmp_path / "a.csv").write_text(text, "utf-8")
    [item] = json.loads(align(tmp_path / "a.csv", "--json").stdout)["items"]
    assert [pair["code"] for pair in item["standards"][:2]] == ["4.PS.3.1", "4.NF.A.1"]
    assert item["notes"] == []


def test_a_retired_standard_is_told_and_not_accepted_automatically(
    align, lessons, standards, monkeypatch
):
    [record] = standards.store.find("4.PS.3.1")
    standards.store.upsert([record.model_copy(update={"publication_status": "Deprecated"})])
    supported = dataclasses.replace(calibration.load_calibration(), supported=((0.9, 0.0),))
    monkeypatch.setattr(
        "standards_mcp_alignment.correlation.run.load_calibration", lambda: supported
    )
    options = ("--jurisdiction", "Aland", "--top", "1", "--auto", "0.9", "--json")
    ramps, strips = json.loads(align(lessons, *options).stdout)["items"]
    assert ramps["standards"][0]["status"] == "proposed"
    assert ramps["notes"] == ["4.PS.3.1 is retired (Deprecated); no successor is known"]
    assert strips["standards"][0]["status"] == "accepted"


def test_a_code_in_the_text_does_not_raise_the_probability(align, tmp_path):
    for name, text in (("a.md", "Roll balls"), ("b.md", "Roll balls 5.SC.1.1")):
        (tmp_path / name).write_text(text, "utf-8")
    plain, coded = json.loads(
        align(tmp_path / "a.md", tmp_path / "b.md", "--top", "6", "--json").stdout
    )["items"]
    probability = {pair["code"]: pair["probability"] for pair in plain["standards"]}
    stated = coded["standards"][0]
    assert (stated["code"], stated["basis"]) == ("5.SC.1.1", "stated")
    assert stated["probability"] == pytest.approx(probability["5.SC.1.1"], abs=0.05)


def test_a_long_text_is_cut_and_told(align, tmp_path):
    (tmp_path / "a.txt").write_text("Roll balls down a ramp. " * 1000, "utf-8")
    [item] = json.loads(align(tmp_path / "a.txt", "--json").stdout)["items"]
    assert item["notes"] == ["only the first 8,000 characters were compared"]


def test_bad_files_are_told_and_the_others_aligned(align, lessons, tmp_path):
    (lessons / "broken.xml").write_text("<a>", "utf-8")
    out = tmp_path / "report.json"
    output = align(lessons, tmp_path / "none.pdf", "--out", out, status=1).stdout
    assert "broken.xml: it is damaged" in output
    assert "none.pdf: it cannot be read: No such file" in output
    report = json.loads(out.read_text("utf-8"))
    assert report["summary"] | {"files": 2, "skipped": 2, "items": 2} == report["summary"]
    assert align(tmp_path / "none.pdf", status=1).stdout.startswith("# Alignment report")


def _body(page: str) -> bytes:
    """Return the body of a page as XML."""
    body = page[page.index("<body>") : page.index("</html>")]
    return body.replace("<br>", "<br/>").encode()


@pytest.mark.parametrize("name", ["r.csv", "r.json", "r.md", "r.html"])
def test_every_report_has_the_texts_escaped_and_all_digests(align, tmp_path, name):
    source = tmp_path / "in.csv"
    source.write_text(f'title,text\n"{HOSTILE}",Fold paper strips\n', "utf-8")
    out = tmp_path / name
    align(source, "--out", out)
    text = out.read_text("utf-8")
    report = json.loads(align(source, "--json").stdout)["provenance"]
    for digest in (report["catalog"], report["model"], *report["inputs"].values()):
        assert digest in text
    if name == "r.html":
        assert "<script" not in text
        assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
        assert parse_xml(_body(text)).tag == "body"
    if name == "r.md":
        assert "<script" not in text
        assert r"\| \[x\](http://a)" in text
    if name == "r.csv":
        assert rows(out)[0]["code"] == "3.NF.A.2"


def test_cells_are_no_formulas_in_a_spreadsheet(align, tmp_path):
    source, out = tmp_path / "in.csv", tmp_path / "r.csv"
    source.write_text('title\n"=Fold paper strips"\n', "utf-8")
    align(source, "--out", out)
    for path in (out, tmp_path / "r.review.csv"):
        assert rows(path)[0]["title"].startswith("'=Fold")


def test_a_person_accepts_rejects_and_replaces(align, lessons, tmp_path):
    out, review = tmp_path / "r.json", tmp_path / "r.review.csv"
    options = ("--jurisdiction", "Aland", "--top", "2", "--out", out)
    assert "4 open rows" in align(lessons, *options).stdout
    decide(
        review, **{"3_NF_A_2": ("Accept", ""), "3_NF_A_1": ("no", ""), "4_NF_A_1": ("", "4.PS.3.1")}
    )
    assert "open rows" in align(lessons, *options).stdout
    items = {item["title"]: item for item in json.loads(out.read_text("utf-8"))["items"]}
    found = {
        title: {pair["code"]: (pair["status"], pair["decided_by"]) for pair in item["standards"]}
        for title, item in items.items()
    }
    assert found["Strips"] == {
        "3.NF.A.2": ("accepted", "person"),
        "3.NF.A.1": ("rejected", "person"),
    }
    assert found["Ramps"] == {
        "4.PS.3.1": ("accepted", "person"),
        "4.NF.A.1": ("replaced", "person"),
    }
    decided = {row["code"]: row["decision"] for row in rows(review)}
    assert decided["3.NF.A.2"] == "Accept"
    assert decided["3.NF.A.1"] == "no"


def test_an_accepted_standard_stays_if_the_next_run_does_not_find_it(align, lessons, tmp_path):
    out, review = tmp_path / "r.json", tmp_path / "r.review.csv"
    align(lessons, "--jurisdiction", "Aland", "--top", "2", "--out", out)
    decide(review, **{"3_NF_A_1": ("accept", ""), "4_NF_A_1": ("reject", "")})
    for _ in range(2):
        align(lessons, "--jurisdiction", "Aland", "--top", "1", "--out", out)
        items = json.loads(out.read_text("utf-8"))["items"]
        found = {item["title"]: [pair["code"] for pair in item["standards"]] for item in items}
        assert found == {"Ramps": ["4.PS.3.1"], "Strips": ["3.NF.A.1", "3.NF.A.2"]}
    assert {row["code"] for row in rows(review) if row["decision"]} == {"3.NF.A.1", "4.NF.A.1"}


def test_the_report_may_be_beside_the_lessons(align, lessons):
    for _ in range(2):
        align(lessons, "--out", lessons / "report.json")
    report = json.loads((lessons / "report.json").read_text("utf-8"))
    assert report["summary"]["items"] == 2


def test_a_replacement_by_an_unknown_code_is_told_and_decides_nothing(align, lessons, tmp_path):
    out, review = tmp_path / "r.json", tmp_path / "r.review.csv"
    options = ("--jurisdiction", "Aland", "--top", "1", "--out", out)
    align(lessons, *options)
    decide(review, **{"3_NF_A_2": ("replace", "9.ZZ.9.9")})
    align(lessons, *options)
    [item] = [i for i in json.loads(out.read_text("utf-8"))["items"] if i["title"] == "Strips"]
    assert item["standards"][0]["status"] == "proposed"
    assert "review file: the code 9.ZZ.9.9 is not loaded, or does not exist" in item["notes"]


def test_decisions_on_a_changed_lesson_are_kept_and_do_not_count(align, lessons, tmp_path):
    out, review = tmp_path / "r.json", tmp_path / "r.review.csv"
    align(lessons, "--top", "1", "--out", out)
    decide(review, **{"3_NF_A_2": ("accept", "")})
    (lessons / "strips.md").write_text("# Strips\n\nFold paper strips.\n", "utf-8")
    assert (
        "1 decision on items that have changed" in align(lessons, "--top", "1", "--out", out).stdout
    )
    assert json.loads(out.read_text("utf-8"))["summary"]["accepted"] == 0
    assert [row["decision"] for row in rows(review) if row["decision"]] == ["accept"]


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("title,codes\nA,B\n", "is not a review file"),
        ("decision,replacement,item,standard\nmaybe,,a,b\n", "line 2: the decision is 'maybe'"),
        ("decision,replacement,item,standard\nreplace,,a,b\n", "write the code that fits"),
    ],
)
def test_a_wrong_review_file_ends_the_run_and_is_left_alone(
    align, lessons, tmp_path, content, told
):
    review = tmp_path / "own.csv"
    review.write_text(content, "utf-8")
    output = align(lessons, "--out", tmp_path / "r.json", "--review", review, status=2).output
    assert told in re.sub(r"[\s│]+", " ", output)
    assert review.read_text("utf-8") == content
    assert not (tmp_path / "r.json").exists()


def test_spreadsheets_may_save_the_review_file_with_semicolons(align, lessons, tmp_path):
    out, review = tmp_path / "r.json", tmp_path / "r.review.csv"
    align(lessons, "--top", "1", "--out", out)
    table = rows(review)
    table[0]["decision"] = "accept"
    with review.open("w", encoding="cp1252", newline="") as file:
        writer = csv.DictWriter(file, list(table[0]), delimiter=";")
        writer.writeheader()
        writer.writerows(table)
    align(lessons, "--top", "1", "--out", out)
    assert json.loads(out.read_text("utf-8"))["summary"]["accepted"] == 1


def test_auto_accepts_what_the_calibration_supports(align, lessons, monkeypatch):
    loaded = calibration.load_calibration()
    supported = dataclasses.replace(loaded, supported=((0.9, 0.0),))
    monkeypatch.setattr(
        "standards_mcp_alignment.correlation.run.load_calibration", lambda: supported
    )
    options = ("--jurisdiction", "Aland", "--top", "1", "--json")
    for auto, accepted in (("0.9", 2), ("0.95", 0)):
        report = json.loads(align(lessons, *options, "--auto", auto).stdout)
        assert report["summary"]["accepted_automatically"] == accepted
    assert report["notes"] == [
        "No held-out pairs support a precision of 95%, so no pair is accepted automatically."
    ]
    report = json.loads(align(lessons, "--auto", "0.9", "--json").stdout)
    assert report["summary"]["accepted_automatically"] == 0
    assert "2 items of 2 were compared with the standards of several" in report["notes"][0]
    options = ("--auto", "0.9", "--subject", "math", "--set", "aland-math", "--json")
    assert json.loads(align(lessons, *options).stdout)["summary"]["accepted"] > 0


def test_a_text_that_is_longer_than_the_measured_ones_is_not_accepted(align, tmp_path, monkeypatch):
    loaded = calibration.load_calibration()
    supported = dataclasses.replace(loaded, supported=((0.9, 0.0),))
    monkeypatch.setattr(
        "standards_mcp_alignment.correlation.run.load_calibration", lambda: supported
    )
    words = " ".join(
        f"word{chr(97 + number // 26)}{chr(97 + number % 26)}" for number in range(200)
    )
    (tmp_path / "long.md").write_text(f"Fold paper strips. {words}\n", "utf-8")
    options = ("--jurisdiction", "Aland", "--json")
    report = json.loads(align(tmp_path / "long.md", *options, "--auto", "0.9").stdout)
    assert report["summary"]["accepted_automatically"] == 0
    assert "this one has more" in report["items"][0]["notes"][0]
    plain = json.loads(align(tmp_path / "long.md", *options).stdout)
    assert plain["items"][0]["notes"] == []


def test_an_output_replaces_neither_an_input_nor_the_other_output(align, lessons, tmp_path):
    source = tmp_path / "c.csv"
    source.write_text("title\nFold paper strips\n", "utf-8")
    before = source.read_bytes()
    for options in (
        (source, "--out", source),
        (source, "--out", tmp_path / "r.json", "--review", source),
        (source, "--out", tmp_path / "r.csv", "--review", tmp_path / "r.csv"),
        (lessons, "--out", lessons / "strips.md"),
    ):
        align(*options, status=2)
    assert source.read_bytes() == before
    assert (lessons / "strips.md").read_text("utf-8").startswith("# Strips")


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"PK\x03\x04\x00\xff\xfe", "line 1"),
        (b'decision,replacement,item,standard\n"accept,,a,b\n', "not a table"),
    ],
)
def test_a_review_file_of_another_program_is_refused(align, lessons, tmp_path, content, reason):
    review = tmp_path / "own.csv"
    review.write_bytes(content)
    output = align(lessons, "--out", tmp_path / "r.json", "--review", review, status=2).output
    assert reason in re.sub(r"[\s│]+", " ", output)
    assert review.read_bytes() == content


def test_a_review_file_that_is_too_large_is_refused_and_kept(align, lessons, tmp_path, monkeypatch):
    out, review = tmp_path / "r.json", tmp_path / "r.review.csv"
    align(lessons, "--out", out)
    before = review.read_bytes()
    monkeypatch.setattr("standards_mcp_alignment.correlation.review._LARGEST", len(before) - 1)
    assert "is larger than" in align(lessons, "--out", out, status=2).output
    assert review.read_bytes() == before


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="Windows has no named pipes")
def test_a_pipe_is_no_review_file(align, lessons, tmp_path):
    os.mkfifo(tmp_path / "pipe.csv")
    options = ("--out", tmp_path / "r.json", "--review", tmp_path / "pipe.csv")
    assert "is no regular file" in align(lessons, *options, status=2).output


def test_a_spreadsheet_takes_no_key_of_a_decision_for_a_number(align, lessons, tmp_path):
    align(lessons, "--out", tmp_path / "r.json")
    assert all(row["item"].startswith("i-") for row in rows(tmp_path / "r.review.csv"))


def test_names_in_the_summary_are_no_markup(align, tmp_path):
    (tmp_path / "_x_ [y](z).md").write_text("\x00", "utf-8")
    (tmp_path / "good.md").write_text("Fold paper strips", "utf-8")
    align(tmp_path, "--out", tmp_path / "report.md", status=1)
    report = (tmp_path / "report.md").read_text("utf-8")
    assert "[y](z)" not in report
    assert r"\[y\](z)" in report


def test_without_the_measured_model_there_is_no_probability(align, lessons, monkeypatch):
    loaded = calibration.load_calibration()
    other = dataclasses.replace(loaded, model="other", supported=((0.9, 0.0),))
    monkeypatch.setattr("standards_mcp_alignment.correlation.run.load_calibration", lambda: other)
    report = json.loads(align(lessons, "--auto", "0.9", "--json").stdout)
    pairs = [pair for item in report["items"] for pair in item["standards"]]
    assert {pair["probability"] for pair in pairs} == {None}
    assert report["summary"]["accepted"] == 0
    assert "measured with the model other only" in report["notes"][0]


def test_nothing_is_fetched_from_the_network(align, tmp_path, monkeypatch):
    def refuse(*_: object) -> None:
        raise AssertionError("a connection")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    page = '<img src="http://127.0.0.1:9/a.png"><a href="http://127.0.0.1:9/">Fold paper</a>'
    (tmp_path / "a.html").write_text(page, "utf-8")
    out = tmp_path / "r.html"
    align(tmp_path / "a.html", "--out", out)
    assert "127.0.0.1" not in re.sub(r"(?s)<td>.*?</td>", "", out.read_text("utf-8"))


def test_a_second_run_on_the_same_output_is_refused(align, lessons, tmp_path):
    out = tmp_path / "r.csv"
    with filelock.FileLock(tmp_path / ".r.csv.lock"):
        output = align(lessons, "--out", out, status=1).output
    assert "another run is writing" in output
    assert not out.exists()
    align(lessons, "--out", out)


def test_a_finished_item_is_not_searched_again(align, lessons, tmp_path, standards, monkeypatch):
    out = tmp_path / "r.json"
    align(lessons, "--out", out)
    before = json.loads(out.read_text("utf-8"))
    searched: list[str] = []
    search = standards.search

    async def counted(text, *arguments):
        searched.append(text)
        return await search(text, *arguments)

    monkeypatch.setattr(standards, "search", counted)
    with (tmp_path / "r.json.journal").open("ab") as journal:
        journal.write(b'{"key": "of a killed run", "pai')
    (lessons / "new.txt").write_text("Mix salt and water", "utf-8")
    align(lessons, "--out", out)
    after = json.loads(out.read_text("utf-8"))
    assert searched == ["Mix salt and water"]
    assert [item for item in after["items"] if "Mix" not in item["title"]] == before["items"]
    align(lessons, "--out", out, "--top", "1")
    assert len(searched) == 4
    assert len((tmp_path / "r.json.journal").read_bytes().splitlines()) == 3
