from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from standards_mcp_catalog.starter import starter_seed
from standards_mcp_catalog.vocabulary.families import COMMON_CORE, family_of

OF = {
    "NGSS": ["MS-PS1-1", "ms-ps1-1", "K-2-ETS1-1", "3-5-ETS1-2", "5.ESS3.1", "HS\u2013LS2\u20137",
             "NGSS 5-PS1-1", "PS1.A"],
    "TEKS": ["111.5.b.3", "111.5(b)(3)", "\u00a7110", "\u00a7 112.16", "TEKS 3.4K", "110.16.3.A",
             "\u00a7111.5(b)(3)(A)"],
    "Virginia": ["SOL 3.5", "SOL: 4.1"],
    "Florida": ["MA.3.NSO.1.1", "MA.K12.MTR.1.1", "ELA.3.R.1.1", "SC.4.P.8.1", "SS.912.A.1.1",
                "MAFS.3.NF.1.1", "LAFS.K.RF.2.2.a"],
    "C3": ["D2.Civ.4.6-8", "d2.his.14.k-2", "D4.1.6-8"],
    "CSTA": ["1B-CS-02", "3A-NI-05", "CT.L2:1", "CPP.L1:6-02"],
    "Common Core": ["3.NF.A.1", "3.nf.1.", "CCSS.ELA-LITERACY.RL.4.3", "HSA-REI.B.4", "MP1"],
}  # fmt: skip


@pytest.mark.parametrize("family", OF)
def test_the_form_of_a_code_names_its_family(family: str):
    for code in OF[family]:
        found = family_of(code)
        assert found is not None, code
        assert family in f"{found.name} {found.places}"
        assert found.source.startswith("`standards-mcp data import ")


@pytest.mark.parametrize(
    "code",
    ["", "110", "3.5", "S6E5.g", "KY.3.OA.9", "8.PS.1", "RW.3.2.2.3", "ELA 2.23A", "solar 3",
     "teks", "GUID", "112", "SC.5.3.5.1", "CSP-2.1.1E", "fractions", "1.3.8.A"],
)  # fmt: skip
def test_a_code_that_several_may_have_is_of_no_family(code: str):
    assert family_of(code) is None


def test_every_mathematics_and_literacy_code_of_the_starter_set_is_of_the_common_core():
    codes = [record.statement_notation or "" for record in starter_seed().records]
    common = [code for code in codes if code.startswith("CCSS.")]
    assert common
    assert {family_of(code) for code in common} == {COMMON_CORE}


@settings(derandomize=True, deadline=None)
@given(st.text())
def test_any_text_is_asked_without_an_error(text: str):
    family_of(text)
