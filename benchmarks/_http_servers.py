"""The servers of `http_load`: the host with all that a service has on, and a bare `MCPServer`."""

from __future__ import annotations

import hashlib
import os
import secrets
import socket
import subprocess
import sys
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path

from calls import FUNCTION, PLUGIN, TYPED, install_distribution

MODES: Mapping[str, tuple[str, ...]] = {
    "json": ("--stateless", "--json-response"),
    "stateless": ("--stateless",),
    "stateful": (),
}
BARE = """
from mcp.server.mcpserver import MCPServer
server = MCPServer("peer", log_level="ERROR")
"""
FASTMCP = """
from fastmcp import FastMCP
server = FastMCP("peer")
"""
DUTIES = """
import hashlib, hmac, json, logging, os, time
from datetime import UTC, datetime
from mcp.server.auth.provider import AccessToken
from mcp.server.auth.settings import AuthSettings
from mcp.server.mcpserver import MCPServer
from prometheus_client import Counter, Histogram

CALLS = Counter("calls", "Calls.", ("tool", "outcome"))
SECONDS = Histogram("seconds", "Durations.", ("tool",))
AUDIT = os.open("{folder}/audit.jsonl", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
logging.basicConfig(level=logging.ERROR)
log = logging.getLogger("calls")
log.setLevel(logging.INFO)

class Tokens:
    async def verify_token(self, token):
        given = hashlib.sha256(token.encode()).hexdigest()
        known = hmac.compare_digest(given, "{sha256}")
        return AccessToken(token="", client_id="load", scopes=[]) if known else None

async def observed(context, call_next):
    if context.method != "tools/call":
        return await call_next(context)
    began = time.perf_counter()
    try:
        return await call_next(context)
    finally:
        seconds, now = time.perf_counter() - began, datetime.now(UTC).isoformat()
        given = json.dumps(context.params["arguments"], sort_keys=True).encode()
        digest = hmac.new(b"key", given, "sha256").hexdigest()
        line = {{"time": now, "caller": "load", "tool": "add", "seconds": seconds}}
        log.info(json.dumps(line))
        os.write(AUDIT, (json.dumps({{**line, "arguments": digest}}) + "\\n").encode())
        CALLS.labels("add", "ok").inc()
        SECONDS.labels("add").observe(seconds)

address = "http://127.0.0.1"
auth = AuthSettings(
    issuer_url=address, resource_server_url=address, validate_token_resource=False
)
options = {{"token_verifier": Tokens(), "auth": auth, "middleware": [observed]}}
server = MCPServer("peer", log_level="ERROR", **options)
"""
"""What a team that writes its own server would add to it: the least that does the same duties."""
LONG = """
async def long() -> str:
    "Return a megabyte."
    return "x" * 1_000_000
"""
CONFIG = """
state_dir = "{folder}/state"

[server]
metrics = true
max_sessions = 20000
max_sessions_per_client = 20000
session_idle = {session_idle}

[server.audit]
path = "{folder}/audit.jsonl"

[tools.overrides.add]
rate_limit = "100000/second"
concurrency = 100
max_output_tokens = 5000

[tools.overrides.long]
max_output_tokens = 1000000
"""


@dataclass(frozen=True)
class Served:
    """A server that runs, with its workers."""

    process: subprocess.Popen[bytes]
    port: int
    token: str = ""

    @property
    def processor(self) -> float:
        """The processor time so far, in seconds."""
        threads = (each for pid in self._pids for each in Path(f"/proc/{pid}/task").iterdir())
        return sum(int((each / "schedstat").read_text().split()[0]) for each in threads) / 1e9

    @property
    def memory(self) -> int:
        """The resident memory, in bytes."""
        pages = (Path(f"/proc/{pid}/statm").read_text().split()[1] for pid in self._pids)
        return sum(map(int, pages)) * os.sysconf("SC_PAGE_SIZE")

    @property
    def proportional_memory(self) -> int:
        """The resident memory, in bytes, with each shared page divided among its processes."""
        rollups = (Path(f"/proc/{pid}/smaps_rollup").read_text() for pid in self._pids)
        return sum(int(text.partition("\nPss:")[2].split()[0]) for text in rollups) * 1024

    @property
    def _pids(self) -> list[int]:
        return _family(self.process.pid)


def _family(pid: int) -> list[int]:
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [pid, *(each for child in children for each in _family(int(child)))]


@contextmanager
def host(
    folder: Path,
    mode: str = "json",
    *,
    workers: int = 1,
    session_idle: float = 1800,
    settings: Mapping[str, object] | None = None,
) -> Generator[Served]:
    """Serve the host with authorization, limits, metrics and the audit log.

    Args:
        settings: Keys that are set beside those of `CONFIG`.
    """
    folder.mkdir(parents=True)
    plugin = PLUGIN.replace("\nclass AddPlugin", LONG + "\n\nclass AddPlugin")
    more = 'function=add), Tool(name="long", function=long)]'
    install_distribution(folder, plugin.replace("function=add)]", more))
    config = folder / "config.toml"
    text = CONFIG.format(folder=folder.as_posix(), session_idle=session_idle)
    config.write_text(text + without_plugins(except_of="standards-mcp"))
    program = [sys.executable, "-m", "standards_mcp", "--config", str(config)]
    for key, value in (settings or {}).items():
        program += ["--set", f"{key}={value}"]
    environment = {**os.environ, "PYTHONPATH": str(folder), "HOME": str(folder)}
    made = subprocess.run(
        [*program, "auth", "token", "new", "load"],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    port = free_port()
    options = ["--transport", "http", "--port", str(port), "--workers", str(workers)]
    command = [*program, "serve", *options, *MODES[mode]]
    with running(command, environment, port) as process:
        yield Served(process, port, made.stdout.strip())


@contextmanager
def peer(
    folder: Path,
    mode: str = "json",
    *,
    workers: int = 1,
    duties: bool = False,
    fastmcp: str = "",
) -> Generator[Served]:
    """Serve the same function on a bare `MCPServer`, by uvicorn.

    Args:
        duties: Let it do what the host does for a service, see `DUTIES`.
        fastmcp: The Python of an environment with FastMCP, to serve it on a bare `FastMCP`.
    """
    folder.mkdir(parents=True)
    token = secrets.token_urlsafe() if duties else ""
    server = BARE
    if duties:
        sha256 = hashlib.sha256(token.encode()).hexdigest()
        server = DUTIES.format(folder=folder.as_posix(), sha256=sha256)
    function = TYPED + "\n@server.tool()" + FUNCTION.format(result="Sum")
    given = f"json_response={mode == 'json'}, stateless_http={mode != 'stateful'}"
    app = f"\napp = server.streamable_http_app({given})\n"
    if fastmcp:
        server, app = FASTMCP, f"\napp = server.http_app({given})\n"
    (folder / "peer.py").write_text(server + function + app)
    port = free_port()
    command = [fastmcp or sys.executable, "-m", "uvicorn", "peer:app", "--port", str(port)]
    command += ["--log-level", "error", "--workers", str(workers)]
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    with running(command, environment, port) as process:
        yield Served(process, port, token)


def without_plugins(except_of: str = "") -> str:
    """Return configuration that disables all installed plugins, except those of a distribution."""
    names = (
        plugin.name
        for plugin in entry_points(group="standards_mcp.plugins")
        if plugin.dist and plugin.dist.name != except_of
    )
    return "\n".join(f"\n[plugins.{name}]\nenabled = false\n" for name in names)


def free_port() -> int:
    """Return a port of this machine that no process listens at."""
    with socket.create_server(("127.0.0.1", 0)) as found:
        port: int = found.getsockname()[1]
        return port


@contextmanager
def running(
    command: list[str], environment: dict[str, str], port: int
) -> Generator[subprocess.Popen[bytes]]:
    """Run a server until the block ends; enter it as soon as the server listens at the port."""
    process = subprocess.Popen(
        command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        for _ in range(600):
            try:
                socket.create_connection(("127.0.0.1", port)).close()
            except OSError:
                time.sleep(0.1)
            else:
                break
        else:
            raise SystemExit(f"{command} does not listen")
        yield process
    finally:
        process.terminate()
        process.wait()
