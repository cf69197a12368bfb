"""The services that plugins provide to each other: one object of each type in a process."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, TypeAlias

from anyio import to_thread

from standards_mcp._utils.text import describe_exception
from standards_mcp.config.layers import key_name
from standards_mcp.errors import PluginError
from standards_mcp.plugin import MissingServiceError, Service, service_name

from .records import PluginKind, PluginRecord, Status

log = logging.getLogger(__name__)

ServiceType: TypeAlias = Callable[..., Any]
"""The type of a service."""


class Services:
    """Opens services at their first use, and closes them in the reverse order.

    Args:
        records: The plugins by name.
        choices: The plugin to use for each service, by the service's name; see ``[services]``.
        overrides: Objects to use in place of providers, by their types.
    """

    def __init__(
        self,
        records: Mapping[str, PluginRecord],
        choices: Mapping[str, str],
        overrides: Mapping[ServiceType, object],
    ) -> None:
        self._records = records
        # Names from environment variables are in lower case.
        self._choices = {name.casefold(): plugin for name, plugin in choices.items()}
        self._offers: dict[ServiceType, dict[str, Service[Any]]] = {
            service_type: {"": _constant_service(service_type, value)}
            for service_type, value in overrides.items()
        }
        self._open: dict[ServiceType, tuple[Service[Any], Any]] = {}
        self._lock = threading.RLock()

    def add(self, record: PluginRecord, services: Iterable[object]) -> None:
        """Add the services of a plugin.

        Raises:
            PluginError: An item is not a `Service`, or the plugin provides a service twice.
        """
        for service in services:
            if not isinstance(service, Service):
                reason = f"register_services returned a {type(service).__name__}"
                raise PluginError(record.name, reason)
            offers = self._offers.setdefault(service.type, {})
            if record.name in offers:
                raise PluginError(record.name, f"it provides {service.name} twice")
            offers[record.name] = service

    def withdraw(self, plugin: str) -> None:
        """Remove the services of a plugin that has failed."""
        for offers in self._offers.values():
            offers.pop(plugin, None)

    def check(self, needs: Iterable[ServiceType]) -> None:
        """Check that each of these services has a provider; open none.

        Raises:
            MissingServiceError: A service has no provider, or the configuration must choose one.
        """
        for service_type in needs:
            self._choose(service_type)

    def dependents(self, plugin: str) -> list[str]:
        """Return the loaded plugins that cannot be loaded without a plugin, the nearest first."""
        lost = [plugin]
        for provider in lost:  # the list grows: others may need a dependent
            lost += [
                name
                for name, record in self._records.items()
                if name not in lost
                and record.plugin is not None
                and record.status is not Status.FAILED
                and provider in self.providers(type(record.plugin).needs)
            ]
        return lost[1:]

    def get(self, record: PluginRecord, service_type: ServiceType) -> Any:
        """Return a service that a plugin asks for; see `PluginContext.service`.

        Raises:
            MissingServiceError: There is no provider, or the configuration must choose one.
            PluginError: The plugin does not declare the service, or the provider failed.
        """
        if service_type not in used_services(record):
            reason = (
                f"it asks for {service_name(service_type)}; name it in the class's needs or uses"
            )
            raise PluginError(record.name, reason)
        return self.open(service_type)

    def open(self, service_type: ServiceType) -> Any:
        """Return a service without a check of declarations. See `get`."""
        with self._lock:
            if service_type not in self._open:
                plugin, service = self._choose(service_type)
                try:
                    self._open[service_type] = service, service.factory()
                except Exception as exc:
                    reason = f"it cannot provide {service.name}: {describe_exception(exc)}"
                    raise PluginError(plugin, reason) from exc
            return self._open[service_type][1]

    def _choose(self, service_type: ServiceType) -> tuple[str, Service[Any]]:
        """Return a service and the name of its plugin; the name is "" for an override."""
        offers, name = self._offers.get(service_type, {}), service_name(service_type)
        if override := offers.get(""):
            return "", override
        if chosen := self._choices.get(name.casefold()):
            if chosen in offers:
                return chosen, offers[chosen]
            why = self._why_not(chosen, name)
            raise MissingServiceError(f"[services] {name} = {chosen!r}, and {why}")
        if len(offers) > 1:
            names = " and ".join(map(repr, sorted(offers)))
            how = f'set {name} = "{min(offers)}" in [services], for example'
            raise MissingServiceError(f"it needs {name}, which plugins {names} provide; {how}")
        if not offers:
            providers = self._usual_providers(service_type)
            reasons = [self._why_not(plugin, name) for plugin in providers]
            why = "; ".join(reasons) or "no installed plugin provides it"
            raise MissingServiceError(f"it needs {name}, and {why}")
        return next(iter(offers.items()))

    def _usual_providers(self, service_type: ServiceType) -> list[str]:
        """Return the plugins in the package of a service's type, which usually provide it."""
        package = str(getattr(service_type, "__module__", "")).partition(".")[0]
        return [name for name, record in self._records.items() if record.info.package == package]

    def _why_not(self, plugin: str, name: str) -> str:
        """Return why a plugin does not provide a service, with a remedy if there is one."""
        record = self._records.get(plugin)
        if record is None:
            return f"no plugin {plugin!r} is installed"
        if record.info.kind is PluginKind.ISOLATED:
            key = key_name(("plugins", plugin, "isolate"))
            return f"plugin {plugin!r} is isolated, so it provides none; take out {key}"
        if record.status is Status.DISABLED:
            return f"plugin {plugin!r} is disabled: {record.reason}"
        if record.status is Status.FAILED:
            return f"plugin {plugin!r} failed: {record.reason}"
        return f"plugin {plugin!r} does not provide {name}"

    def likely_providers(self, used: Iterable[ServiceType]) -> set[str]:
        """Return the plugins that probably provide these services, before they are loaded."""
        names = set[str]()
        for service_type in used:
            chosen = self._choices.get(service_name(service_type).casefold())
            names.update([chosen] if chosen else self._usual_providers(service_type))
        return names

    def providers(self, used: Iterable[ServiceType]) -> set[str]:
        """Return the plugins that provide these services; skip services without a provider."""
        return {plugin for plugin, _ in self._with_provider(used)} - {""}

    def provided(self) -> dict[str, tuple[str, Service[Any]]]:
        """Return the services that have a provider, by name, each with the name of its plugin."""
        found = self._with_provider(self._offers)
        return {service.name: (plugin, service) for plugin, service in found}

    def _with_provider(self, used: Iterable[ServiceType]) -> Iterator[tuple[str, Service[Any]]]:
        for service_type in used:
            with suppress(MissingServiceError):
                yield self._choose(service_type)

    async def warm_up(self, used: Iterable[ServiceType]) -> None:
        """Open the services of these types that have a slow first use, one after the other."""
        for _, service in self._with_provider(dict.fromkeys(used)):
            if service.warm_up:
                try:
                    await service.warm_up(await to_thread.run_sync(self.open, service.type))
                except Exception as exc:  # noqa: BLE001  - the first call reports it
                    fields = {"service": service.name, "reason": describe_exception(exc)}
                    log.debug("a service cannot be warmed up", extra=fields)

    async def aclose(self) -> None:
        """Close the open services, the last one first. Each reopens itself if it is used again."""
        for service, value in reversed(list(self._open.values())):
            if service.close is None:
                continue
            try:
                await service.close(value)
            except Exception:
                log.exception("service did not close cleanly", extra={"service": service.name})


def used_services(record: PluginRecord) -> tuple[ServiceType, ...]:
    """Return the services that a plugin declares in `needs` and in `uses`."""
    plugin = record.plugin
    return () if plugin is None else (*type(plugin).needs, *type(plugin).uses)


def _constant_service(service_type: ServiceType, value: object) -> Service[Any]:
    # Without `close`: the code that made the object closes it.
    return Service(type=service_type, factory=lambda: value)
