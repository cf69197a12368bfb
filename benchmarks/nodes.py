"""Two nodes behind HAProxy, with folders of their own and a Redis in common: one is killed.

    python benchmarks/nodes.py [--seconds 10] [--clients 8] [--limit 500]

Needs `haproxy` and `redis-server`. A publisher writes a snapshot of the starter set, and both nodes
pull it over HTTP. HAProxy has the configuration of docs/serving.md. Clients search without a pause
while both nodes pull another snapshot, while one node is killed, and after it has come back. The
program ends with an error if a call fails, except between the kill and the health check, if an
answered call is in no audit log, or if a limit of calls does not hold for both nodes together.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2

from standards_mcp_service.tokens import new_token, token_hash

PROGRAM = [sys.executable, "-m", "standards_mcp"]
SYSTEM = f"{os.environ.get('PATH', '')}:/usr/sbin"
PAGE = Path(__file__).parents[1] / "docs" / "serving.md"
NODES = ("one", "two")
CALLERS = ("search", "limit", "killed")
"""Each has a token, so each has a limit of its own."""
NEW = {
    "_id": "NEW-1",
    "content": "Depth 0: Juggle seven purple pineapples.",
    "description": "Juggle seven purple pineapples.",
    "standard_set_id": "new",
    "standard_set_title": "New",
    "subject": "Circus",
    "education_levels": ["03"],
    "jurisdiction_id": "new",
    "jurisdiction_title": "Somewhere",
}
CONFIG = """
state_dir = "{folder}/state"

[plugins.catalog]
path = "{folder}/catalog"

[plugins.catalog.snapshots]
publisher = "{publisher}"

[server]
port = {port}
stateless = true
json_response = true

[server.audit]
path = "{folder}/audit.jsonl"

[tools]
storage = "redis://127.0.0.1:{redis}/0"

[tools.overrides.get_standard_details]
rate_limit = "{limit}/hour"
"""
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "load", "version": "1"},
}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=10, help="for each part of the load")
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--limit", type=int, default=500, help="calls in an hour for a caller")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, ExitStack() as running:
        site = Site(Path(folder), running, options.limit)
        asyncio.run(measure(Measurement(site, options.seconds, options.clients, options.limit)))


@dataclass
class Calls:
    """The outcomes of calls.

    Attributes:
        counts: By outcome: ``ok``, the type of an error of the tool, or ``failed``.
        failures: When and why calls failed.
        latencies: Of the answered calls, in seconds.
    """

    counts: Counter[str] = field(default_factory=Counter[str])
    failures: list[tuple[float, str]] = field(default_factory=list[tuple[float, str]])
    latencies: list[float] = field(default_factory=list[float])

    def percentile(self, percent: int) -> float:
        ordered = sorted(self.latencies)
        return ordered[min(len(ordered) * percent // 100, len(ordered) - 1)] * 1000


class Site:
    """The publisher, the Redis, the nodes and the balancer."""

    def __init__(self, folder: Path, running: ExitStack, limit: int) -> None:
        self.folder, self._running = folder, running
        self.tokens = {name: new_token() for name in CALLERS}
        self.ports = {name: free_port() for name in NODES}
        self.nodes: dict[str, subprocess.Popen[bytes]] = {}
        redis, web, self.port = free_port(), free_port(), free_port()
        command = ["redis-server", "--port", str(redis), "--save", "", "--dir", str(folder)]
        self.start(command)
        published = self.publish()
        site = ["-m", "http.server", str(web), "--bind", "127.0.0.1"]
        self.start([sys.executable, *site, "--directory", str(folder / "published")])
        self.source = f"http://127.0.0.1:{web}"
        until(lambda: is_open(web) and is_open(redis), "the web server and Redis")
        for name in NODES:
            (folder / name).mkdir()
            text = CONFIG.format(
                folder=folder / name, publisher=published["publisher"], port=self.ports[name],
                redis=redis, limit=limit,
            )  # fmt: skip
            for caller, token in self.tokens.items():
                text += f'[server.auth.tokens.{caller}]\nsha256 = "{token_hash(token)}"\n'
            (folder / name / "config.toml").write_text(text, "utf-8")
            self.pull(name)
            self.serve(name)
        self._balance()

    def publish(self, *imported: str) -> dict[str, Any]:
        """Import files at the publisher, and publish."""
        options = [f"--set=plugins.catalog.path={self.folder}/publisher/catalog"]
        options += [f"--set=state_dir={self.folder}/publisher/state"]
        if imported:
            run([*PROGRAM, *options, "data", "import", *imported])
        published = str(self.folder / "published")
        found: dict[str, Any] = json.loads(
            run([*PROGRAM, *options, "data", "publish", published, "--json"])
        )
        return found

    def pull(self, name: str) -> None:
        config = str(self.folder / name / "config.toml")
        run([*PROGRAM, "--config", config, "data", "pull", self.source, "--json"])

    def serve(self, name: str) -> None:
        config = str(self.folder / name / "config.toml")
        command = [*PROGRAM, "--config", config, "serve", "--transport", "http"]
        self.nodes[name] = self.start(command, self.folder / name / "log")
        until(lambda: is_open(self.ports[name]), name)

    def start(self, command: list[str], log: Path | None = None) -> subprocess.Popen[bytes]:
        with (log or Path(os.devnull)).open("ab") as output:
            process = subprocess.Popen(command, stdout=output, stderr=output)
        self._running.callback(end, process)
        return process

    def _balance(self) -> None:
        found = re.search(r"<!-- haproxy -->\n```\w+\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
        assert found
        text = found[1].replace("8080", str(self.port))
        for documented, name in zip(("8001", "8002"), NODES, strict=True):
            text = text.replace(f"127.0.0.1:{documented}", f"127.0.0.1:{self.ports[name]}")
        path = self.folder / "haproxy.cfg"
        path.write_text(f"global\n    stats socket {self.folder}/haproxy.sock\n\n{text}", "utf-8")
        program = shutil.which("haproxy", path=SYSTEM)
        assert program, "haproxy is not installed"
        self.start([program, "-f", str(path)], self.folder / "haproxy.log")
        until(lambda: all(self.state(name).startswith("UP") for name in NODES), "HAProxy")

    def state(self, name: str) -> str:
        """Return what HAProxy says of a node, such as ``UP`` or ``DOWN``."""
        with socket.socket(socket.AF_UNIX) as asked:
            try:
                asked.connect(str(self.folder / "haproxy.sock"))
            except OSError:
                return ""
            asked.sendall(b"show stat\n")
            text = b"".join(iter(lambda: asked.recv(65_536), b"")).decode()
        rows = (line.split(",") for line in text.splitlines())
        return next((row[17] for row in rows if row[:2] == ["standards", name]), "")

    def audited(self) -> Counter[str]:
        """Return the number of lines with the outcome ``ok``, by caller."""
        lines = (
            json.loads(line)
            for name in NODES
            for line in (self.folder / name / "audit.jsonl").read_text("utf-8").splitlines()
        )
        return Counter(line["caller"] for line in lines if line.get("outcome") == "ok")


async def call(
    client: httpx2.AsyncClient, site: Site, caller: str, tool: str, port: int = 0, **arguments: Any
) -> dict[str, Any]:
    """Call a tool and return its result; raise an exception for every other answer."""
    headers = {
        "accept": "application/json, text/event-stream",
        "authorization": f"Bearer {site.tokens[caller]}",
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": "tools/call",
        "mcp-name": tool,
    }
    params = {"name": tool, "arguments": arguments, "_meta": META}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    url = f"http://127.0.0.1:{port or site.port}/mcp"
    answer = (await client.post(url, json=message, headers=headers)).raise_for_status()
    found: dict[str, Any] = answer.json()["result"]
    return found


async def load(
    site: Site, caller: str, clients: int, goes_on: Callable[[int], bool], tool: str = ""
) -> Calls:
    """Call a tool with several clients, each without a pause, as long as *goes_on* says.

    Args:
        goes_on: Gets the number of the calls so far.
    """
    calls, begun = Calls(), 0
    tool = tool or "find_relevant_standards"

    async def work() -> None:
        nonlocal begun
        async with httpx2.AsyncClient(timeout=60) as client:
            while goes_on(begun):
                begun += 1
                searched = {"activity": f"Fold {begun} strips into equal parts"}
                looked_up = {"standard_id": f"3.NF.A.{begun % 3 + 1}"}
                arguments = searched if tool == "find_relevant_standards" else looked_up
                began = time.monotonic()
                try:
                    result = await call(client, site, caller, tool, **arguments)
                except (httpx2.HTTPError, KeyError) as error:
                    calls.counts["failed"] += 1
                    calls.failures.append((time.monotonic(), str(error) or type(error).__name__))
                    continue
                calls.latencies.append(time.monotonic() - began)
                data = result.get("structuredContent", {})
                is_error = result.get("isError", False)
                calls.counts[data.get("error_type", "error") if is_error else "ok"] += 1

    await asyncio.gather(*(work() for _ in range(clients)))
    return calls


class Measurement:
    """The parts of the load, in their order.

    Attributes:
        answered: The number of answers with a result, by caller.
        unanswered: The number of calls that failed.
    """

    def __init__(self, site: Site, seconds: float, clients: int, limit: int) -> None:
        self._site, self._seconds, self._clients, self._limit = site, seconds, clients, limit
        self.answered = Counter[str]()
        self.unanswered = 0

    async def limit(self) -> None:
        """Call more often than the limit allows, over both nodes."""
        calls = await self._use_up("limit", lambda _: None)
        print(f"limit of {self._limit}, both nodes: {dict(calls.counts)}")
        check(calls.counts == {"ok": self._limit, "rate_limited": 100}, "the limit is not exact")

    async def pull(self) -> None:
        """Let both nodes pull another snapshot while clients search."""
        site = self._site
        file = site.folder / "new.jsonl"
        file.write_text(json.dumps(NEW) + "\n", "utf-8")
        site.publish(str(file))
        await self.search("both nodes pull a snapshot", lambda: [site.pull(each) for each in NODES])
        async with httpx2.AsyncClient(timeout=60) as client:
            for port in site.ports.values():
                tool, text = "find_relevant_standards", "juggle seven purple pineapples"
                result = await call(client, site, "search", tool, port, activity=text)
                self.answered["search"] += 1
                check("pineapples" in json.dumps(result), "a node does not have the new record")

    async def kill(self) -> None:
        """Kill a node when half of the limit is used up, and while clients search."""
        site, begun, moments = self._site, [0], dict[str, float]()

        def kill() -> None:
            until(lambda: begun[0] > self._limit / 2, "calls")
            site.nodes["one"].kill()
            moments["killed"] = time.monotonic()
            until(lambda: site.state("one") == "DOWN", "the health check")
            moments["down"] = time.monotonic()

        limited = asyncio.ensure_future(
            self._use_up("killed", lambda number: begun.__setitem__(0, number))
        )
        searched = await self.search("one node is killed", kill, may_fail=True)
        calls = await limited
        failures = sorted(searched.failures + calls.failures)
        self.unanswered = len(failures)
        last = max((at - moments["killed"] for at, _ in failures), default=0.0)
        down = moments["down"] - moments["killed"]
        print(
            f"  the health check found it after {down:.2f} s; {len(failures)} calls failed, ",
            end="",
        )
        print(f"the last after {last:.3f} s: {dict(Counter(why for _, why in failures))}")
        print(f"  limit of {self._limit} meanwhile: {dict(calls.counts)}")
        late = [why for at, why in failures if at > moments["down"]]
        check(not late, f"calls failed after the health check: {late}")
        # Redis may have counted a call that the node could not answer any more.
        fewest = self._limit - len(calls.failures)
        check(fewest <= calls.counts["ok"] <= self._limit, "the limit does not hold")

    async def restart(self) -> None:
        """Start the killed node again while clients search."""
        site = self._site

        def restart() -> None:
            site.serve("one")
            until(lambda: site.state("one").startswith("UP"), "the health check")

        await self.search("it comes back", restart)

    async def search(self, name: str, work: Callable[[], Any], *, may_fail: bool = False) -> Calls:
        """Search until *work* has ended in a thread, and for as long as the options say."""
        end = time.monotonic() + self._seconds
        task = asyncio.ensure_future(asyncio.to_thread(work))
        calls = await load(
            self._site, "search", self._clients,
            lambda _: time.monotonic() < end or not task.done(),
        )  # fmt: skip
        await task
        self.answered["search"] += calls.counts["ok"]
        times = f"median {calls.percentile(50):.0f} ms, 99 % {calls.percentile(99):.0f} ms"
        print(f"{name}: {dict(calls.counts)}, {times}")
        check(may_fail or calls.counts.keys() == {"ok"}, f"calls failed: {calls.failures[:3]}")
        return calls

    def audit(self) -> None:
        """Compare the answers with the audit logs of both nodes."""
        audited = self._site.audited()
        print(f"answered {dict(self.answered)}, in the audit logs {dict(audited)}")
        for caller, count in self.answered.items():
            check(count <= audited[caller], f"answered calls of {caller} are in no audit log")
        surplus = audited.total() - self.answered.total()
        check(surplus <= self.unanswered, "there are lines without a call")

    async def _use_up(self, caller: str, hear: Callable[[int], object]) -> Calls:
        def goes_on(begun: int) -> bool:
            hear(begun)
            return begun < self._limit + 100

        calls = await load(self._site, caller, self._clients, goes_on, "get_standard_details")
        self.answered[caller] += calls.counts["ok"]
        return calls


async def measure(measurement: Measurement) -> None:
    await measurement.limit()
    await measurement.search("both nodes", lambda: None)
    await measurement.pull()
    await measurement.kill()
    await measurement.search("one node alone", lambda: None)
    await measurement.restart()
    measurement.audit()


def check(condition: object, message: str) -> None:
    if not condition:
        raise SystemExit(f"FAILED: {message}")


def run(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    check(done.returncode == 0, done.stderr)
    return done.stdout


def until(condition: Callable[[], object], what: str) -> None:
    end = time.monotonic() + 120
    while not condition():
        check(time.monotonic() < end, f"waited in vain for {what}")
        time.sleep(0.02)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def is_open(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()


if __name__ == "__main__":
    main()
