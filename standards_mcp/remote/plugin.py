"""The base class of plugins in other processes.

Required plugins, isolated plugins, and servers whose tools are not known from an earlier run start
with the host, concurrently. The first call starts any other plugin.
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
from standards_mcp.contributions.base import Contribution
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
"""If a plugin took longer than this to fail, the next start of the host does not wait for it."""
_END_SECONDS: Final = 5.0
"""Extra time for a lifespan, to end the process of a plugin that did not start in time."""
_UNKNOWN_PREFIX: Final = "its tools are not known: "


def expanded(expansion: Expansion, value: SecretStr | str, *key: str | int) -> str:
    """Return a value of the configuration with its environment variables expanded.

    Args:
        key: The key path of the value.

    Raises:
        InvalidSettingsError: A variable is not set.
    """
    try:
        return expansion.text(value)
    except VariableError as exc:
        fix = f"set {exc.variable} in the environment"
        raise InvalidSettingsError(Problem(key, str(exc), fix)) from None


class _LastRun(BaseModel):
    """The facts of the last run, saved for the next start.

    Attributes:
        identity: The digest of the plugin's identity.
        listing: The result of `RemotePlugin.fetch`; None if the plugin failed.
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
        identity: The settings on which its tools depend. If they change, saved tools are ignored.
        start_timeout: Time limit in seconds for its start and the list of its tools.

    Attributes:
        is_eager: True to start it with the host, even if its tools are known.
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
        with suppress(OSError, ValueError, RecursionError):  # no file, or a file of another version
            saved = _LastRun.model_validate_json(self._file.read_bytes())
            self._last_run = saved if saved.identity == digest else self._last_run
        self._listing = self._last_run.listing
        self._listed_or_failed = asyncio.Event()
        self._start_task: asyncio.Task[None] | None = None
        if failure := self._last_run.failure:
            when = "when it was last tried; `standards-mcp plugins check` tries it again"
            self.problem = f"{_UNKNOWN_PREFIX}{failure} ({when})"
        try:
            self.read(self._listing or {})
        except (ApiError, ValidationError):  # another version of the host saved it
            self._listing = None
            self.read({})

    @abstractmethod
    def connect(self) -> Transport:
        """Return the transport of a new connection."""

    @abstractmethod
    async def fetch(self, session: OpenSession) -> dict[str, Any]:
        """Return the contributions as JSON data, to be saved for the next start."""

    @abstractmethod
    def read(self, listing: Mapping[str, Any]) -> None:
        """Contribute the result of `fetch`, or nothing if *listing* is empty.

        Raises:
            ApiError: *listing* has the form of another version.
        """

    @hookimpl
    @asynccontextmanager
    async def lifespan(self) -> AsyncGenerator[None]:
        """Start the plugin with the host or at its first call; end it with the host."""
        from .connection import Connection  # noqa: PLC0415  - imports the SDK's client
        from .updates import Listing, Subscriptions  # noqa: PLC0415  - as above

        name = self.context.name
        title = f"{self.kind} {name!r}"
        limits = self._start_timeout, self.timing.listen

        def updated(uri: str) -> None:
            self.on_updated(uri)  # looked up late, because the host may set it later

        listing = Listing(name, self.fetch, self._on_listing, updated, *limits)
        self._connection = Connection(name, title, self.connect, listing, self._start_timeout)
        self._subscriptions = Subscriptions(name, title, lambda: self.connection, updated, *limits)
        try:
            if self.required:
                await self._open_required(self._connection)
            elif self.is_eager or self._listing is None:
                self._start_task = asyncio.create_task(self._start(self._connection))
            yield
        finally:
            if self._start_task:
                self._start_task.cancel()
                self._start_task = None
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
        """Start the plugin if it is not running, and return its health."""
        try:
            await self.connection.open()
        except ApiError as exc:
            return Health(status="failed", message=str(exc))
        return await self.health()

    async def health(self) -> Health:
        """Return the health of the running plugin."""
        contributions, parts = self.contributions, list[str]()
        for kind in ("tools", "prompts", "skills"):
            items: tuple[Contribution, ...] = getattr(contributions, kind)
            if withheld := sum(bool(item.error) for item in items):
                message = f"{withheld} of {len(items)} {kind} cannot be served"
                return Health(status="degraded", message=f"{message}; see `standards-mcp {kind}`")
            parts += [f"{len(items)} {kind}"] if items or kind == "tools" else []
        resources = sum(item.is_listed for item in contributions.resources)
        parts += [f"{resources} resources"] if resources else []
        return Health(status="ok", message=", ".join(parts))

    @property
    def connection(self) -> Connection:
        """The connection.

        Raises:
            ApiError: The lifespan has not begun.
        """
        if self._connection is None:
            raise ApiError(f"{self.context.name!r} is not started")
        return self._connection

    @property
    def listing(self) -> Mapping[str, Any]:
        """The last result of `fetch`; empty if the contributions are not known."""
        return self._listing or {}

    @property
    def is_known(self) -> bool:
        """True if the host need not wait for its tools: they are known, or it fails slowly."""
        return self._listing is not None or self._last_run.was_slow

    async def wait_listed(self) -> None:
        """Wait until a new plugin has listed its tools or failed."""
        if not self.is_known:
            await self.wait_started()

    async def wait_started(self) -> None:
        """Wait until a plugin that starts with the host has listed its tools or failed."""
        if self._start_task:
            with anyio.move_on_after(self._start_timeout):
                await self._listed_or_failed.wait()

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
                self._save_failure(why, time.monotonic() - began)
                self._withdraw(f"{_UNKNOWN_PREFIX}{why}")
                await anyio.sleep(self.timing.retry)
            else:
                if self.failure:  # without contributions, its process is not needed
                    self._save_failure(self.failure, time.monotonic() - began)
                    await connection.aclose()
                return

    def _save_failure(self, why: str, seconds: float) -> None:
        # After a fast failure, the next start waits: the plugin may be repaired by then.
        was_slow = seconds >= min(_SLOW_SECONDS, self._start_timeout)
        self._save_last_run(listing=None, failure=why, was_slow=was_slow)

    def _save_last_run(self, **fields: Any) -> None:
        self._last_run = _LastRun(identity=self._last_run.identity, **fields)
        keep_text(self._file, self._last_run.model_dump_json())

    def _withdraw(self, problem: str) -> None:
        """Remove all contributions until the plugin can be started."""
        self._listing, self.problem = None, problem
        self.read({})
        self._listed_or_failed.set()
        self.on_change()

    def _on_listing(self, listing: dict[str, Any]) -> None:
        changed = listing != self._listing
        if changed:
            self._listing, self.problem = listing, ""
            self.read(listing)
            self._save_last_run(failure=self.failure, listing=None if self.failure else listing)
        self._listed_or_failed.set()
        if changed:
            self.on_change()
