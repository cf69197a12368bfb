"""The plugin: its prompts, the completion of their arguments, and its skills."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib.resources import files

from standards_mcp import Completer, Plugin, Prompt, Skill, hookimpl
from standards_mcp_catalog import Catalog

from . import texts
from .completion import Completion
from .texts import BROWSE, DETAILS, RELATED, SEARCH


class PromptsPlugin(Plugin):
    """Contributes five prompts and four skills for planning lessons and units."""

    title = "Educational standards"
    uses = (Catalog,)

    def _catalog(self) -> Catalog | None:
        return self.context.service(Catalog, None)

    @hookimpl
    def register_prompts(self) -> Iterable[Prompt]:
        """Return the prompts."""
        completion = Completion(self._catalog)
        scope: Mapping[str, Completer] = {
            "grade": completion.grades,
            "subject": completion.subjects,
        }
        return [
            Prompt(
                name="align_lesson",
                title="Align a lesson with standards",
                description=f"Find the standards that a lesson really meets. Needs {SEARCH}.",
                function=texts.align_lesson,
                needs=(SEARCH,),
                uses=(DETAILS,),
                complete=scope,
            ),
            Prompt(
                name="unpack_standard",
                title="Unpack a standard in plain words",
                description=(
                    "Explain the demands of a standard, in words for students, for families and "
                    f"for planning. Needs {DETAILS}."
                ),
                function=texts.unpack_standard,
                needs=(DETAILS,),
                uses=(RELATED,),
                complete={"standard": completion.codes},
            ),
            Prompt(
                name="build_progression",
                title="Build a progression across grades",
                description=(
                    "Lay out how one idea grows from grade to grade, standard by standard. Needs "
                    f"{SEARCH} and {DETAILS}."
                ),
                function=texts.build_progression,
                needs=(SEARCH, DETAILS),
                uses=(RELATED,),
                complete={
                    "first_grade": completion.grades,
                    "last_grade": completion.grades,
                    "subject": completion.subjects,
                },
            ),
            Prompt(
                name="check_coverage",
                title="Check what a unit covers",
                description=(
                    "Compare a unit plan with the standards of its grade: met, touched, missing. "
                    f"Needs {SEARCH} and {DETAILS}."
                ),
                function=texts.check_coverage,
                needs=(SEARCH, DETAILS),
                uses=(BROWSE,),
                complete=scope,
            ),
            Prompt(
                name="differentiate_activity",
                title="Differentiate an activity",
                description=(
                    "Vary an activity for students below, at and beyond the grade, without losing "
                    f"its standard. Needs {SEARCH}."
                ),
                function=texts.differentiate_activity,
                needs=(SEARCH,),
                uses=(RELATED,),
                complete=scope,
            ),
        ]

    @hookimpl
    def register_skills(self) -> Iterable[Skill]:
        """Return the skills."""
        folder = files("standards_mcp_prompts") / "skills"
        needs = {
            "align-lesson": (SEARCH, DETAILS),
            "unpack-standard": (SEARCH, DETAILS),
            "build-progression": (SEARCH, DETAILS),
            "check-unit-coverage": (SEARCH, BROWSE),
        }
        return [Skill(source=folder / name, needs=tools) for name, tools in needs.items()]
