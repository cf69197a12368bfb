"""A Redis server for the tests of coordinators."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from redis import Redis
from redis.exceptions import RedisError
from support.http import free_port

from standards_mcp_career.addresses import RedisAddress
from standards_mcp_career.database import Store
from standards_mcp_career.interactions import Coordinator
from standards_mcp_career.redis_coordinator import RedisCoordinator

SERVER = shutil.which("redis-server")
PASSWORD = "hush/hush"  # noqa: S105
WAIT = 90


class RedisServer:
    """A Redis that writes down each change before it answers, and can be killed."""

    def __init__(self, folder: Path) -> None:
        self.port = free_port()
        self.socket = folder / "redis.sock"
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        return f"redis://:hush%2Fhush@127.0.0.1:{self.port}/1"

    def start(self) -> None:
        assert SERVER is not None
        options = {
            "bind": "127.0.0.1",
            "port": self.port,
            "unixsocket": self.socket,
            "requirepass": PASSWORD,
            "dir": self._folder,
            "save": "",
            "appendonly": "yes",
            "appendfsync": "always",
        }
        arguments = [text for name, value in options.items() for text in (f"--{name}", str(value))]
        self._process = subprocess.Popen([SERVER, *arguments], stdout=subprocess.DEVNULL)
        deadline = time.monotonic() + WAIT
        with Redis(port=self.port, password=PASSWORD) as client:
            while not self._answers(client):
                assert time.monotonic() < deadline
                assert self._process.poll() is None

    def kill(self) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.wait(WAIT)

    @staticmethod
    def _answers(client: Redis) -> bool:
        try:
            return bool(client.ping())
        except RedisError:
            return False


@pytest.fixture(scope="session")
def redis_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    if SERVER is None:
        pytest.skip("redis-server is not installed")
    # The path of a socket must be short.
    server = RedisServer(tmp_path_factory.mktemp("r"))
    server.start()
    yield server
    server.kill()


@pytest.fixture
def redis_address(redis_server: RedisServer) -> str:
    """Return the address of a Redis that holds nothing."""
    with Redis(port=redis_server.port, password=PASSWORD) as client:
        client.flushall()
    return redis_server.address


@pytest.fixture
def coordinator(redis_address: str, store: Store) -> Iterator[Coordinator]:
    """Return a coordinator in an empty Redis."""
    opened = RedisCoordinator(store, RedisAddress.parse(redis_address))
    yield opened
    opened.close()


@pytest.fixture
def interaction(store: Store, add_interaction: Callable[..., None]) -> None:
    """Store the interaction ``i``."""
    add_interaction(store, "i")
