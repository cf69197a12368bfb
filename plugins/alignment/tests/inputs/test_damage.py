"""Files with random damage end in items or in a reason, never in another exception."""

from __future__ import annotations

import io
import zipfile
from contextlib import suppress

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from standards_mcp_alignment.inputs.archives import Archive
from standards_mcp_alignment.inputs.items import InputError
from standards_mcp_alignment.inputs.packages import package_items
from standards_mcp_alignment.inputs.qti import qti_items
from standards_mcp_alignment.inputs.tables import csv_items, json_items
from standards_mcp_alignment.inputs.xml_parser import parse_xml

QUESTION = b"""<?xml version="1.0"?><qti-assessment-item identifier="q" title="Halves">
<qti-item-body><p>Which part is <b>half</b>?</p></qti-item-body></qti-assessment-item>"""
MANIFEST = b"""<manifest><organizations><organization><item identifierref="q"><title>Quiz</title>
</item></organization></organizations><resources>
<resource identifier="q" type="imsqti_item_xmlv3p0" href="q.xml"/></resources></manifest>"""


def _package() -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("imsmanifest.xml", MANIFEST)
        archive.writestr("q.xml", QUESTION)
    return file.getvalue()


READERS = {
    "xml": (QUESTION, lambda data: qti_items("a", parse_xml(data))),
    "zip": (_package(), lambda data: package_items("a", Archive(io.BytesIO(data)), None)[0]),
    "csv": (b'title;grade\n"Roll; balls";3\n', lambda data: csv_items("a", data)),
    "json": (
        b'{"unit": "U", "lessons": [{"title": "A"}, "B"]}',
        lambda data: json_items("a", data),
    ),
}
CHANGES = st.lists(
    st.tuples(st.floats(0, 1, exclude_max=True), st.sampled_from("drops"), st.binary(max_size=3)),
    min_size=1,
    max_size=6,
)


@pytest.mark.parametrize("kind", READERS)
@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(changes=CHANGES)
def test_random_damage_raises_input_errors_only(kind, changes):
    data, read = READERS[kind]
    assert read(data)
    for share, action, added in changes:
        at = int(share * len(data))
        kept = {"d": at + 4, "r": at + len(added), "o": at, "p": len(data), "s": at + 1}[action]
        data = data[:at] + (added if action != "d" else b"") + data[kept:]
    with suppress(InputError):
        read(data)
