"""``[server.audit]`` and ``[server.telemetry]``: what operators keep of calls."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from .base import AtStart, NoFlag, Table, error_at


class AuditSettings(Table):
    """``[server.audit]``: a file with a line for each call, over stdio too.

    Attributes:
        path: The file, in a folder that is there. Without it there is no audit log.
        arguments: With ``hash``, a line has a keyed hash of the arguments. With ``redacted``, it
            has the arguments, without what is secret or has a name that looks secret.
        required: If true, a line is written before each call, too, and calls that it cannot be
            written for do not run.
        max_bytes: A file of this many bytes is renamed, and a new one begun.
        files: This many older files are kept.
    """

    path: Path | None = None
    arguments: Literal["hash", "redacted"] = "hash"
    required: bool = False
    max_bytes: Annotated[int, Field(ge=10_000), NoFlag] = 50_000_000
    files: Annotated[int, Field(gt=0, le=1000), NoFlag] = 10

    @model_validator(mode="after")
    def _check_has_path(self) -> Self:
        if self.required and self.path is None:
            raise error_at("required", "it needs the path of the audit log")
        return self


class TelemetrySettings(Table):
    """``[server.telemetry]``: OpenTelemetry, over stdio too.

    Attributes:
        traces: If true, a span of each request is sent over OTLP, as the environment variables
            ``OTEL_*`` say. It needs the extra ``otel``.
    """

    traces: Annotated[bool, AtStart()] = False
