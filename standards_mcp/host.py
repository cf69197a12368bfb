"""The host: settings and plugins together. Servers and commands call tools through it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Collection, Iterable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeVar

import anyio
import anyio.to_thread

from ._utils.secrets import mask, secrets_of
from .calls.call import CallLog, Gate, Observer
from .calls.content import ContentCalls
from .calls.context import LOCAL, HostContext, Principal
from .calls.pipeline import Pipeline, UnjoinedExecutor
from .config.layers import Layers
from .config.loading import LoadedSettings
from .config.models.settings import Settings
from .config.problems import Names, check_secrets, check_settings
from .config.timing import DEFAULT_TIMING, Timing
from .contributions.resources import RegisteredResource
from .contributions.results import error_result
from .contributions.schemas import short
from .contributions.selection import EVERYTHING, Access, Selection, joined_instructions, select
from .contributions.tool_search import SEARCH_INSTRUCTIONS, SEARCH_TOOLS, open_tool_ranking
from .contributions.tools import nearest_tool
from .errors import ConfigError, RateLimitedError, UnknownToolError
from .files import user_state_dir
from .loading.discovery import check_sections, installed_plugins
from .loading.lifecycle import running
from .loading.manager import PluginManager
from .loading.providers import provider_of
from .loading.quarantine import Quarantine, Step
from .loading.records import PluginInfo, Status
from .loading.services import used_services
from .plugin import ToolResult

log = logging.getLogger(__name__)
T = TypeVar("T")


class Host:
    """The plugins of one process and the services that they share.

    Args:
        installed: The available plugins; by default the plugins of this environment.
        services: Objects to use in place of the services of plugins, by their types.
        remembers: True to record in the state folder how loading and starting plugins went.

    Attributes:
        pipeline: Runs the calls of all plugins.
        on_taken_over: Called after each `take_over`.

    Raises:
        ConfigError: A table names a plugin that is not installed, or ``storage`` cannot be used.
        PluginError: A required plugin failed, or any plugin under ``strict``.
    """

    def __init__(
        self,
        loaded: LoadedSettings,
        *,
        installed: Iterable[PluginInfo] | None = None,
        services: Mapping[Callable[..., Any], object] | None = None,
        remembers: bool = True,
        timing: Timing = DEFAULT_TIMING,
    ) -> None:
        self.loaded = loaded
        self.settings = loaded.settings
        self._secrets = secrets_of(self.settings)
        self.state_dir = self.settings.state_dir or user_state_dir()
        folder = self.state_dir if remembers else None
        quarantine = Quarantine(folder, timing, self._try_in_worker)
        plugins = installed_plugins() if installed is None else installed
        plugins = _with_remote(plugins, loaded, self.state_dir, timing)
        self.manager = PluginManager(
            loaded, self.state_dir, quarantine, plugins, services or {}, timing
        )
        self._selections: dict[Access, Selection] = {}
        self.manager.contributed.on_changed.append(self._selections.clear)
        storage = self.settings.tools.storage
        self._observers: list[Observer] = [CallLog()]
        self._gates: list[Gate] = []
        url = storage.get_secret_value() if storage else None
        self.pipeline = Pipeline(self.secrets, self._observers, self._gates, url, timing)
        self.content = ContentCalls(self.visible, self.pipeline)
        self.on_taken_over: list[Callable[[], None]] = []
        self._is_running = False

    def load(self, *, again: bool = False, only: Collection[str] | None = None) -> None:
        """Import and register the enabled plugins. See `PluginManager.load`.

        Raises:
            ConfigError: Under ``strict``, a pattern or an override matches nothing.
            PluginError: A required plugin failed, or any plugin under ``strict``.
        """
        quarantine, records = self.manager.quarantine, self.manager.records.values()
        with quarantine.watch("loading", records):
            try:
                self.manager.load(again=again, only=only)
            finally:
                quarantine.save(records, "loading")
            self.pipeline.wrappers.set_chain(self.manager.wrap)
            if only is not None:
                return
        self._report(self._warnings(self.loaded, self.visible()))
        for line in self.exposed_secrets():
            log.warning(line)

    def service(self, wanted: Callable[..., T]) -> T:
        """Return a service of the loaded plugins; see `PluginContext.service`.

        Raises:
            LookupError: No plugin provides it.
        """
        found: T = self.manager.services.open(wanted)
        return found

    def _try_in_worker(self, info: PluginInfo, step: Step) -> str:
        """Try a plugin in another process, for `Quarantine`."""
        from .remote.worker import try_apart, worker_config  # noqa: PLC0415  - few starts need it

        own = [name for name, record in self.manager.records.items() if record.info.is_own]
        worker = worker_config(info.name, self.loaded, self.state_dir, self.manager.timing, own)
        return try_apart(worker, step, self.loaded)

    def observe(self, observer: Observer) -> None:
        """Give *observer* the record of each call from now on."""
        self._observers.append(observer)

    def guard(self, gate: Gate) -> None:
        """Let *gate* refuse calls from now on, before any code of a plugin runs for them."""
        self._gates.append(gate)

    @property
    def layers(self) -> Layers:
        """The sources of the settings, with the values of loaded plugins' own variables."""
        layers = self.loaded.layers
        for record in self.manager.records.values():
            layers = record.layers(layers)
        return layers

    def exposed_secrets(self) -> list[str]:
        """Return a warning for each secret of a plugin in the file or on the command line."""
        models = {r.name: r.settings_type for r in self.manager.records.values() if r.settings_type}
        layers = self.layers
        return [each.line(layers) for each in check_secrets(models, layers)]

    def warnings(self) -> list[str]:
        """Return a warning for each setting without effect, in the rules and all profiles."""
        return self._warnings(self.loaded, self.visible(), self.settings.profiles)

    def take_over(self, loaded: LoadedSettings, in_force: Settings) -> None:
        """Apply new settings to the contributions of the loaded plugins.

        Args:
            loaded: The settings as they were read, for error messages.
            in_force: The settings to apply, with the old values of keys that need a restart.

        Raises:
            ConfigError: A table names a plugin that is not installed or, under ``strict``, a
                pattern or an override matches nothing. Nothing has changed then.
        """
        # All that can fail comes first, so that a file with a mistake changes nothing.
        check_sections(loaded, self.manager.records)
        selection = select(self.manager.contributions, in_force)
        self._report(self._warnings(loaded, selection))
        self.loaded, self.settings, self.manager.settings = loaded, in_force, in_force
        # Old secrets stay masked: calls that are running may still quote them.
        self._secrets |= secrets_of(loaded.settings)
        self._selections.clear()
        for callback in self.on_taken_over:
            callback()

    def restore(self) -> None:
        """Give plugins that are not loaded the status of their last start."""
        self.manager.quarantine.restore(self.manager.records.values())

    def secrets(self) -> frozenset[str]:
        """Return all secrets of the configuration and of the loaded plugins' settings."""
        of_plugins = (record.secrets for record in self.manager.records.values())
        tokens = (provider.secrets for provider in self.manager.providers())
        return self._secrets.union(*of_plugins, *tokens)

    def mask(self, text: str) -> str:
        """Return *text* with all secrets masked."""
        return mask(text, self.secrets())

    def visible(self, principal: Principal = LOCAL) -> Selection:
        """Return the contributions of plugins, selected for *principal*."""
        return self.select(principal.access)

    def select(self, access: Access, *, is_trial: bool = False) -> Selection:
        """Return the selection for *access*; it is cached until plugins or settings change.

        Args:
            is_trial: True if no caller has this access, so that it need not be cached.
        """
        selection = self._selections.get(access)
        if selection is None:
            selection = select(self.manager.contributions, self.settings, access, open_tool_ranking)
            if not is_trial:
                self._selections[access] = selection
        return selection

    def selections(self) -> dict[Access, Selection]:
        """Return the cached selections by access, with the local user's selection."""
        return {EVERYTHING: self.select(EVERYTHING), **self._selections}

    def instructions(self, principal: Principal = LOCAL) -> str:
        """Return the instructions for the model, from plugins with visible contributions."""
        selection = self.visible(principal)
        text = joined_instructions(self._plugin_texts("instructions"), selection)
        return f"{SEARCH_INSTRUCTIONS} {text}".strip() if selection.search else text

    def title(self, principal: Principal = LOCAL) -> str:
        """Return the titles of plugins with visible contributions, for the server's title."""
        titles, serving = self._plugin_texts("title"), self.visible(principal).serving
        shown = [title.strip() or name for name, title in titles.items() if name in serving]
        return ", ".join(dict.fromkeys(shown))

    def _plugin_texts(self, attribute: Literal["instructions", "title"]) -> dict[str, str]:
        """Return a text of each plugin that has not failed, by the names of plugins."""
        found: dict[str, str] = {}
        for name, record in self.manager.records.items():
            if record.status is not Status.FAILED:
                # The texts of a provider may change while the host runs.
                is_provider = record.plugin is not None and provider_of(record) is not None
                found[name] = getattr(record.plugin if is_provider else record, attribute)
        return found

    async def call_tool(
        self, name: str, arguments: Mapping[str, Any], context: HostContext | None = None
    ) -> ToolResult:
        """Call a tool by its published or its declared name.

        Args:
            context: The caller's context; by default, no user can be asked.

        Raises:
            InputRequiredError: The client must ask its user, and call again.
            UnknownToolError: No plugin declares the tool, or the caller must not know about it.
        """
        context = context or HostContext()
        search = self.visible(context.principal).search
        if search and (inner := search.inner_call(name, arguments)):
            return await self._call_inner(*inner, context)
        item = self.visible(context.principal).find(name)
        if item is None:
            await self.manager.wait_listed()  # it may be a tool of a server that is being started
            item = self.visible(context.principal).find(name)
        if item is None or item.hidden_reason:
            self.pipeline.recording.refused("tool", name, arguments, context)
        if item is None or (item.hidden_reason and context.principal.is_restricted):
            try:
                await self.count_refused(name, context)
            except RateLimitedError as exc:
                return error_result(exc.error_type, str(exc), exc.data)
            nearest = nearest_tool(name, self.visible(context.principal).visible_tools)
            hint = f"; did you mean {nearest!r}?" if nearest else ""
            raise UnknownToolError(f"Unknown tool: {short(name)}{hint}")
        if item.hidden_reason:
            message = f"{item.published} is not served here ({item.hidden_reason})."
            return error_result("disabled", f"{message} Ask the administrator.")
        return await self.pipeline.call_tool(item, arguments, context)

    async def _call_inner(
        self, name: str, arguments: Mapping[str, Any], context: HostContext
    ) -> ToolResult:
        """Call a tool that `call_tool` names; an unknown one is a result, which models see."""
        try:
            return await self.call_tool(name, arguments, context)
        except UnknownToolError as exc:
            return error_result("not_found", f"{exc} ({SEARCH_TOOLS} finds tools)")

    async def count_refused(self, name: str, context: HostContext) -> None:
        """Count a call that is refused before the pipeline against the same rate limits.

        Raises:
            RateLimitedError: There were too many calls. All unknown tools count together.
        """
        item = self.visible(context.principal).find(name)
        count = self.pipeline.rate_limits.count_for
        if item and not item.hidden_reason:
            counted, limits = f"{item.kind} {item.declared}", item.limits.rate_limits
            await count(context.caller, counted, item.published, limits)
        elif rate := self.settings.tools.rate_limit:
            await count(context.caller, "unknown tools", "a call of an unknown tool", (rate,))

    def plugins_behind(self, tool: str) -> Collection[str]:
        """Return the names of the plugins that a call of *tool* needs, all for an unknown tool."""
        item = self.visible().find(tool)
        if item is None or item.plugin not in self.manager.records:  # it may call any tool
            return self.manager.records.keys()
        owners = {each.plugin for each in self.manager.contributions.filters if item.filters}
        names = {item.plugin} | owners | self.manager.wrapping
        used = (each for name in names for each in used_services(self.manager.records[name]))
        return names | self.manager.services.providers(used)

    async def warm_up(self) -> None:
        """Prepare the services behind the visible tools, and the search, for their first use."""
        names = {item.plugin for item in self.visible().visible_tools}
        records = [record for name, record in self.manager.records.items() if name in names]
        used = [service_type for record in records for service_type in used_services(record)]
        await self.manager.services.warm_up(used)
        if search := self.visible().search:
            await anyio.to_thread.run_sync(search.warm_up, abandon_on_cancel=True)

    async def subscribe(self, uri: str, principal: Principal = LOCAL) -> Callable[[], None]:
        """Subscribe to changes of a resource, which `PluginManager.changes` reports.

        Returns:
            A function that ends the subscription, to be called once.

        Raises:
            NotServedError: No resource is served under this URI.
            ToolError: The server of the resource refused, or did not answer.
        """
        return await self.content.subscribe(uri, self._subscribe, HostContext(principal))

    async def _subscribe(self, item: RegisteredResource, uri: str) -> Callable[[], None]:
        provider = provider_of(self.manager.records[item.plugin])
        if provider is None:
            return lambda: None
        await provider.subscribe(uri)
        return partial(provider.unsubscribe, uri)

    @asynccontextmanager
    async def running(self, only: Collection[str] | None = None) -> AsyncGenerator[None]:
        """Start the plugins; stop them and close their services at the end.

        The event loop gets a default executor that does not wait for plugins' threads.

        Args:
            only: The names of the plugins to start, by default all. While a host is running, this
                can be called again to start more plugins.

        Raises:
            PluginError: A required plugin did not start, or any plugin under ``strict``.
        """
        if self._is_running:
            if only is None:
                raise RuntimeError("the host is running already")
            async with running(self.manager, only):
                yield
            return
        for record in self.manager.records.values():
            if record.status is Status.STARTED:  # in an earlier run
                record.status = Status.REGISTERED
        asyncio.get_running_loop().set_default_executor(UnjoinedExecutor())
        try:
            self._is_running = True
            async with running(self.manager, only):
                if only is not None:  # only the outcome of a start of all plugins is saved
                    yield
                    return
                save = partial(
                    self.manager.quarantine.save, self.manager.records.values(), "starting"
                )
                save()
                # An isolated plugin may fail later, and a client may kill this process at any time.
                self.manager.on_status_changed = save
                yield
        finally:
            self._is_running = False
            # Shielded, so that connections are closed even if the server is being cancelled.
            with anyio.CancelScope(shield=True):
                await self.pipeline.aclose()
                await self.manager.services.aclose()

    def _warnings(
        self, loaded: LoadedSettings, selection: Selection, profiles: Iterable[str] | None = None
    ) -> list[str]:
        """Return a warning for each setting without effect, by default for the profile in force."""
        settings, records = loaded.settings, self.manager.records
        names = Names(
            contributions=selection.names if self.all_known else {},
            plugins=records.keys(),
            distributions={record.info.distribution for record in records.values()},
            failed=[name for name, each in records.items() if each.status is Status.FAILED],
        )
        if profiles is None:
            profiles = settings.profiles_in_force
        found = (*check_settings(settings, names, profiles), *selection.problems)
        lines = (each.line(loaded.layers) for each in found)
        return list(dict.fromkeys(lines))

    @property
    def all_known(self) -> bool:
        """True if no server or isolated plugin still has to tell its tools."""
        return all(each.is_known and not each.problem for each in self.manager.providers())

    def _report(self, warnings: list[str]) -> None:
        """Log the warnings; under ``strict``, raise them as a `ConfigError`."""
        if warnings and self.settings.strict:
            raise ConfigError("\n".join(warnings))
        for warning in warnings:
            log.warning(warning)


def _with_remote(
    plugins: Iterable[PluginInfo], loaded: LoadedSettings, state_dir: Path, timing: Timing
) -> list[PluginInfo]:
    """Isolate plugins as configured, and add the configured servers."""
    found, settings = list(plugins), loaded.settings
    if any(section.is_isolated for section in settings.plugins.values()):
        from .remote.isolated import isolate  # noqa: PLC0415  - costs start-up time

        found = isolate(found, loaded, state_dir, timing)
    if settings.servers:
        from .remote.external import server_records  # noqa: PLC0415  - costs start-up time

        found += server_records(settings.servers, timing, settings.sign_in_key)
    return found
