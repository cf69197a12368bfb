"""The plugin class: the tools, with their descriptions for models."""

from __future__ import annotations

import threading
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Annotated

import click
from pydantic import Field, StrictBool

from standards_mcp import Plugin, hookimpl, tool

from .answers import (
    Decision,
    DecisionList,
    Event,
    EventAnswer,
    GivenReport,
    IndexAnswer,
    IngestAnswer,
    MatchAnswer,
    TraceAnswer,
    ValidationAnswer,
)
from .interactions import apply_event
from .records import Opportunity
from .resumes import ingest_resume
from .settings import CareerSettings, Scope, Strategy, StrategyName
from .validation import validate_match_report

if TYPE_CHECKING:
    from .service import Career

TraceId = Annotated[
    str | None,
    Field(min_length=1, max_length=128, description="The trace to write to; else a new one."),
]
Candidates = Annotated[int, Field(ge=0, le=1000)]


class CareerPlugin(Plugin[CareerSettings]):
    """Tools for job applications: matching, validation, interactions, resumes and audit."""

    title = "Career"
    settings_type = CareerSettings

    @hookimpl
    @asynccontextmanager
    async def lifespan(self) -> AsyncGenerator[None]:
        """Warn about data in memory, and close the services at the end."""
        self._open_lock = threading.Lock()
        self._services: Career | None = None
        self._warn_about_memory()
        try:
            yield
        finally:
            if self._services is not None:
                self._services.close()

    def _warn_about_memory(self) -> None:
        is_in_memory = self.settings.database is None
        if is_in_memory:
            self.context.log.warning(
                "repositories, audit log, resumes and index runs are in memory, and end with the "
                "server; plugins.career.db keeps them"
            )
        if self.settings.vector_backend == "inmemory" and self.settings.embedding != "none":
            self.context.log.warning(
                "vectors are in memory, and index_build makes them after each start; "
                "plugins.career.vector_backend keeps them"
            )
        if is_in_memory and self.settings.redis is None:
            self.context.log.warning(
                "interactions are coordinated in memory, and receipts end with the server; "
                "plugins.career.redis or plugins.career.db keeps them"
            )

    def _career(self) -> Career:
        # The first call opens the database, not the start: a migration may take long.
        from .service import open_career  # noqa: PLC0415  - it imports numpy

        with self._open_lock:
            if self._services is None:
                self._services = open_career(self.settings, is_server=True)
            return self._services

    @hookimpl
    def register_commands(self) -> list[click.Command]:
        """Return the commands of ``standards-mcp career``."""
        from .cli import jobs, records  # noqa: PLC0415  - a server needs no commands

        return [*jobs.commands(self.settings), *records.commands(self.settings)]

    @hookimpl
    def register_backup(self) -> object:
        """Return the backup of the database; without one, all data are in memory."""
        from .backup import CareerBackup  # noqa: PLC0415  - a server needs none

        return CareerBackup(self.settings.db) if self.settings.db else None

    @tool(
        title="Match an opportunity",
        destructive=False,
        open_world=False,
        returns_untrusted_text=True,
    )
    def match_opportunity(  # noqa: PLR0913, PLR0917  - the arguments of a tool
        self,
        opportunity_id: Annotated[
            str | None, Field(description="A stored opportunity; else give opportunity.")
        ] = None,
        opportunity: Annotated[
            Opportunity | None, Field(description="An opportunity that is not stored.")
        ] = None,
        strategy: Annotated[
            Strategy | StrategyName | None,
            Field(description="lexical: words; hybrid: vectors find more; semantic: they count."),
        ] = None,
        k_lex: Annotated[Candidates, Field(description="Number of candidates by words.")] = 25,
        k_emb: Annotated[Candidates, Field(description="Number of candidates by vectors.")] = 25,
        atom_ids: Annotated[
            list[str] | None, Field(description="Consider these atoms alone.")
        ] = None,
        resume_id: Annotated[str | None, Field(description="For the audit log.")] = None,
        trace_id: TraceId = None,
    ) -> MatchAnswer:
        """Match the requirements of a position with the verified atoms, and return the evidence.

        Quote evidence_tokens and missing_requirements as they are: only verified atoms prove
        anything. Call index_build before hybrid and semantic.
        """
        from .scoring import Options, short_name  # noqa: PLC0415  - as in _career

        chosen = short_name(strategy) if strategy else self.settings.matching_strategy
        return self._career().matching.match_opportunity(
            options=Options(chosen, k_lex, k_emb),
            opportunity_id=opportunity_id,
            opportunity=opportunity,
            atom_ids=atom_ids,
            resume_id=resume_id,
            trace_id=trace_id,
        )

    @tool(title="Validate a match report", destructive=False, open_world=False)
    def validate_match_report(
        self,
        match_report: Annotated[GivenReport, Field(description="Of match_opportunity.")],
        trace_id: TraceId = None,
    ) -> ValidationAnswer:
        """Check a match report against the rules: no match without an atom and its evidence."""
        audit = self._career().audit
        return validate_match_report(audit, self.settings.tokens, match_report, trace_id)

    @tool(title="Build the index", destructive=False, open_world=False, timeout=300)
    def index_build(
        self,
        scope: Annotated[Scope, Field(description="Records to embed.")] = "all",
        trace_id: TraceId = None,
    ) -> IndexAnswer:
        """Make vectors of new and changed records, for hybrid and semantic matching."""
        return self._career().indexing.build(scope, trace_id)

    @tool(
        read_only=True,
        idempotent=True,
        open_world=False,
        title="Read a decision",
        returns_untrusted_text=True,
    )
    def get_decision(
        self, decision_id: Annotated[str, Field(description="Of match_opportunity.")]
    ) -> Decision:
        """Return the decision of a match: the chosen atom and evidence for each requirement."""
        return self._career().matching.get_decision(decision_id)

    @tool(
        read_only=True,
        idempotent=True,
        open_world=False,
        title="List the decisions of a trace",
        returns_untrusted_text=True,
    )
    def list_decisions(
        self, trace_id: Annotated[str, Field(description="The trace_id of an answer.")]
    ) -> DecisionList:
        """Return all decisions of a trace, the oldest first."""
        return self._career().matching.list_decisions(trace_id)

    @tool(
        read_only=True,
        idempotent=True,
        open_world=False,
        title="Read an audit trace",
        returns_untrusted_text=True,
    )
    def get_audit_trace(
        self,
        trace_id: Annotated[str, Field(description="The trace_id of an answer.")],
        offset: Annotated[int, Field(ge=0, description="Number of events to skip.")] = 0,
        limit: Annotated[int, Field(ge=1, le=1000, description="Maximum number of events.")] = 200,
    ) -> TraceAnswer:
        """Return the events of a call's trace, in order, with their payloads.

        Each answer of this plugin has a trace_id.
        """
        return self._career().audit.page(trace_id, offset, limit)

    @tool(title="Apply an event to an interaction", destructive=False, open_world=False)
    def interaction_apply_event(
        self,
        interaction_id: Annotated[str, Field(min_length=1, description="The interaction.")],
        event: Annotated[Event, Field(description="The event.")],
        idempotency_key: Annotated[
            str,
            Field(
                min_length=1,
                max_length=256,
                description="The same for each attempt to send one event, so that it counts once.",
            ),
        ],
        trace_id: TraceId = None,
    ) -> EventAnswer:
        """Move an application on: Draft, Prepare, Ready, Send, Sent, ReceiveReply, Responded.

        Close ends it in any state. The outcome is applied, already_applied for a repeated key, or
        the reason of a refusal. Try again with the same idempotency_key.
        """
        career = self._career()
        return apply_event(
            career.coordinator, career.audit, interaction_id, event, idempotency_key, trace_id
        )

    @tool(title="Ingest a resume", destructive=False, open_world=False, timeout=60)
    def ingest_resume(
        self,
        input_path: Annotated[
            str, Field(description="The file's absolute path, inside resume_roots.")
        ],
        persist: Annotated[StrictBool, Field(description="Store it.")] = True,  # noqa: FBT002  an argument of a tool
        trace_id: TraceId = None,
    ) -> IngestAnswer:
        """Read a resume (.md, .txt, .docx or .pdf) and store it as Markdown, each content once."""
        career = self._career()
        return ingest_resume(
            career.audit, career.limits, input_path, persist=persist, trace_id=trace_id
        )
