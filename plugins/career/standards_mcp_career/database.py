"""Connections and transactions of a database, whichever engine it has."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from queue import Empty, LifoQueue
from typing import Any, ClassVar, Final, Protocol

from standards_mcp import ApiError, InvalidInputError

TIMEOUT_SECONDS: Final = 15
"""Maximum wait for another writer, or for a connection."""


class Rows(Protocol):
    """The result of a statement: tuples, in the order of the columns."""

    @property
    def description(self) -> Any:
        """A sequence for each column, which begins with its name."""

    def fetchone(self) -> Any:
        """Return the next row, None at the end."""

    def fetchall(self) -> list[Any]:
        """Return the rows that are left."""
        ...

    def __iter__(self) -> Iterator[Any]: ...


class Connection(Protocol):
    """A connection of either engine. In statements, parameters are ``?``."""

    @property
    def in_transaction(self) -> bool:
        """True if a transaction has begun and not ended, or if the connection is lost."""
        ...

    @property
    def is_lost(self) -> bool:
        """True if the server has ended the connection."""
        ...

    def execute(self, statement: str, parameters: Sequence[Any] = ..., /) -> Rows:
        """Execute a statement."""
        ...

    def executemany(self, statement: str, rows: Iterable[Sequence[Any]], /) -> object:
        """Execute a statement for each row of parameters."""

    def stream(self, statement: str, parameters: Sequence[Any] = ..., /) -> Iterable[Any]:
        """Execute a query of many rows, which are read in parts."""
        ...

    def run_script(self, script: str) -> None:
        """Execute several statements in the transaction."""

    def has_table(self, name: str) -> bool:
        """Return True if a table exists."""
        ...

    def commit(self) -> None:
        """End the transaction, and keep its changes."""

    def rollback(self) -> None:
        """End the transaction, if there is one, and undo its changes."""

    def close(self) -> None:
        """Close the connection."""


class Store(ABC):
    """A database for several threads, with one transaction for each.

    A database in memory has one connection, for which threads queue. So a thread inside of one
    transaction must not begin another.

    Attributes:
        key: The setting that names the database.
        first_version: The first version of the tables that this engine has.
        is_abandoned: The condition in SQL that no node has a `claim` on a run of the index.

    Args:
        name: The database in messages, without a password.
        connections: Maximum number of connections.
    """

    key: ClassVar[str]
    first_version: ClassVar[int]
    is_abandoned: ClassVar[str]
    _begin_reading: ClassVar[str]
    _begin_writing: ClassVar[str]
    _errors: ClassVar[type[Exception]]
    """The common class of the driver's errors."""

    def __init__(self, name: str, connections: int) -> None:
        self.name = name
        # None is a connection that is not open yet.
        self._pool = LifoQueue[Connection | None]()
        self._is_closed = False
        for _ in range(connections):
            self._pool.put(None)

    def reading(self) -> AbstractContextManager[Connection]:
        """Begin a transaction that sees one state of the database.

        Raises:
            ApiError: The database fails.
            InvalidInputError: A text has a character that cannot be stored.
        """
        return self._transaction(self._begin_reading)

    def writing(self) -> AbstractContextManager[Connection]:
        """Begin the only writing transaction of all processes. An error rolls it back.

        Raises:
            As `reading`.
        """
        return self._transaction(self._begin_writing)

    def claim(self, run_id: str) -> AbstractContextManager[object]:
        """Claim a run of the index, until the context or this process ends.

        Only nodes that share a server can see it. A file is used as if by one server.
        """
        del run_id
        return nullcontext()

    def close(self) -> None:
        """Close all connections, those of running transactions after their end."""
        self._is_closed = True
        idle: list[Connection | None] = []
        with suppress(Empty):
            while True:
                idle.append(self._pool.get_nowait())
        for connection in idle:
            if connection is not None:
                connection.close()
            self._pool.put(None)

    @contextmanager
    def _transaction(self, begin: str) -> Generator[Connection]:
        try:
            connection = self._pool.get(timeout=TIMEOUT_SECONDS)
        except Empty as error:
            raise self._error("all its connections are in use; try again") from error
        try:
            if self._is_closed:
                raise self._error("it is closed; restart the server")
            connection = connection or self._connect()
            connection = self._begin(connection, begin)
            try:
                yield connection
                connection.commit()
            except BaseException:
                # Also after a failed commit: the next user begins a new transaction.
                with suppress(self._errors):  # of a lost connection
                    connection.rollback()
                raise
        except self._errors as error:
            raise self._failure(error) from error
        except UnicodeEncodeError as error:
            raise InvalidInputError("A text has a lone surrogate (half of a character).") from error
        finally:
            # Still in a transaction: the rollback has failed.
            if connection and (self._is_closed or connection.in_transaction):
                connection.close()
                connection = None
            self._pool.put(connection)

    def _begin(self, connection: Connection, begin: str) -> Connection:
        """Begin a transaction, in a new connection if the server has ended this one."""
        try:
            connection.execute(begin)
        except self._errors:
            if not connection.is_lost:
                raise
            connection.close()
            connection = self._connect()
            try:
                connection.execute(begin)
            except BaseException:
                connection.close()
                raise
        return connection

    @abstractmethod
    def _connect(self) -> Connection: ...

    @abstractmethod
    def _failure(self, error: Any) -> ApiError | InvalidInputError:
        """Return the error for callers, for an error of the driver."""

    def _error(self, cause: str) -> ApiError:
        return ApiError(f"The database ({self.name}) failed: {cause}. Its key is {self.key}.")
