"""Items of every format."""

from __future__ import annotations

import json

import pytest
from support.word import word_document

from standards_mcp_alignment.inputs import ItemReader

TABLE = """\
Item ID;Lesson;Description;Grade Level;Standards
7;Strips;Fold paper;3;3.NF.A.1|3.NF.A.2
;;;;
"""
ITEM_2 = """\
<assessmentItem xmlns="http://www.imsglobal.org/xsd/imsqti_v2p1" identifier="q1" title="Halves">
 <responseDeclaration identifier="R"><correctResponse><value>A</value></correctResponse>
 </responseDeclaration>
 <itemBody><p>Which part is <b>half</b>?</p>
  <choiceInteraction responseIdentifier="R"><prompt>Choose one.</prompt>
   <simpleChoice identifier="A">1/2</simpleChoice></choiceInteraction>
  <rubricBlock view="scorer"><p>Give one point.</p></rubricBlock>
 </itemBody>
 <modalFeedback identifier="f" showHide="show" outcomeIdentifier="x">Well done</modalFeedback>
</assessmentItem>
"""
ITEM_3 = """\
<qti-assessment-item xmlns="http://www.imsglobal.org/xsd/imsqtiasi_v3p0" identifier="q3"
  title="Ramps"><qti-item-body><p>Which ball is faster?</p></qti-item-body></qti-assessment-item>
"""
ITEM_1 = """\
<questestinterop xmlns="http://www.imsglobal.org/xsd/ims_qtiasiv1p2"><assessment><section>
 <item ident="a" title="First"><presentation><material><mattext texttype="text/html">
 &lt;p&gt;Add 3 and 4 &amp;amp; check&lt;/p&gt;</mattext></material></presentation>
 <itemfeedback ident="x"><material><mattext>No</mattext></material></itemfeedback></item>
 <item ident="b"><presentation><material><mattext>Take 2 from 9</mattext></material>
 </presentation></item></section></assessment></questestinterop>
"""


def test_a_document_is_one_item_with_its_stated_grade_and_subject(read):
    text = "# Strips\n\n**Grade:** 3rd grade\n- Subject: math\n\nFold paper.\n\n## Close\n\nTalk.\n"
    [item] = read("unit.md", text).items
    assert (item.title, item.grade, item.subject) == ("Strips", "3rd grade", "math")
    assert "Fold paper." in item.text
    assert "Talk." in item.text


def test_each_section_of_a_document_can_be_an_item(tmp_path):
    path = tmp_path / "unit.md"
    path.write_text("# Unit\n\nGrade: 3\n\n## Lesson 1\n\nFold.\n\n## Lesson 2\n\nDraw.\n", "utf-8")
    with ItemReader("section") as reader:
        items = reader.read(path).items
    assert [(item.place, item.text, item.grade) for item in items][1:] == [
        ("Lesson 1", "Fold.", "3"),
        ("Lesson 2", "Draw.", "3"),
    ]


@pytest.mark.parametrize(
    ("name", "content", "wanted"),
    [
        ("a.html", "<h1>Ramps</h1><p>Roll &amp; measure<script>x()</script>", "Roll & measure"),
        ("a.txt", "Roll a ball.", "Roll a ball."),
        ("a.docx", word_document(), "Ran Kafka clusters"),
    ],
)
def test_documents_of_other_types_are_read(read, name, content, wanted):
    [item] = read(name, content).items
    assert wanted in item.text
    assert "x()" not in item.text


def test_a_row_of_a_table_is_an_item(read):
    [item] = read("catalogue.csv", b"\xef\xbb\xbf" + TABLE.encode()).items
    assert (item.place, item.id, item.title, item.text) == ("row 2", "7", "Strips", "Fold paper")
    assert (item.grade, item.codes) == ("3", ("3.NF.A.1", "3.NF.A.2"))


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "cp1252"])
def test_tables_of_spreadsheets_are_read_in_their_encodings(read, encoding):
    [item] = read("a.csv", "title\tobjective\nCafé\tOrder a café\n".encode(encoding)).items
    assert (item.title, item.text) == ("Café", "Order a café")


@pytest.mark.parametrize(
    ("value", "titles"),
    [
        (["Fold paper strips", "Roll a ball"], ["Fold paper strips", "Roll a ball"]),
        ([{"title": "A", "text": "x"}, {"name": "B"}], ["A", "B"]),
        ({"unit": "U", "lessons": [{"title": "A"}, {"title": "B"}]}, ["A", "B"]),
        ({"title": "U", "text": "all", "lessons": [{"title": "A"}]}, ["U", "A"]),
        ({"units": [{"title": "U", "tags": ["x"], "lessons": [{"title": "A"}]}]}, ["A"]),
        ([[{"title": "A", "grade": 3, "draft": True}]], ["A"]),
    ],
)
def test_json_data_has_items_at_any_depth(read, value, titles):
    items = read("a.json", json.dumps(value)).items
    assert [item.title for item in items] == titles
    assert len({(item.place, item.title) for item in items}) == len(items)


def test_a_line_of_json_is_an_item(read):
    items = read("a.jsonl", '{"title": "A", "grade": 3}\n\n{"text": "B", "codes": ["X.1"]}\n').items
    assert [(item.place, item.title) for item in items] == [("line 1", "A"), ("line 3", "B")]
    assert (items[0].grade, items[1].codes) == ("3", ("X.1",))


@pytest.mark.parametrize(
    ("content", "wanted"),
    [
        (ITEM_2, [("q1", "Halves", ["Which part is half?", "Choose one.", "1/2"])]),
        (ITEM_3, [("q3", "Ramps", ["Which ball is faster?"])]),
        (ITEM_1, [("a", "First", ["Add 3 and 4 & check"]), ("b", None, ["Take 2 from 9"])]),
    ],
)
def test_questions_are_read_without_answers_and_feedback(read, content, wanted):
    items = read("item.xml", content).items
    for item, (id_, title, texts) in zip(items, wanted, strict=True):
        assert item.id == id_
        assert title in (None, item.title)
        assert [line.strip() for line in item.text.split("\n") if line.strip()] == texts


CARTRIDGE = {
    "l1/strips.html": "<h1>Strips</h1><p>Fold paper &amp; compare.</p>",
    "topic.xml": "<topic><title>T</title><text>&lt;p&gt;Why is 1/2 = 2/4?&lt;/p&gt;</text></topic>",
    "quiz.xml": ITEM_1,
    "film.mp4": b"\0" * 50,
}
RESOURCES = """\
<resource identifier="r1" type="webcontent" href="l1/strips.html"><metadata>
 <csm:curriculumStandardsMetadataSet><csm:curriculumStandardsMetadata><csm:setOfGUIDs>
 <csm:labelledGUID><csm:label>3.NF.A.1</csm:label><csm:GUID>g-1</csm:GUID></csm:labelledGUID>
 </csm:setOfGUIDs></csm:curriculumStandardsMetadata></csm:curriculumStandardsMetadataSet>
 </metadata><file href="l1/strips.html"/></resource>
<resource identifier="r2" type="imsdt_xmlv1p3"><file href="topic.xml"/></resource>
<resource identifier="r3" type="imsqti_xmlv1p2/imscc_xmlv1p3/assessment"><file href="quiz.xml"/>
 </resource>
<resource identifier="r4" type="webcontent" href="film.mp4"><file href="film.mp4"/></resource>
<resource identifier="r5" type="webcontent" href="../../etc/passwd"/>
"""
ORGANIZATIONS = """\
<organizations><organization><item identifier="root"><item identifier="u"><title>Unit 1</title>
 <item identifier="1" identifierref="r1"><title>Strips</title></item>
 <item identifier="2" identifierref="r2"><title>Talk</title></item>
 <item identifier="3" identifierref="r3"><title>Quiz</title></item>
 <item identifier="4" identifierref="r4"><title>A film about ramps</title></item>
 <item identifier="5" identifierref="r5"><title>Elsewhere</title></item>
 <item identifier="6" identifierref="none"><title>Missing</title></item>
</item></item></organization></organizations>
"""


def test_the_outline_of_a_cartridge_gives_its_items(read, packed):
    file = read("course.imscc", packed(CARTRIDGE, RESOURCES, ORGANIZATIONS))
    assert [item.title for item in file.items] == [
        "Strips", "Talk", "First", "Take 2 from 9", "A film about ramps", "Elsewhere",
    ]  # fmt: skip
    strips, talk, first, *_, film, elsewhere = file.items
    assert (strips.place, strips.codes) == ("Unit 1", ("3.NF.A.1",))
    assert "Fold paper & compare." in strips.text
    assert talk.text == "Why is 1/2 = 2/4?"
    assert (first.place, first.id) == ("Unit 1", "a")
    assert film.text == elsewhere.text == ""
    assert not file.skipped


def test_questions_of_a_package_without_an_outline_are_items(read, packed):
    resources = (
        '<resource identifier="a" type="imsqti_item_xmlv3p0" href="items/three.xml"/>'
        '<resource identifier="t" type="imsqti_test_xmlv3p0" href="test.xml"/>'
        '<resource identifier="b" type="imsqti_item_xmlv2p1" href="items/two%20.xml"/>'
    )
    files = {
        "items/three.xml": ITEM_3,
        "items/two .xml": ITEM_2,
        "test.xml": "<qti-assessment-test/>",
    }
    file = read("items.zip", packed(files, resources))
    assert [item.title for item in file.items] == ["Ramps", "Halves"]
    assert not file.skipped
