"""The base class of plugins in other processes, which are reached by a connection.

The first call starts a plugin whose tools are known from its last run. A new plugin and a required
one start with the host, at the same time as the others.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import time
from abc import abstractmethod
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, ClassVar, Final

import anyio
from pydantic import BaseModel, SecretStr, ValidationError

from standards_mcp._utils.secrets import mask, secrets_of
from standards_mcp.config.models.settings import Expansion, VariableError
from standards_mcp.config.problems import InvalidSettingsError, Problem
from standards_mcp.config.timing import DEFAULT_TIMING, Timing
from standards_mcp.errors import ApiError, PluginError
from standards_mcp.files import keep_text
from standards_mcp.hookspecs import hookimpl
from standards_mcp.loading.providers import Provider
from standards_mcp.plugin import Health, Plugin, PluginContext, SettingsT

if TYPE_CHECKING:
    from .connection import Connection, Transport
    from .session import OpenSession
    from .updates import Subscriptions

_SLOW_SECONDS: Final = 5.0
"""The next start does not wait for a plugin that took longer to fail."""
_END_SECONDS: Final = 5.0
"""Time for a plugin that does not start in time to end, before its lifespan is given up."""
_UNKNOWN: Final = "its tools are not known: "


def expanded(expansion: Expansion, value: SecretStr | str, *key: str | int) -> str:
    """Return a value of the configuration with its variables expanded.

    Args:
        key: The path of the value.

    Raises:
        InvalidSettingsError: A variable is not set.
    """
    try:
        return expansion.text(value)
    except VariableError as exc:
        fix = f"set {exc.variable} in the environment"
        raise InvalidSettingsError(Problem(key, str(exc), fix)) from None


class _LastRun(BaseModel):
    """The facts of the last run, kept for the next start.

    Attributes:
        identity: The digest of the plugin's identity.
        listing: Its contributions; None if they are not known.
        failure: Why the last start failed, or an empty string.
        was_slow: True if that start took long to fail.
    """

    identity: str
    listing: dict[str, Any] | None = None
    failure: str = ""
    was_slow: bool = False


class RemotePlugin(Plugin[SettingsT], Provider):
    """A plugin in another process.

    Args:
        identity: The settings on which its tools depend; if they change, kept tools are dropped.
        start_timeout: Seconds that it may take to start and to list its tools.
    """

    kind: ClassVar[str] = "plugin"
    required: ClassVar[bool] = False
    is_eager: ClassVar[bool] = False
    timing: ClassVar[Timing] = DEFAULT_TIMING

    def __init__(
        self, settings: SettingsT, context: PluginContext, identity: object, start_timeout: float
    ) -> None:
        super().__init__(settings, context)
        self._start_timeout = start_timeout
        self.start_seconds = start_timeout + _END_SECONDS if self.required else 0.0
        self._connection: Connection | None = None
        self._subscriptions: Subscriptions | None = None
        digest = hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()
        self._file = context.state_dir / "tools.json"
        self._last_run = _LastRun(identity=digest)
        with suppress(OSError, ValueError, RecursionError):  # none, or of another version
            kept = _LastRun.model_validate_json(self._file.read_bytes())
            self._last_run = kept if kept.identity == digest else self._last_run
        self._listing = self._last_run.listing
        self._answered = asyncio.Event()
        self._starting: asyncio.Task[None] | None = None
        if failure := self._last_run.failure:
            when = "when it was last tried; `standards-mcp plugins check` tries it again"
            self.problem = f"{_UNKNOWN}{failure} ({when})"
        try:
            self.read(self._listing or {})
        except (ApiError, ValidationError):  # another version of the host kept it
            self._listing = None
            self.read({})

    @abstractmethod
    def connect(self) -> Transport:
        """Return the transport of a new connection."""

    @abstractmethod
    async def fetch(self, session: OpenSession) -> dict[str, Any]:
        """Return its contributions as JSON data, which is kept for the next start."""

    @abstractmethod
    def read(self, listing: Mapping[str, Any]) -> None:
        """Contribute the result of `fetch`, or nothing if *listing* is empty.

        Raises:
            ApiError: It has the form of another version.
        """

    @hookimpl
    @asynccontextmanager
    async def lifespan(self) -> AsyncGenerator[None]:
        """Start it when it is needed, and keep it running."""
        from .connection import Connection  # noqa: PLC0415  - imports the SDK's client
        from .updates import Listing, Subscriptions  # noqa: PLC0415  - as above

        name = self.context.name
        title = f"{self.kind} {name!r}"
        limits = self._start_timeout, self.timing.listen

        def updated(uri: str) -> None:
            self.on_updated(uri)  # the host may set it later

        listing = Listing(name, self.fetch, self._take, updated, *limits)
        self._connection = Connection(name, title, self.connect, listing, self._start_timeout)
        self._subscriptions = Subscriptions(name, title, lambda: self.connection, updated, *limits)
        try:
            if self.required:
                await self._open_required(self._connection)
            elif self.is_eager or self._listing is None:
                self._starting = asyncio.create_task(self._start(self._connection))
            yield
        finally:
            if self._starting:
                self._starting.cancel()
                self._starting = None
            await self._subscriptions.aclose()
            await self._connection.aclose()

    async def _open_required(self, connection: Connection) -> None:
        try:
            await connection.open()
        except ApiError as exc:
            raise PluginError(self.context.name, str(exc)) from None
        if self.failure:
            raise PluginError(self.context.name, self.failure)

    @hookimpl
    async def check_health(self) -> Health:
        """Start it if it does not run, and return its health."""
        try:
            await self.connection.open()
        except ApiError as exc:
            return Health(status="failed", message=str(exc))
        return await self.health()

    async def health(self) -> Health:
        """Return its health while it runs."""
        items_of = self.contributions
        for kind, items in (("tools", items_of.tools), ("prompts", items_of.prompts)):
            if withheld := sum(bool(item.error) for item in items):
                message = f"{withheld} of {len(items)} {kind} cannot be served"
                return Health(status="degraded", message=f"{message}; see `standards-mcp {kind}`")
        parts = [f"{len(items_of.tools)} tools"]
        parts += [f"{len(items_of.prompts)} prompts"] if items_of.prompts else []
        resources = sum(item.is_listed for item in items_of.resources)
        parts += [f"{resources} resources"] if resources else []
        return Health(status="ok", message=", ".join(parts))

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
    def listing(self) -> Mapping[str, Any]:
        """Its contributions when they were last listed; empty if they are not known."""
        return self._listing or {}

    @property
    def is_known(self) -> bool:
        """True if its tools are known, from this run or an earlier one."""
        return self._listing is not None or self._last_run.was_slow

    async def wait_listed(self) -> None:
        """Wait until a new plugin has listed its tools or failed."""
        if not self.is_known:
            await self.wait_started()

    async def wait_started(self) -> None:
        """Wait until a plugin that starts with the host has listed its tools or failed."""
        if self._starting:
            with anyio.move_on_after(self._start_timeout):
                await self._answered.wait()

    async def subscribe(self, uri: str) -> None:
        """Subscribe to a resource. See `Provider.subscribe`."""
        if self._subscriptions is None:
            raise ApiError(f"{self.context.name!r} is not started")
        await self._subscriptions.subscribe(uri)

    def unsubscribe(self, uri: str) -> None:
        """Undo one `subscribe`."""
        if self._subscriptions:
            self._subscriptions.unsubscribe(uri)

    async def _start(self, connection: Connection) -> None:
        while True:
            began = time.monotonic()
            try:
                await connection.open()
            except ApiError as exc:
                why = mask(str(exc), self.secrets | secrets_of(self.settings))
                self._keep_failure(why, time.monotonic() - began)
                self._withdraw(f"{_UNKNOWN}{why}")
                await anyio.sleep(self.timing.retry)
            else:
                if self.failure:  # it contributes nothing, so its process is of no use
                    self._keep_failure(self.failure, time.monotonic() - began)
                    await connection.aclose()
                return

    def _keep_failure(self, why: str, seconds: float) -> None:
        # The next start waits again for a plugin that fails fast: it may be repaired by then.
        was_slow = seconds >= min(_SLOW_SECONDS, self._start_timeout)
        self._keep(listing=None, failure=why, was_slow=was_slow)

    def _keep(self, **fields: Any) -> None:
        self._last_run = _LastRun(identity=self._last_run.identity, **fields)
        keep_text(self._file, self._last_run.model_dump_json())

    def _withdraw(self, problem: str) -> None:
        """Contribute nothing until it can be started, even if an earlier start succeeded."""
        self._listing, self.problem = None, problem
        self.read({})
        self._answered.set()
        self.on_change()

    def _take(self, listing: dict[str, Any]) -> None:
        changed = listing != self._listing
        if changed:
            self._listing, self.problem = listing, ""
            self.read(listing)
            self._keep(failure=self.failure, listing=None if self.failure else listing)
        self._answered.set()
        if changed:
            self.on_change()
