"""What plugins have in common that live in another process: they are reached by a connection.

One whose tools are known from its last run is started by the first call. One that is new is started
with the host, beside the others, and so is one that is required.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import time
from abc import abstractmethod
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

import anyio
from pydantic import TypeAdapter

from .errors import ApiError, PluginError
from .files import keep_text
from .hookspecs import hookimpl
from .masking import mask
from .plugin import Health, Plugin, PluginContext, SettingsT
from .tool_sources import ToolSource

if TYPE_CHECKING:
    from .connections import Connection, Target

_RETRY_SECONDS: Final = 60.0
_SLOW_SECONDS: Final = 5.0
"""What fails later than that is not waited for at the next start."""
_RAW_TOOLS: Final = TypeAdapter(list[dict[str, Any]])


class RemotePlugin(Plugin[SettingsT], ToolSource):
    """A plugin in another process.

    Args:
        connect: Returns what to connect to.
        identity: What the tools depend on; those of another are forgotten.
        start_timeout: Seconds that it may take to start and to list its tools.
    """

    kind: ClassVar[str] = "plugin"
    required: ClassVar[bool] = False
    is_eager: ClassVar[bool] = False

    def __init__(
        self,
        settings: SettingsT,
        context: PluginContext,
        connect: Callable[[], Target],
        identity: object,
        start_timeout: float,
    ) -> None:
        super().__init__(settings, context)
        self._connect = connect
        self._start_timeout = start_timeout
        self._connection: Connection | None = None
        self._snapshot = _Snapshot(context.state_dir / "tools.json", identity)
        self._raw = self._snapshot.tools
        self._answered = asyncio.Event()
        if self._snapshot.failed:
            self.problem = (
                "its tools are not known: it was too slow to start when last tried; "
                "`standards-mcp plugins check` tries it again"
            )
        self.read(self._raw or ())

    @abstractmethod
    def read(self, raw: Sequence[dict[str, Any]]) -> None:
        """Take over the tools that it lists."""

    @hookimpl
    @asynccontextmanager
    async def lifespan(self) -> AsyncGenerator[None]:
        """Keep it running from when it is needed on."""
        from .connections import Connection  # noqa: PLC0415  - imports the SDK's client

        name = self.context.name
        self._connection = Connection(
            name, f"{self.kind} {name!r}", self._connect, self._start_timeout, self._take
        )
        learning = None
        try:
            if self.required:
                await self._connection.open()
                if self.failure:
                    raise PluginError(self.context.name, self.failure)
            elif self.is_eager or self._raw is None:
                learning = asyncio.create_task(self._learn(self._connection))
            yield
        finally:
            if learning:
                learning.cancel()
            await self._connection.aclose()

    @hookimpl
    async def check_health(self) -> Health:
        """Start it if it does not run, and say whether it does."""
        try:
            await self.connection.open()
        except ApiError as exc:
            return Health(status="failed", message=str(exc))
        return await self.health()

    async def health(self) -> Health:
        """Return how it is, once it runs."""
        withheld = sum(bool(tool.fault) for tool in self.tools)
        if withheld:
            message = f"{withheld} of {len(self.tools)} tools cannot be served"
            return Health(status="degraded", message=f"{message}; see `standards-mcp tools`")
        return Health(status="ok", message=f"{len(self.tools)} tools")

    @property
    def connection(self) -> Connection:
        """The connection.

        Raises:
            ApiError: The host does not run.
        """
        if self._connection is None:
            raise ApiError(f"{self.context.name!r} is not started")
        return self._connection

    @property
    def is_known(self) -> bool:
        """Whether its tools are known, from this run or an earlier one."""
        return self._raw is not None or self._snapshot.failed

    async def ready(self) -> None:
        """Wait until one that is new has listed its tools, or failed to."""
        if not self.is_known and self._connection:
            with anyio.move_on_after(self._start_timeout):
                await self._answered.wait()

    async def _learn(self, connection: Connection) -> None:
        while True:
            began = time.monotonic()
            try:
                await connection.open()
            except ApiError as exc:
                if self._raw is not None:
                    return  # the next call starts it
                self._note_failure(time.monotonic() - began)
                self._answered.set()
                self.problem = mask(f"its tools are not known: {exc}", self.secrets)
                self.on_change()
                await anyio.sleep(_RETRY_SECONDS)
            else:
                if self.failure:  # it is withdrawn, and nothing is asked of it any more
                    await connection.aclose()
                return

    def _note_failure(self, seconds: float) -> None:
        """Let the next start wait again for one that fails fast: it may be mended by then."""
        if seconds >= min(_SLOW_SECONDS, self._start_timeout):
            self._snapshot.note_failure()
        else:
            self._snapshot.keep_none()

    def _take(self, raw: list[dict[str, Any]]) -> None:
        changed = raw != self._raw
        if changed:
            self._raw, self.problem = raw, ""
            self.read(raw)
            if self.failure:
                self._snapshot.keep_none()
            else:
                self._snapshot.keep(raw)
        self._answered.set()
        if changed:
            self.on_change()


class _Snapshot:
    """The tools of the last run.

    Attributes:
        tools: As they were listed; None when they are not known.
        failed: It could not be started when that was last tried, and none are known.
    """

    def __init__(self, file: Path, identity: object) -> None:
        self._key = hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()
        self._file = file
        self.tools: list[dict[str, Any]] | None = None
        self.failed = False
        try:
            kept = json.loads(self._file.read_bytes())
            if kept["of"] == self._key:
                self.failed = kept["tools"] is None
                self.tools = None if self.failed else _RAW_TOOLS.validate_python(kept["tools"])
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            return  # none was kept, or not by this version

    def keep(self, tools: list[dict[str, Any]] | None) -> None:
        """Remember the tools for the next start."""
        keep_text(self._file, json.dumps({"of": self._key, "tools": tools}))

    def keep_none(self) -> None:
        """Forget them, so that the next start asks for them anew."""
        with suppress(OSError):
            self._file.unlink(missing_ok=True)

    def note_failure(self) -> None:
        """Remember that they are not known, so that the next start does not wait for them."""
        self.failed = True
        self.keep(None)
