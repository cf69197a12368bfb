"""Records as callers give them. Keys that are not known are left alone."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import BaseModel, Field

from .domain.records import Opportunity, Requirement

_MOST_REQUIREMENTS: Final = 1000


class GivenRequirement(BaseModel):
    """What an opportunity asks for; one that is not required is welcome."""

    text: str
    tags: list[str] = []
    required: bool = True


class GivenOpportunity(BaseModel):
    """A position that may be applied for, with its requirements in order."""

    opportunity_id: str
    company: str
    role_title: str
    source: str = ""
    requirements: Annotated[list[GivenRequirement], Field(max_length=_MOST_REQUIREMENTS)] = []

    def record(self) -> Opportunity:
        """Return it as it would be stored, neither normalised nor checked."""
        asked = tuple(
            Requirement(each.text, tuple(each.tags), each.required) for each in self.requirements
        )
        return Opportunity(self.opportunity_id, self.company, self.role_title, self.source, asked)
