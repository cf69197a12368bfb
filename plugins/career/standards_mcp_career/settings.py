"""The settings ``[plugins.career]``."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Final, Literal, Self, TypeAlias
from urllib.parse import unquote, urlsplit

from pydantic import AfterValidator, Field, SecretStr, model_validator

from standards_mcp import PluginSettings
from standards_mcp.commands import install_command
from standards_mcp_encoders import check_model

from .records import Tokens

Strategy: TypeAlias = Literal["lexical", "hybrid", "semantic"]
StrategyName: TypeAlias = Literal[
    "deterministic_lexical_v0.1", "hybrid_lexical_embedding_v0.2", "hybrid_semantic_v0.3"
]
Scope: TypeAlias = Literal["all", "atoms", "resumes", "opps"]
STUB: Final = "stub"
LARGEST_RESUME: Final = 10_485_760


_PORTS: Final = range(1, 65536)
_NETWORK_ADDRESS: Final = re.compile(
    r"(rediss?)://([^\s:@/?#]*(:[^\s@/?#]*)?@)?(?P<host>[^\s:@/?#\[\]]+|\[[0-9A-Fa-f:.]+\])"
    r"(:(?P<port>[0-9]{1,5}))?(/[0-9]{1,9})?"
)
_SOCKET_ADDRESS: Final = re.compile(r"unix://(?P<path>/[^\s?#]+)(\?db=[0-9]{1,9})?")


@dataclass(frozen=True, slots=True)
class RedisAddress:
    """The address of a Redis server.

    Attributes:
        url: The address for the Redis client. It may contain a password.
        display_name: The host and port, or the path of the socket, for logs.
    """

    url: str = field(repr=False)
    display_name: str

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse an address.

        Raises:
            ValueError: The address is malformed. The message does not quote it, because it may
                contain a password.
        """
        if socket := _SOCKET_ADDRESS.fullmatch(text):
            return cls(text, unquote(socket["path"]))
        # The Redis client does not know tcp://. This form has neither a user nor a database.
        is_plain = text.startswith("tcp://") and not re.search("[@/]", text[len("tcp://") :])
        url = text.replace("tcp", "redis", 1) if is_plain else text
        network = _NETWORK_ADDRESS.fullmatch(url)
        port = int(network["port"] or 6379) if network else 0
        if network is None or port not in _PORTS:
            # No example may look like USER@HOST: the host masks credentials in its output.
            raise ValueError(
                "the address is malformed. Write redis://HOST, redis://HOST:PORT/DB, "
                "rediss://HOST, tcp://HOST:PORT, unix:///PATH or unix:///PATH?db=N, with a port "
                "from 1 to 65535; to log in, put USER:PASSWORD and an at sign before HOST. In "
                "names and passwords, encode @ as %40, / as %2F, ? as %3F and # as %23"
            )
        urlsplit(url)  # raises for an impossible IPv6 address
        return cls(url, f"{network['host']}:{port}")


def _checked_embedding(spec: str) -> str:
    if spec != STUB:
        check_model(spec)
    return spec


def _checked_address(secret: SecretStr) -> SecretStr:
    RedisAddress.parse(secret.get_secret_value())
    return secret


class CareerSettings(PluginSettings):
    """Settings.

    Attributes:
        db: The SQLite file for all but vectors. Without it, they are in memory.
        redis: The address of the Redis that coordinates interactions, such as
            redis://host:6379/0, rediss://, unix:///path or tcp://host:port.
        vector_backend: The storage of vectors: inmemory, or lancedb for a folder.
        lancedb_path: The folder of LanceDB, created if it is missing.
        matching_strategy: The default strategy of a match: lexical, hybrid or semantic.
        tokens: What counts as evidence: meaningful, or original for each shared word of ASCII
            letters and digits, as in reports of the original program.
        embedding: The encoder of vectors: stub, none, or a text encoder such as minilm.
        load: Files to import at each start.
        resume_roots: Folders from which ingest_resume reads resumes, without hidden folders. Empty
            by default, because remote callers could learn which files exist.
        max_resume_bytes: Maximum size of a resume file.
    """

    db: Path | None = None
    redis: Annotated[SecretStr, AfterValidator(_checked_address)] | None = None
    vector_backend: Literal["inmemory", "lancedb"] = "inmemory"
    lancedb_path: Path | None = None
    matching_strategy: Strategy = "lexical"
    tokens: Tokens = "meaningful"
    embedding: Annotated[str, AfterValidator(_checked_embedding)] = STUB
    load: tuple[Path, ...] = ()
    resume_roots: tuple[Path, ...] = ()
    max_resume_bytes: int = Field(LARGEST_RESUME, ge=1)

    @model_validator(mode="after")
    def _check_vectors(self) -> Self:
        if self.vector_backend == "lancedb":
            if self.lancedb_path is None:
                raise ValueError('vector_backend = "lancedb" needs lancedb_path, a folder')
            if find_spec("lancedb") is None:
                raise ValueError(
                    'vector_backend = "lancedb" needs LanceDB: '
                    f"run `{install_command('standards-mcp-career', 'lancedb')}`"
                )
        return self
