"""``/metrics``: calls, requests, plugins and services for Prometheus."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Iterable, Iterator
from functools import cache, partial
from typing import Final

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    GCCollector,
    Histogram,
    Info,
    ProcessCollector,
)
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import CounterMetricFamily, Metric
from prometheus_client.registry import Collector
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from standards_mcp import errors
from standards_mcp.transports import (
    METRICS,
    NO_ERRORS,
    NOT_SERVED,
    CallRecord,
    Host,
    Principal,
)

from .audit_log import Audit
from .guards import InFlight
from .health import Health, Healths
from .sessions import Sessions

_PREFIX: Final = "standards_mcp"
_BUCKETS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
_OTHER: Final = "other"
_OUTCOMES: Final = {*NO_ERRORS, NOT_SERVED} | {
    value.error_type
    for value in vars(errors).values()
    if isinstance(value, type) and issubclass(value, errors.ToolError)
}
_MAX_LABEL_SETS: Final = 2000


class Metrics:
    """Count calls and requests, and show the state of a host.

    Clients must not choose the values of labels: calls of unknown items have no name, and types of
    errors that plugins define are ``other``.

    Args:
        health: Checks the health of the services.
        audit: The audit log, if there is one.
    """

    def __init__(
        self,
        host: Host,
        health: Health,
        audit: Audit | None,
        in_flight: InFlight,
        sessions: Sessions,
    ) -> None:
        self._services = health.services
        # The global registry would also show metrics of plugins and their libraries, with labels
        # that have no bound.
        registry = CollectorRegistry()
        gauge = partial(Gauge, namespace=_PREFIX, registry=registry)
        counter = partial(Counter, namespace=_PREFIX, registry=registry)
        labels = ("kind", "name", "plugin")
        calls = counter(
            "calls",
            "Calls that have ended, by their outcome: ok, asked, cancelled, or the type of error.",
            (*labels, "outcome"),
        )
        seconds = Histogram(
            "call_seconds",
            "How long calls took.",
            labels,
            namespace=_PREFIX,
            buckets=_BUCKETS,
            registry=registry,
        )
        # Cached, because `labels` takes a lock and makes a key each time; the values are bounded.
        self._calls, self._seconds = cache(calls.labels), cache(seconds.labels)
        self._cached = counter(
            "cached_answers", "Calls that were answered by an equal call.", labels[1:]
        )
        self._running = gauge("calls_in_flight", "Calls that run or wait.")
        self._label_sets = set[tuple[str, str, str]]()
        responses = counter(
            "http_requests", "Requests that have been answered, by the status of HTTP.", ("status",)
        )
        self._responses = cache(responses.labels)
        requests = gauge(
            "http_requests_in_flight",
            "Requests that are being answered: a request, or a stream of later messages.",
            ("kind",),
        )
        requests.labels("request").set_function(lambda: in_flight.requests)
        requests.labels("stream").set_function(lambda: in_flight.streams)
        gauge("sessions", "Sessions that are open.").set_function(lambda: sessions.count)
        about = {"version": health.version, "python": platform.python_version()}
        Info(f"{_PREFIX}_build", "Versions of service and Python.", registry=registry).info(about)
        self._service_up = gauge(
            "service_up", "Whether a service that plugins share works.", ("service",)
        )
        self._service_facts = gauge(
            "service_fact",
            "A number that a service reports, such as its records.",
            ("service", "fact"),
        )
        waiting = gauge("calls_waiting", "Calls that wait for a slot of a tool or plugin.")
        waiting.set_function(lambda: host.pipeline.slots.waiting)
        self._plugins = gauge("plugins", "1 for the state of each plugin.", ("plugin", "state"))
        self._records = host.manager.records
        if audit:
            audit_up = gauge("audit_up", "Whether the audit log can be written.")
            audit_up.set_function(lambda: not audit.problem)
            registry.register(_LostEvents(audit))
        ProcessCollector(registry=registry)
        GCCollector(registry=registry)
        # The library could add up processes, but by a folder that must be emptied at the right
        # moment, and without gauges that are computed at the scrape.
        is_one_of_several = host.settings.server.workers > 1
        self._exported = _WithProcessLabel(registry) if is_one_of_several else registry
        host.observe(self)

    def call_started(self, record: CallRecord) -> None:
        """Count a running call."""
        del record
        self._running.inc()

    def call_ended(self, record: CallRecord) -> None:
        """Count the outcome of a call."""
        self._running.dec()
        labels = self._labels(record)
        outcome = record.outcome if record.outcome in _OUTCOMES else _OTHER
        self._calls(*labels, outcome).inc()
        if record.plugin:
            self._seconds(*labels).observe(record.seconds)
        if record.is_cached:
            self._cached.labels(*labels[1:]).inc()

    def _labels(self, record: CallRecord) -> tuple[str, str, str]:
        if not record.plugin:
            return record.kind, "", ""
        labels = (record.kind, record.name, record.plugin)
        if labels not in self._label_sets:
            # Other MCP servers may list new names without end.
            if len(self._label_sets) >= _MAX_LABEL_SETS:
                return record.kind, _OTHER, record.plugin
            self._label_sets.add(labels)
        return labels

    def route(self, principal_of: Callable[[Request], Principal]) -> Route:
        """Return the route of ``/metrics``, which needs the scope of the same name."""

        async def page(request: Request) -> Response:
            if not principal_of(request).holds(METRICS):
                raise HTTPException(403, f"metrics need the scope {METRICS!r}")
            self._plugins.clear()
            for name, record in self._records.items():
                self._plugins.labels(name, str(record.status)).set(1)
            self._show_services(await self._services())
            encode, kind = choose_encoder(request.headers.get("accept", ""))
            return Response(encode(self._exported), headers={"content-type": kind})

        return Route("/metrics", page, methods=["GET"])

    def _show_services(self, healths: Healths) -> None:
        self._service_facts.clear()  # a service that does not answer gives none
        for name, health in healths.items():
            self._service_up.labels(name).set(health.status != "failed")
            for fact, value in health.facts.items():
                if isinstance(value, int | float) and not isinstance(value, bool):
                    self._service_facts.labels(name, fact).set(value)

    def counted(self, app: ASGIApp) -> ASGIApp:
        """Return *app* with its responses counted."""

        async def count(scope: Scope, receive: Receive, send: Send) -> None:
            async def counting(message: Message) -> None:
                if message["type"] == "http.response.start":
                    self._responses(message["status"]).inc()
                await send(message)

            await app(scope, receive, counting)

        return count


class _LostEvents(Collector):
    """The counter of events that the audit log has lost."""

    def __init__(self, audit: Audit) -> None:
        self._audit = audit

    def collect(self) -> Iterable[Metric]:
        """Return the counter at the time of a request."""
        meaning = "Calls and changes without a line in the audit log."
        yield CounterMetricFamily(f"{_PREFIX}_audit_lost", meaning, self._audit.lost)


class _WithProcessLabel(CollectorRegistry):
    """The metrics of a registry, with the process as a label.

    Without the label, the counters of several workers would look like one counter that jumps.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        super().__init__()
        self._registry, self._label = registry, {"pid": str(os.getpid())}

    def collect(self) -> Iterator[Metric]:
        """Return the metrics."""
        for metric in self._registry.collect():
            metric.samples = [
                sample._replace(labels={**sample.labels, **self._label})
                for sample in metric.samples
            ]
            yield metric
