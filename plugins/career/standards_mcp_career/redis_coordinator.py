"""Coordinate interactions in Redis for servers without a common database, by one Lua script."""

from __future__ import annotations

import json
import logging
from typing import Any, Final, cast

from redis import Redis
from redis.backoff import NoBackoff
from redis.exceptions import RedisError
from redis.retry import Retry

from standards_mcp import ApiError

from .interactions import damaged_row
from .redis_address import RedisAddress
from .store.database import Store
from .store.repositories import move_interaction, position_of
from .transitions import (
    CONFLICT,
    INVALID,
    TRANSITIONS,
    Event,
    Outcome,
    OutcomeName,
    Position,
    Receipt,
    backend_error,
    is_sound,
    not_found,
)

_log = logging.getLogger("standards_mcp.plugins.career")
_PREFIX: Final = "standards-mcp:career:interaction:"
_SECONDS: Final = 5.0
_MESSAGES: Final[dict[OutcomeName, str]] = {"conflict": CONFLICT, "invalid_transition": INVALID}
# KEYS: the interaction, a hash that has its receipts, too.
# ARGV: event, idempotency key, state and index in the repository, state after each state by event.
# If the repository is ahead, this Redis has lost data. Before a write, the
# script checks the state and receipts in Redis: other programs may have changed them.
_SCRIPT: Final = """
local transitions = cjson.decode(ARGV[5])
local function whole(value, most)
  local number = tonumber(value)
  return number and number % 1 == 0 and number >= 0 and number <= most and number
end
local known = redis.call('HMGET', KEYS[1], 'state', 'index')
local state, index = -1, -1
if known[1] or known[2] then
  state, index = whole(known[1] or '', 4), whole(known[2] or '', 2000000000)
  if not state or not index then
    return {'backend_error', 'state'}
  end
end
if index < tonumber(ARGV[4]) then
  state, index = tonumber(ARGV[3]), tonumber(ARGV[4])
end
local field = 'receipt:' .. ARGV[2]
local kept = redis.call('HGET', KEYS[1], field)
if kept then
  local is_json, receipt = pcall(cjson.decode, kept)
  local is_sound = false
  if is_json and type(receipt) == 'table' and type(receipt.event) == 'string'
      and type(receipt.state) == 'number' and type(receipt.index) == 'number'
      and whole(receipt.index, index) then
    for _, after in pairs(transitions[receipt.event] or {}) do
      is_sound = is_sound or after == receipt.state
    end
    is_sound = is_sound and (receipt.index < index or receipt.state == state)
  end
  if not is_sound then
    return {'backend_error', 'receipt'}
  end
  if receipt.event == ARGV[1] then
    return {'already_applied', receipt.state, receipt.state, receipt.index}
  end
  return {'conflict', state, state, index}
end
local after = transitions[ARGV[1]][tostring(state)]
if not after then
  return {'invalid_transition', state, state, index}
end
local receipt = cjson.encode({event = ARGV[1], state = after, index = index + 1})
redis.call('HSET', KEYS[1], 'state', after, 'index', index + 1, field, receipt)
return {'applied', state, after, index + 1}
"""


class RedisCoordinator:
    """Decide in Redis, then update the row in the database.

    Args:
        store: The database, which has the first position of an interaction.
    """

    def __init__(self, store: Store, address: RedisAddress) -> None:
        self._store = store
        self._address = address
        self._client = _client(address)
        self._script = self._client.register_script(_SCRIPT)

    def apply(self, interaction_id: str, event: Event, key: str) -> Outcome:
        """See `Coordinator.apply`."""
        try:
            with self._store.reading() as connection:
                now = position_of(connection, interaction_id)
        except ApiError as error:
            return backend_error(str(error))
        if now is None:
            return not_found(interaction_id)
        if not is_sound(now):
            return damaged_row("state", interaction_id)
        arguments: list[str | int] = [event, key, now.state, now.index, json.dumps(TRANSITIONS)]
        try:
            answer: Any = self._script(keys=[_PREFIX + interaction_id], args=arguments)
        except (RedisError, UnicodeError) as error:  # an impossible host name
            return backend_error(f"Redis at {self._address} failed: {error}")
        outcome = self._outcome(answer, interaction_id, event)
        if outcome.name in ("applied", "already_applied") and outcome.index > now.index:
            self._follow(interaction_id, outcome.after)
        return outcome

    def _outcome(self, answer: Any, interaction_id: str, event: Event) -> Outcome:
        """Parse an answer, which may come from another program than Redis."""
        match answer:
            case [b"backend_error", b"state" | b"receipt" as what]:
                return self._damaged(what.decode(), interaction_id)
            case [b"applied" | b"already_applied" as name, *numbers]:
                outcome = _outcome(name, numbers, event)
            case [b"conflict" | b"invalid_transition" as name, *numbers]:
                outcome = _outcome(name, numbers, None)
            case _:
                outcome = None
        return outcome or backend_error(
            f"Redis at {self._address} gave an impossible answer, so nothing was changed here. "
            "Check that a Redis, and not another program, listens there."
        )

    def _damaged(self, what: str, interaction_id: str) -> Outcome:
        return backend_error(
            f"Redis at {self._address} holds a damaged {what} of interaction {interaction_id}, so "
            f"nothing was changed. Restore its data, or delete the key {_PREFIX}{interaction_id} "
            "in it: the interaction then goes on from the database, without its receipts, and an "
            "event that is sent again counts again."
        )

    def _follow(self, interaction_id: str, after: Position) -> None:
        try:
            with self._store.writing() as connection:
                move_interaction(connection, interaction_id, after)
        except ApiError as error:
            # Redis has applied the event; the next event updates the row.
            _log.warning("interaction %s is behind Redis: %s", interaction_id, error)

    def close(self) -> None:
        """Close the connections."""
        self._client.close()


def _outcome(name: bytes, numbers: list[Any], event: Event | None) -> Outcome | None:
    """Parse an answer; None for impossible numbers.

    Args:
        event: The applied event, None for a refused one.
    """
    if len(numbers) != 3:  # noqa: PLR2004  - state before, state after, index
        return None
    before, after, index = numbers
    position = Position(after, index)
    receipt = Receipt(event, position) if event else None
    if not is_sound(position, receipt) or not is_sound(Position(before, index)):
        return None
    outcome = cast("OutcomeName", name.decode())
    return Outcome(outcome, before, after, index, _MESSAGES.get(outcome, ""))


def _client(address: RedisAddress) -> Redis:
    return Redis(
        host=address.host,
        port=address.port,
        db=address.db,
        username=address.username,
        password=address.password,
        ssl=address.is_encrypted,
        unix_socket_path=address.path,
        socket_timeout=_SECONDS,
        socket_connect_timeout=_SECONDS,
        # A second attempt is safe, because an applied event has a receipt.
        retry=Retry(NoBackoff(), 1),
    )
