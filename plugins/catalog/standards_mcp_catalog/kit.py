"""Ten invented records to try a plugin with, without official texts.

Aland has a tree for mathematics in grade 3 (a domain, a cluster, two standards, a standard in two
parts), one standard of grade 4 and one of science; Borduria has fractions of grade 3 and one
standard of grade 5.
"""

from __future__ import annotations

import io
from pathlib import Path
from typing import Final

from standards_mcp_catalog.base import Seed
from standards_mcp_catalog.importing.formats.tabular import read_table
from standards_mcp_catalog.local.catalog import LocalCatalog
from standards_mcp_catalog.local.seeding import SeedSource
from standards_mcp_catalog.records import StandardRecord

_TABLE: Final = """\
code,parent,jurisdiction,subject,set_id,grades,label,text
3.NF,,Aland,Mathematics,Aland-Mathematics-03,3,Domain,Fractions
3.NF.A,3.NF,Aland,Mathematics,Aland-Mathematics-03,3,Cluster,See fractions as numbers
3.NF.A.1,3.NF.A,Aland,Mathematics,Aland-Mathematics-03,3,Standard,Cut a pizza into equal parts
3.NF.A.2,3.NF.A,Aland,Mathematics,Aland-Mathematics-03,3,Standard,Fold paper strips into parts
3.NF.A.2a,3.NF.A.2,Aland,Mathematics,Aland-Mathematics-03,3,Part,Mark one part of a whole
3.NF.A.2b,3.NF.A.2,Aland,Mathematics,Aland-Mathematics-03,3,Part,Mark several equal parts
4.NF.A.1,,Aland,Mathematics,Aland-Mathematics-04,4,Standard,Draw fractions that are equal
4-PS3-1,,Aland,Science,Aland-Science-04,4,Standard,Roll balls down a ramp
3.FR.1,,Borduria,Mathematics,Borduria-Mathematics-03,3,Standard,Share a cake fairly
5.SC.1,,Borduria,Science,Borduria-Science-05,5,Standard,Mix salt and water
"""


def records() -> list[StandardRecord]:
    """Return the ten records, parents before their children."""
    state = {"publication_status": "Published", "text_status": "paraphrase"}
    return [
        StandardRecord.from_dict(each.to_dict() | state)
        for each in read_table(io.BytesIO(_TABLE.encode()), "the test kit")
        if isinstance(each, StandardRecord)
    ]


def small_catalog(folder: Path) -> LocalCatalog:
    """Return an embedded catalog that is filled with the ten records when it is first used."""
    seed = SeedSource(name="ten records of the test kit", edition=lambda: "1", load=_seed)
    return LocalCatalog(folder, seed=seed)


def _seed() -> Seed:
    import numpy as np  # noqa: PLC0415  - most plugins are tested without the catalog

    # Without vectors: ten texts are soon embedded.
    return Seed(records=records(), model="", hashes=(), vectors=np.empty((0, 0), np.float32))
