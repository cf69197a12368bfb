"""Services that plugins share: what a provider registers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from .calls import Health

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Service(Generic[T]):
    """An object that a plugin provides to others, by its type; see ``register_services``.

    Attributes:
        type: The class or the protocol by which plugins ask for it. Its name is the name of the
            service in the configuration and for operators.
        factory: Returns the object. It is called once, at the first use, from any thread, and does
            no I/O.
        health: Returns how the service is, with facts for operators. It is asked often, so it has
            to be cheap; the hook ``check_health`` is the place for a thorough check.
        close: Releases what the object holds open. The object may be used again afterwards.
        facts: Facts that are known without asking the object.
        is_remote: True if its health is asked over a network. It is not asked at the start then.
    """

    # Not `type[T]`: type checkers refuse an abstract class there.
    type: Callable[..., T]
    factory: Callable[[], T]
    health: Callable[[T], Awaitable[Health]] | None = None
    close: Callable[[T], Awaitable[None]] | None = None
    facts: Mapping[str, Any] = field(default_factory=dict[str, Any])
    is_remote: bool = False

    @property
    def name(self) -> str:
        """The name of its type."""
        return service_name(self.type)


def service_name(wanted: Callable[..., Any]) -> str:
    """Return the name of a service in the configuration and in messages."""
    return str(getattr(wanted, "__name__", wanted))
