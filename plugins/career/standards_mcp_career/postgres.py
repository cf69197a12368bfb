"""The PostgreSQL database, which several nodes may share."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, closing
from typing import Any, Final

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.pq import TransactionStatus
from typing_extensions import override

from standards_mcp import ApiError, InvalidInputError

from .addresses import PostgresAddress
from .database import TIMEOUT_SECONDS, Connection, Rows, Store

_CONNECTIONS: Final = 4
"""Fewer than threads: a server has 100 by default for all nodes, and only one of them writes."""
_BATCH_ROWS: Final = 1000
_DEFAULTS: Final[dict[str, str | int | None]] = {
    "application_name": "standards-mcp",
    "connect_timeout": TIMEOUT_SECONDS,
    # Notice a server that has vanished: by default after hours.
    "keepalives_idle": TIMEOUT_SECONDS,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": TIMEOUT_SECONDS * 1000,
}
"""Parameters of a connection that the address may override."""
_WRITE_LOCK: Final = 0x63617265  # "care"
"""The number of the advisory lock of this plugin, in each database."""
_CLAIM: Final = f"pg_try_advisory_xact_lock({_WRITE_LOCK}, hashtext(run_id))"
"""A lock for each run of the index. Locks of two numbers are apart from those of one."""


class _PostgresConnection:
    def __init__(self, raw: psycopg.Connection[tuple[Any, ...]]) -> None:
        self._raw = raw
        self._numbers = itertools.count()

    @property
    def in_transaction(self) -> bool:
        return self._raw.info.transaction_status is not TransactionStatus.IDLE

    @property
    def is_lost(self) -> bool:
        return bool(self._raw.closed)

    def execute(self, statement: str, parameters: Sequence[Any] = (), /) -> Rows:
        # Without parameters, the driver takes several statements and leaves % as it is.
        return self._raw.execute(_in_dialect(statement), parameters or None)

    def executemany(self, statement: str, rows: Iterable[Sequence[Any]], /) -> None:
        with self._raw.cursor() as cursor:
            cursor.executemany(_in_dialect(statement), rows)

    def stream(self, statement: str, parameters: Sequence[Any] = (), /) -> Iterator[Any]:
        with self._raw.cursor(name=f"rows_{next(self._numbers)}") as cursor:
            cursor.itersize = _BATCH_ROWS
            cursor.execute(_in_dialect(statement), parameters or None)
            yield from cursor

    def run_script(self, script: str) -> None:
        self._raw.execute(script.encode())

    def has_table(self, name: str) -> bool:
        # Not by `to_regclass`: its cache misses a table that was made while this waited for a lock.
        query = "SELECT 1 FROM pg_class WHERE relname = ? AND pg_table_is_visible(oid)"
        return self.execute(query, (name,)).fetchone() is not None

    def commit(self) -> None:
        self._raw.commit()

    def rollback(self) -> None:
        self._raw.rollback()

    def close(self) -> None:
        self._raw.close()


def _in_dialect(statement: str) -> bytes:
    return statement.replace("?", "%s").encode()


class PostgresStore(Store):
    """A database of a PostgreSQL server. The first transaction connects."""

    key = "plugins.career.postgres"
    first_version = 10
    is_abandoned = _CLAIM
    _begin_reading = "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY"
    # One writer at a time, as in SQLite, so no update is lost and none has to be tried again. Each
    # statement sees what earlier writers committed. A node that hangs or vanishes loses the lock.
    _begin_writing = f"""BEGIN ISOLATION LEVEL READ COMMITTED, READ WRITE;
        SET LOCAL lock_timeout = '{TIMEOUT_SECONDS}s';
        SET LOCAL idle_in_transaction_session_timeout = '60s';
        SELECT pg_advisory_xact_lock({_WRITE_LOCK})"""
    _errors = psycopg.Error

    def __init__(self, address: PostgresAddress) -> None:
        super().__init__(address.display_name, _CONNECTIONS)
        self._url = address.url

    @override
    def claim(self, run_id: str) -> AbstractContextManager[object]:
        # The lock of a transaction, since a pooler may give each transaction another session. It
        # has a connection of its own: the pool's are for calls, and a lost one fails no build.
        connection = self._connect()
        try:
            connection.execute("BEGIN; SET LOCAL idle_in_transaction_session_timeout = 0")
            query = f"SELECT {_CLAIM} FROM (SELECT ? AS run_id) AS run"  # noqa: S608
            connection.execute(query, (run_id,))
        except BaseException:
            connection.close()
            raise
        return closing(connection)

    @override
    def _connect(self) -> Connection:
        try:
            chosen = conninfo_to_dict(self._url)
            conninfo = make_conninfo("", **{**_DEFAULTS, **chosen, "client_encoding": "utf8"})
        except psycopg.ProgrammingError as error:
            cause = "the address has an unknown parameter, or a % that is not encoded as %25"
            error.args = (cause,)  # without what it quotes
            raise
        raw = psycopg.connect(conninfo, autocommit=True)
        if (encoding := raw.info.parameter_status("server_encoding")) != "UTF8":
            raw.close()
            raise self._error(f"its encoding is {encoding}; create one with the encoding UTF8")
        return _PostgresConnection(raw)

    @override
    def _failure(self, error: psycopg.Error) -> ApiError | InvalidInputError:
        if isinstance(error, psycopg.DataError) and error.sqlstate is None:
            return InvalidInputError("A text has a null character, which PostgreSQL cannot store.")
        cause = error.diag.message_primary or " ".join(str(error).split())
        error.args = (cause,)  # without the details, which quote the row
        if isinstance(error, psycopg.errors.LockNotAvailable):
            return self._error("another process is writing; try again")
        if isinstance(error, psycopg.OperationalError) and error.sqlstate is None:
            return ApiError(
                f"The database ({self.name}) cannot be reached: {cause}. Check that PostgreSQL "
                f"runs, that the database exists, and the address in {self.key}; then try again."
            )
        return self._error(cause)
