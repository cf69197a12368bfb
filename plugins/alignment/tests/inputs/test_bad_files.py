"""Files that cannot be read: each gets a reason, and the others are read."""

from __future__ import annotations

import io
import os
import struct
import zipfile
from pathlib import Path

import pytest

from standards_mcp_alignment.inputs import ItemReader, find_files

BOMB = """<?xml version="1.0"?><!DOCTYPE a [<!ENTITY b "bbbbbbbbbb"><!ENTITY c "&b;&b;&b;">]>
<assessmentItem identifier="x"><itemBody>&c;</itemBody></assessmentItem>"""
EXTERNAL = """<!DOCTYPE a [<!ENTITY secret SYSTEM "file:///etc/passwd">]>
<assessmentItem identifier="x"><itemBody>&secret;</itemBody></assessmentItem>"""
PARAMETER = """<!DOCTYPE a [<!ENTITY % p SYSTEM "http://127.0.0.1:9/x.dtd"> %p;]>
<assessmentItem identifier="x"><itemBody>text</itemBody></assessmentItem>"""
DEEP = "<a>" * 100_000
BLANK_PDF = b"""%PDF-1.4
1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj
2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj
3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 99 99]>>endobj
trailer<</Root 1 0 R>>
"""
KEY = b"<" + b"00" * 32 + b">"
ENCRYPTION = b"/Encrypt<</Filter/Standard/V 1/R 2/P -1/O" + KEY + b"/U" + KEY + b">>/ID[<00><00>]"
PROTECTED_PDF = BLANK_PDF.replace(b"/Root 1 0 R", b"/Root 1 0 R" + ENCRYPTION)
OLE = bytes.fromhex("d0cf11e0a1b11ae1") + bytes(600)


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("a.xml", BOMB, "it declares the entity 'b'"),
        ("a.xml", EXTERNAL, "it declares the entity 'secret'"),
        ("a.xml", PARAMETER, "it declares the entity 'p'"),
        ("a.xml", DEEP, "nested too deep"),
        ("a.xml", "<assessmentItem><itemBody>", "it is damaged, or not XML"),
        ("a.xml", "<?xml version='1.0' encoding='nonsense'?><a/>", "it is damaged, or not XML"),
        ("a.xml", "<rss/>", "its root element is 'rss'"),
        ("a.xml", "<assessmentItem><itemBody/></assessmentItem>", "its items have no text"),
        ("a.pdf", BLANK_PDF, "it has no text; if it is a scan, run text recognition (OCR)"),
        ("a.pdf", PROTECTED_PDF, "it is protected by a password"),
        ("a.pdf", b"%PDF-1.4 nothing", "it is damaged"),
        ("a.docx", OLE, "it is protected by a password"),
        ("a.md", b"a\0b", "it is not text"),
        ("a.md", b"", "it has no text"),
        ("a.csv", "grade,notes\n3,x\n", "none of its columns is called title or text"),
        ("a.csv", "", "its columns are missing"),
        ("a.csv", 'title\n"open', "it is not a table"),
        ("a.csv", "title\n" + "x" * 200_000, "it is not a table: field larger"),
        ("a.csv", "title\n", "it has no lessons or items"),
        ("a.csv", "title\n" + "x\n" * 50_001, "it has more than 50,000 items"),
        ("a.json", "[" + '"x",' * 50_000 + '"x"]', "it has more than 50,000 items"),
        (
            "a.xml",
            "<questestinterop>" + "<item>x</item>" * 50_001 + "</questestinterop>",
            "it has more than 50,000 items",
        ),
        ("a.json", "{", "it is not JSON"),
        ("a.json", "[" * 100_000, "nested too deep"),
        ("a.json", "[" * 900 + "]" * 900, "nested too deep"),
        ("a.json", "9" * 5000, "it is not JSON"),
        ("a.jsonl", "{}\n{", "it is not JSON: line 2"),
        ("a.zip", b"PK\3\4 nothing", "it is damaged, or not a zip archive"),
        ("a.zip", b"", "it is damaged, or not a zip archive"),
        ("a.zip", zipfile.ZIP64_LIMIT.to_bytes(8) + b"PK\5\6", "it is damaged"),
        ("a.png", "x", "it has none of these suffixes"),
    ],
)
def test_the_reason_is_told(read, name, content, reason):
    assert reason in read(name, content).reason


@pytest.mark.parametrize(
    ("name", "size"), [("a.md", 11), ("a.csv", 21), ("a.pdf", 200), ("a.imscc", 1001)]
)
def test_a_large_file_is_refused_before_it_is_read(tmp_path, name, size):
    path = tmp_path / name
    with path.open("wb") as file:
        file.truncate(size * 1_000_000)
    with ItemReader() as reader:
        assert "it is larger than" in reader.read(path).reason


def test_an_archive_with_many_members_is_refused(read):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for number in range(100_000):
            archive.writestr(str(number), b"")
    assert "more than 10,000 members" in read("a.imscc", file.getvalue()).reason


def test_a_damaged_file_that_an_outline_names_many_times_is_told_once(read, packed):
    items = '<item identifierref="q"><title>Quiz</title></item>' * 1000
    outline = f"<organizations><organization>{items}</organization></organizations>"
    for kind, name, count in (("webcontent", "q.pdf", 1000), ("imsqti_xmlv1p2", "q.xml", 1)):
        resources = f'<resource identifier="q" type="{kind}" href="{name}"/>'
        file = read("a.imscc", packed({name: "%PDF-1.4 <"}, resources, outline))
        assert [skipped.name.rpartition(":")[2] for skipped in file.skipped] == [name]
        assert len(file.items) == count


def test_an_outline_may_name_one_file_many_times(read, packed):
    question = "<questestinterop>" + "<item>Add 1 and 2</item>" * 100 + "</questestinterop>"
    items = '<item identifierref="q"><title>Quiz</title></item>' * 20_000
    outline = f"<organizations><organization>{items}</organization></organizations>"
    resources = '<resource identifier="q" type="imsqti_xmlv1p2" href="q.xml"/>'
    file = read("a.imscc", packed({"q.xml": question}, resources, outline))
    assert len(file.items) == 100


def test_an_archive_that_hides_its_number_of_members_is_refused(read):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for number in range(11_000):
            archive.writestr(str(number), b"")
    data = bytearray(file.getvalue())
    end = data.rfind(b"PK\5\6")
    data[end + 8 : end + 12] = struct.pack("<2H", 1, 1)
    assert "more than 10,000 members" in read("a.zip", bytes(data)).reason


def _encrypted(data: bytes, member: str) -> bytes:
    """Return an archive whose directory says that a member is encrypted."""
    changed = bytearray(data)
    at = changed.find(b"PK\1\2")
    while changed[at + 46 : at + 46 + len(member)] != member.encode():
        at = changed.find(b"PK\1\2", at + 1)
    changed[at + 8] |= 1
    return bytes(changed)


RESOURCES = "".join(
    f'<resource identifier="{name}" type="webcontent" href="{name}.html"/>' for name in "ab"
)
ORGANIZATIONS = "<organizations><organization>{}</organization></organizations>".format(
    "".join(f'<item identifierref="{name}"><title>Lesson {name}</title></item>' for name in "ab")
)


def test_a_member_that_cannot_be_read_does_not_affect_the_others(read, packed):
    files = {"a.html": "<p>Fold paper.", "b.html": "<p>Roll balls."}
    data = packed(files, RESOURCES, ORGANIZATIONS)
    file = read("a.imscc", _encrypted(data, "a.html"))
    [skipped] = file.skipped
    assert skipped.name.endswith("a.imscc:a.html")
    assert skipped.reason == "it is protected by a password"
    assert [item.title for item in file.items] == ["Lesson a", "Lesson b"]
    assert [item.text for item in file.items] == ["", "Roll balls."]


def test_a_protected_or_missing_manifest_is_told(read, packed):
    data = packed({"a.html": "x"}, RESOURCES)
    assert read("a.zip", _encrypted(data, "imsmanifest.xml")).reason == (
        "it is protected by a password"
    )
    assert "it has no imsmanifest.xml" in read("a.zip", packed({"a.html": "x"})).reason


def test_a_member_that_unpacks_to_gigabytes_is_not_unpacked(read, packed):
    data = packed({"a.html": bytes(30_000_000), "b.html": "<p>Roll."}, RESOURCES, ORGANIZATIONS)
    assert len(data) < 100_000
    file = read("a.imscc", data)
    assert "it unpacks to more than 20 MB" in file.skipped[0].reason
    assert file.items[1].text == "Roll."


def test_all_members_together_have_a_limit(read, packed):
    names = [f"n{number}" for number in range(60)]
    files = {f"{name}.xml": b"<a>" + b" " * 9_000_000 + b"</a>" for name in names}
    resources = "".join(
        f'<resource identifier="{name}" type="x" href="{name}.xml"/>' for name in names
    )
    items = "".join(f'<item identifierref="{name}"><title>{name}</title></item>' for name in names)
    outline = f"<organizations><organization>{items}</organization></organizations>"
    file = read("a.imscc", packed(files, resources, outline))
    assert len(file.items) == 60
    assert "its archive unpacks to more than 500 MB" in file.skipped[0].reason


def test_a_pipe_and_a_circular_link_are_not_read(tmp_path: Path):
    pipe, circle = tmp_path / "pipe.md", tmp_path / "circle.md"
    os.mkfifo(pipe)
    circle.symlink_to(circle)
    with ItemReader() as reader:
        assert reader.read(pipe).reason == "it is not a file"
        assert "it cannot be read" in reader.read(circle).reason
        assert "it cannot be read: No such file" in reader.read(tmp_path / "none.md").reason


def test_links_in_a_folder_are_followed_only_within_it(tmp_path: Path):
    folder, outside = tmp_path / "in", tmp_path / "out"
    for path in (folder / "sub", outside, folder / ".hidden"):
        path.mkdir(parents=True)
        (path / "a.md").write_text("text", "utf-8")
    (folder / "other.bin").write_bytes(b"x")
    (folder / "inside.md").symlink_to("sub/a.md")
    (folder / "outside.md").symlink_to(outside / "a.md")
    (folder / "linked").symlink_to(outside)
    (folder / "loop").symlink_to(folder)
    files, skipped = find_files([folder, folder / "sub" / "a.md"])
    assert files == [folder / "inside.md", folder / "sub" / "a.md"]
    assert {(Path(each.name).name, each.reason) for each in skipped} == {
        ("linked", "a link to a folder"),
        ("loop", "a link to a folder"),
        ("outside.md", "a link that leaves the folder"),
    }


def test_texts_are_made_printable(read):
    text = '[{"title": "A\\u0000\\ud800 \\u001b[31m", "text": "<b onclick=x>Bold</b> &amp; 3 < 4"}]'
    [item] = read("a.json", text).items
    assert item.title == "A ? [31m"
    assert item.text == "Bold & 3 < 4"
