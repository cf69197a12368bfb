"""OpenTelemetry: export the spans of requests to the collector that ``OTEL_*`` variables name."""

from __future__ import annotations

import os
import threading
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from contextvars import Token
from typing import Any, Final

import anyio
import anyio.to_thread
from opentelemetry.context import Context, attach, detach
from opentelemetry.trace import (
    StatusCode,
    get_current_span,
    get_tracer,
    set_span_in_context,
    set_tracer_provider,
)

from standards_mcp._utils.installation import HOST, install_command
from standards_mcp.calls.call import NO_ERRORS, CallRecord, Observer
from standards_mcp.errors import ConfigError
from standards_mcp.host import Host

_FLUSH_SECONDS: Final = 2.0


@asynccontextmanager
async def traced(host: Host, transport: str, version: str) -> AsyncGenerator[None]:
    """Export spans while the context is open, if traces are configured.

    Args:
        transport: The name of the transport in OpenTelemetry: ``tcp`` or ``pipe``.

    Raises:
        ConfigError: The exporter is not installed.
    """
    if not host.settings.server.telemetry.traces:
        yield
        return
    provider = _provider(version)
    # Global, because the SDK looks for it there.
    set_tracer_provider(provider)
    host.observe(_Spans(transport))
    try:
        yield
    finally:
        # In a daemon thread, because the collector may not answer.
        ending = threading.Thread(target=provider.shutdown, daemon=True)
        ending.start()
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(ending.join, _FLUSH_SECONDS)


def _provider(version: str) -> Any:
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import (  # noqa: PLC0415  - an extra
            OTLPSpanExporter,
        )
        from opentelemetry.sdk.resources import Resource  # noqa: PLC0415  - as above
        from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415  - as above
        from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415  - as above
    except ImportError:
        raise ConfigError(
            "[server.telemetry] traces needs OpenTelemetry: remove the key, or run "
            f"`{install_command(HOST, 'otel')}`"
        ) from None
    # `Resource.create` would let an attribute override OTEL_SERVICE_NAME.
    name = os.environ.get("OTEL_SERVICE_NAME", "standards-mcp")
    resource = Resource.create({"service.version": version, "service.name": name})
    provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return provider


class _Spans(Observer):
    """Add the fields of a call to the span of its request.

    The SDK creates the spans of MCP requests. This class creates spans for other calls.
    """

    def __init__(self, transport: str) -> None:
        self._transport = transport
        self._tokens: dict[int, Token[Context]] = {}

    def call_started(self, record: CallRecord) -> None:
        """Begin a span if the call has none. An observer runs within the context of the call."""
        parent = get_current_span().get_span_context()
        if not parent.is_valid or parent.is_remote:
            span = get_tracer(__name__).start_span(f"{record.kind} {record.name}")
            if record.kind == "tool":
                span.set_attribute("gen_ai.operation.name", "execute_tool")
                span.set_attribute("gen_ai.tool.name", record.name)
            self._tokens[id(record)] = attach(set_span_in_context(span))

    def call_ended(self, record: CallRecord) -> None:
        """Add the fields."""
        span = get_current_span()
        fields = {
            "network.transport": self._transport,
            "mcp.session.id": record.session,
            "standards_mcp.plugin": record.plugin,
            "standards_mcp.outcome": record.outcome,
            "standards_mcp.incident": record.incident,
        }
        span.set_attributes({key: text for key, text in fields.items() if text})
        if token := self._tokens.pop(id(record), None):
            if record.outcome not in NO_ERRORS:
                span.set_attribute("error.type", record.outcome)
                span.set_status(StatusCode.ERROR)
            span.end()
            detach(token)
