"""A match report as somebody gives it, which may be wrong."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, Field, FiniteFloat


class GivenMatch(BaseModel):
    """One requirement of a report."""

    requirement_text: str = ""
    matched: bool = False
    best_score: FiniteFloat = 0.0
    contributing_atom_id: str | None = None
    evidence_tokens: list[str] = []


class GivenReport(BaseModel):
    """A report, such as match_report of `match_opportunity`."""

    opportunity_id: str
    overall_score: FiniteFloat
    requirement_matches: Annotated[
        list[GivenMatch], Field(description="As in the answer of match_opportunity.")
    ]
