"""A pytest plugin for the tests of plugins that use the catalog, and ten invented records.

The only fixture is `catalog`. Give it to the host's kit as
``connect(..., services={Catalog: catalog})``. pytest imports this module at the start of every
session, so its own imports are few and light.

Aland has a tree for mathematics in grade 3 (a domain, a cluster, two standards, a standard in two
parts), one standard of grade 4 and one of science; Borduria has fractions of grade 3 and one
standard of grade 5.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

if TYPE_CHECKING:
    from .local.catalog import LocalCatalog
    from .records import StandardRecord
    from .results import Seed

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
    from .importing.formats.tabular import read_table  # noqa: PLC0415  - see the module's docstring
    from .records import StandardRecord  # noqa: PLC0415  - as above

    state = {"publication_status": "Published", "text_status": "paraphrase"}
    return [
        StandardRecord.from_dict(each.to_dict() | state)
        for each in read_table(io.BytesIO(_TABLE.encode()), "the test kit")
        if isinstance(each, StandardRecord)
    ]


def small_catalog(folder: Path) -> LocalCatalog:
    """Return an embedded catalog that is filled with the ten records when it is first used."""
    from .local.catalog import LocalCatalog  # noqa: PLC0415  - as above
    from .local.seeding import SeedSource  # noqa: PLC0415  - as above

    seed = SeedSource(name="ten records of the test kit", edition=lambda: "1", load=_seed)
    return LocalCatalog(folder, seed=seed)


def _seed() -> Seed:
    import numpy as np  # noqa: PLC0415  - as above

    from .results import Seed  # noqa: PLC0415  - as above

    # Without vectors: ten texts are soon embedded.
    return Seed(records=records(), model="", hashes=(), vectors=np.empty((0, 0), np.float32))


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[LocalCatalog]:
    """A catalog of the test's own with the ten records of `small_catalog`."""
    catalog = small_catalog(tmp_path / "catalog")
    yield catalog
    catalog.store.close()
