"""Coordinate interactions in Redis for servers without a common database, by one Lua script."""

from __future__ import annotations

import json
import logging
from importlib.resources import files
from typing import Any, Final, cast

from redis import Redis
from redis.backoff import NoBackoff
from redis.exceptions import RedisError
from redis.retry import Retry
from typing_extensions import override

from standards_mcp import ApiError

from .addresses import RedisAddress
from .answers import Event, OutcomeName
from .database import Store
from .interactions import (
    MESSAGES,
    TRANSITIONS,
    Coordinator,
    Outcome,
    Position,
    is_sound,
    move_interaction,
    position_of,
)

_log = logging.getLogger("standards_mcp.plugins.career")
_PREFIX: Final = "standards-mcp:career:interaction:"
_TIMEOUT_SECONDS: Final = 5.0


class RedisCoordinator(Coordinator):
    """Decide in Redis, then update the row in the database.

    Args:
        store: The database. It has the position of an interaction that Redis does not have yet.
    """

    @override
    def __init__(self, store: Store, address: RedisAddress) -> None:
        super().__init__(store)
        self._name = address.display_name
        client: Any = Redis
        self._client = client.from_url(
            address.url,
            socket_timeout=_TIMEOUT_SECONDS,
            socket_connect_timeout=_TIMEOUT_SECONDS,
            # A second attempt is safe, because an applied event has a receipt.
            retry=Retry(NoBackoff(), 1),
        )
        self._script = self._client.register_script(
            files("standards_mcp_career").joinpath("coordinate.lua").read_text("utf-8")
        )

    @override
    def apply(self, interaction_id: str, event: Event, key: str) -> Outcome:
        try:
            with self._store.reading() as connection:
                current = position_of(connection, interaction_id)
            if isinstance(current, Outcome):
                return current
            arguments = [event, key, *current, json.dumps(TRANSITIONS)]
            answer: Any = self._script(keys=[_PREFIX + interaction_id], args=arguments)
        except ApiError as error:
            return Outcome("backend_error", error_message=str(error))
        except (RedisError, UnicodeError) as error:  # an impossible host name
            message = f"Redis at {self._name} failed: {error}"
            return Outcome("backend_error", error_message=message)
        outcome = _outcome(answer, event) or self._failure(answer, interaction_id)
        is_applied = outcome.outcome in ("applied", "already_applied")
        after = Position(outcome.after_state, outcome.transition_index)
        if is_applied and after.transition_index > current.transition_index:
            try:
                with self._store.writing() as connection:
                    move_interaction(connection, interaction_id, after)
            except ApiError as error:
                # Redis has applied the event. The next event will update the row.
                _log.warning("interaction %s is behind Redis: %s", interaction_id, error)
        return outcome

    def _failure(self, answer: Any, interaction_id: str) -> Outcome:
        """Return the outcome for an answer that reports damaged data or is not from Redis."""
        if answer in ([b"backend_error", b"state"], [b"backend_error", b"receipt"]):
            message = (
                f"Redis at {self._name} holds a damaged {answer[1].decode()} of interaction "
                f"{interaction_id}, so nothing was changed. Restore its data, or delete the key "
                f"{_PREFIX}{interaction_id} in it: the interaction then goes on from the database, "
                "without its receipts, and an event that is sent again counts again."
            )
        else:
            message = (
                f"Redis at {self._name} gave an impossible answer, so nothing was changed here. "
                "Check that a Redis, and not another program, listens there."
            )
        return Outcome("backend_error", error_message=message)

    @override
    def close(self) -> None:
        self._client.close()


def _outcome(answer: Any, event: Event) -> Outcome | None:
    """Parse an answer of the script; None if it has no outcome, or an impossible outcome."""
    match answer:
        case [b"applied" | b"already_applied" as name, before, after, index]:
            is_possible = is_sound(Position(after, index), event)
        case [b"conflict" | b"invalid_transition" as name, before, after, index]:
            is_possible = is_sound(Position(after, index))
        case _:
            return None
    if not is_possible or not is_sound(Position(before, index)):
        return None
    outcome = cast("OutcomeName", name.decode())
    return Outcome(outcome, before, after, index, MESSAGES.get(outcome, ""))
