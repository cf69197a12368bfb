"""Spans that a service sends over OTLP."""

from __future__ import annotations

import http.server
import json
import signal
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from support.hosts import MakeHost
from support.http import ACCEPT, MODERN, http_client, patient_client, rpc
from support.peer import COMMAND, Peer
from support.waiting import WAIT, until
from support.web_server import QuietHandler, in_thread

from standards_mcp.errors import ConfigError
from standards_mcp.server.tracing import traced

pytestmark = [pytest.mark.anyio, pytest.mark.processes]
OF_REQUEST, OF_FAILURE, OF_MESSAGE = "a" * 32, "b" * 32, "c" * 32
PARENT = "b7ad6b7169203331"
DETAILS = {"name": "get_standard_details", "arguments": {"standard_id": "3.NF.A.1"}}
UNKNOWN = {"name": "get_standard_details", "arguments": {"standard_id": "no such id"}}


def traceparent(trace: str) -> str:
    return f"00-{trace}-{PARENT}-01"


class Collector:
    """Takes spans over OTLP, by HTTP and protobuf."""

    def __init__(self) -> None:
        self.requests: list[ExportTraceServiceRequest] = []
        collector = self

        class Handler(QuietHandler):
            def do_POST(self) -> None:  # noqa: N802
                body = self.rfile.read(int(self.headers["content-length"]))
                collector.requests.append(ExportTraceServiceRequest.FromString(body))
                self.reply(200)

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}"

    def named(self, name: str) -> list[Any]:
        """Return the spans of a name."""
        return [
            span
            for request in self.requests
            for resource in request.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
            if span.name == name
        ]

    def calls(self) -> dict[str, Any]:
        """Return the spans of tool calls over MCP by their traces."""
        found = self.named("tools/call get_standard_details")
        return {each.trace_id.hex(): each for each in found}

    def resource(self) -> dict[str, str]:
        return attributes_of(self.requests[0].resource_spans[0].resource)


def attributes_of(owner: Any) -> dict[str, str]:
    return {each.key: each.value.string_value for each in owner.attributes}


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch, starter_catalog: Path) -> Generator[Collector]:
    """Return a collector that the processes of a test find, and let them send to it."""
    del starter_catalog
    collector = Collector()
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "50")
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test")
    monkeypatch.setenv("STANDARDS_MCP_SERVER__REST", "true")
    monkeypatch.setenv("STANDARDS_MCP_SERVER__TELEMETRY__TRACES", "true")
    with in_thread(collector.server):
        yield collector


@pytest.fixture
def url(collector: Collector) -> Generator[str]:
    """Start a service, and return its address once it listens."""
    del collector
    with subprocess.Popen(
        [*COMMAND, "serve", "--transport", "http", "--port", "0"],
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        lines = (json.loads(line) for line in process.stderr)
        yield next(line["url"] for line in lines if line["event"] == "listening")
        process.send_signal(signal.SIGTERM)
        for _ in lines:
            pass
        process.wait(WAIT)


async def test_a_span_of_a_call_belongs_to_the_trace_of_its_request(url: str, collector: Collector):
    async with http_client(url.removesuffix("/mcp"), mode="legacy") as client:
        await client.call_tool(**DETAILS)
    headers = {"mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call", **ACCEPT}
    headers["mcp-name"] = "get_standard_details"
    async with patient_client(headers=headers) as http:
        for params, trace, more in (
            (UNKNOWN, OF_FAILURE, {}),
            (DETAILS, OF_REQUEST, {}),
            (DETAILS, OF_REQUEST, {"traceparent": traceparent(OF_MESSAGE)}),
        ):
            message = rpc("tools/call", **params, _meta=more | MODERN)
            of_http = {"traceparent": traceparent(trace)}
            (await http.post(url, json=message, headers=of_http)).raise_for_status()
        rest = url.replace("/mcp", "/tools/get_standard_details")
        of_http = {"traceparent": traceparent(OF_FAILURE)}
        answer = await http.post(rest, json=UNKNOWN["arguments"], headers=of_http)
        assert answer.status_code == 404
    # The last one comes with or after all others.
    await until(lambda: collector.named("tool get_standard_details"))
    calls = collector.calls()
    assert collector.resource()["service.name"] == "standards-mcp"
    assert collector.resource()["deployment.environment.name"] == "test"
    found = attributes_of(calls[OF_REQUEST])
    assert calls[OF_REQUEST].parent_span_id.hex() == PARENT
    assert found["mcp.method.name"] == "tools/call"
    assert found["gen_ai.tool.name"] == "get_standard_details"
    assert found["network.transport"] == "tcp"
    assert found["standards_mcp.plugin"] == "lookup"
    assert found["standards_mcp.outcome"] == "ok"
    failed = attributes_of(calls[OF_FAILURE])
    assert failed["error.type"] == "tool_error"
    assert failed["standards_mcp.outcome"] == "not_found"
    # What a client says of a message counts before what its HTTP library says of the request.
    assert calls[OF_MESSAGE].parent_span_id.hex() == PARENT
    (of_rest,) = collector.named("tool get_standard_details")
    assert of_rest.trace_id.hex() == OF_FAILURE
    assert attributes_of(of_rest)["error.type"] == "not_found"
    (of_session,) = (calls[each] for each in calls.keys() - {OF_REQUEST, OF_FAILURE, OF_MESSAGE})
    assert attributes_of(of_session)["mcp.session.id"]


def test_calls_over_stdio_have_spans_and_lines_in_the_audit_log(
    collector: Collector, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    path = tmp_path / "audit.jsonl"
    monkeypatch.setenv("STANDARDS_MCP_SERVER__AUDIT__PATH", str(path))
    peer = Peer("serve")
    peer.initialize()
    meta = {"traceparent": traceparent(OF_MESSAGE)}
    peer.send("tools/call", {**DETAILS, "_meta": meta}, 1)
    assert not peer.answers(1)[1]["result"].get("isError")
    peer.end()
    peer.kill()  # lets go of its pipes
    assert attributes_of(collector.calls()[OF_MESSAGE])["network.transport"] == "pipe"
    line = json.loads(path.read_text(encoding="utf-8").splitlines()[-2])
    told = (line["caller"], line["transport"], line["name"])
    assert told == ("local", "stdio", "get_standard_details")


async def test_a_service_without_the_exporter_says_what_to_install(
    make_host: MakeHost, monkeypatch: pytest.MonkeyPatch
):
    exporter = "opentelemetry.exporter.otlp.proto.http.trace_exporter"
    monkeypatch.setitem(sys.modules, exporter, None)
    host = make_host({}, server={"port": 0, "telemetry": {"traces": True}})
    with pytest.raises(ConfigError, match=r"run `.* 'opentelemetry-exporter-otlp-proto-http<2"):
        async with traced(host, "tcp", "1"):
            pass
