"""The settings ``[plugins.career]``."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Final, Literal, Self, TypeAlias

from pydantic import AfterValidator, Field, SecretStr, model_validator

from standards_mcp import PluginSettings
from standards_mcp.commands import install_command
from standards_mcp_encoders import check_model

from .addresses import PostgresAddress, RedisAddress
from .records import Tokens

Strategy: TypeAlias = Literal["lexical", "hybrid", "semantic"]
StrategyName: TypeAlias = Literal[
    "deterministic_lexical_v0.1", "hybrid_lexical_embedding_v0.2", "hybrid_semantic_v0.3"
]
Scope: TypeAlias = Literal["all", "atoms", "resumes", "opps"]
STUB: Final = "stub"
LARGEST_RESUME: Final = 10_485_760


def _checked_embedding(spec: str) -> str:
    if spec != STUB:
        check_model(spec)
    return spec


def _checked_redis(secret: SecretStr) -> SecretStr:
    RedisAddress.parse(secret.get_secret_value())
    return secret


def _checked_postgres(secret: SecretStr) -> SecretStr:
    PostgresAddress.parse(secret.get_secret_value())
    if find_spec("psycopg") is None:
        command = install_command("standards-mcp-career", "postgres")
        raise ValueError(f"the driver of PostgreSQL is missing: run `{command}`")
    return secret


class CareerSettings(PluginSettings):
    """Settings.

    Attributes:
        db: The SQLite file for all but vectors. Without it and *postgres*, they are in memory.
        postgres: The address of a PostgreSQL database in place of *db*, such as
            postgresql://host:5432/database.
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
    postgres: Annotated[SecretStr, AfterValidator(_checked_postgres)] | None = None
    redis: Annotated[SecretStr, AfterValidator(_checked_redis)] | None = None
    vector_backend: Literal["inmemory", "lancedb"] = "inmemory"
    lancedb_path: Path | None = None
    matching_strategy: Strategy = "lexical"
    tokens: Tokens = "meaningful"
    embedding: Annotated[str, AfterValidator(_checked_embedding)] = STUB
    load: tuple[Path, ...] = ()
    resume_roots: tuple[Path, ...] = ()
    max_resume_bytes: int = Field(LARGEST_RESUME, ge=1)

    @property
    def database(self) -> Path | PostgresAddress | None:
        """The database, None in memory."""
        if self.postgres is not None:
            return PostgresAddress.parse(self.postgres.get_secret_value())
        return self.db

    @model_validator(mode="after")
    def _check_database(self) -> Self:
        if self.db is not None and self.postgres is not None:
            raise ValueError("set db or postgres, not both")
        return self

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
