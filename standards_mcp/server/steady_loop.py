"""An event loop that runs on when a plugin's task or callback would end it."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Awaitable, Generator
from typing import Any, Final, TypeVar, cast

log = logging.getLogger(__name__)

_T = TypeVar("_T")
_STOPPED: Final = "Event loop stopped"

if sys.platform == "win32":
    _Loop = asyncio.ProactorEventLoop
else:
    _Loop = asyncio.SelectorEventLoop


class SteadyLoop(_Loop):
    """Runs until what it was given is done, whatever else is raised or stops it before.

    asyncio lets `SystemExit` and `KeyboardInterrupt` of any task or callback end the loop, and any
    code may stop it. Each other plugin would end with it. Ctrl-C is no exception here: the server
    handles the signal.
    """

    def run_until_complete(self, future: Generator[Any, None, _T] | Awaitable[_T]) -> _T:
        """Return the result of *future*, or raise what it raised."""
        task: asyncio.Future[_T] = asyncio.ensure_future(cast("Awaitable[_T]", future), loop=self)
        while True:
            try:
                return super().run_until_complete(task)
            except (SystemExit, KeyboardInterrupt, RuntimeError) as exc:
                is_broken = isinstance(exc, RuntimeError) and not str(exc).startswith(_STOPPED)
                if task.done() or is_broken:
                    raise
                log.error("a plugin would have ended the event loop", exc_info=exc)  # noqa: TRY400

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """Tell the handler of a failure, which a plugin may have set."""
        try:
            super().call_exception_handler(context)
        except BaseException:
            log.exception("the exception handler of the event loop failed")
