"""The plugin class: tools with their descriptions, a resource, a health check and commands."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from time import perf_counter
from typing import Annotated, Final

import anyio
import click
from pydantic import Field, StrictBool

from standards_mcp import (
    ApiError,
    Health,
    InvalidInputError,
    Plugin,
    Tool,
    ToolCall,
    ToolHandler,
    ToolResult,
    hookimpl,
    resource,
)

from .answers import HealthAnswer, ListAnswer, SearchAnswer
from .service import ATTEMPTS, SEARCH_TOOL, Service, log_search
from .settings import KnowledgeSettings

SEARCH_TEXT: Final = """\
Search a dataset of documentation by meaning. Answers with the passages that are nearest to the \
query, the best first, each with the path of its file: cite it. Ask in whole words, as the \
documentation would say it; a question works well. knowledge.listDatasets names the datasets, and \
the resource knowledge://{dataset}/{path} has the whole document."""
LIST_TEXT: Final = """\
List the datasets of documentation that can be searched, with their subjects. Call it before the \
first search, to choose a dataset. With includeErrors, also list datasets with errors."""
HEALTH_TEXT: Final = """\
Report the state of the datasets of documentation and of the processes that search them, with the \
error of each dataset that is left out. For the operator of the server, not for questions."""
_SPARE_SECONDS: Final = 5

DatasetId = Annotated[
    str,
    Field(min_length=1, max_length=64, description="The id of a dataset, from listDatasets."),
]
Query = Annotated[
    str, Field(min_length=1, description="A question or a few words: 1 to 1,024 characters.")
]
TopK = Annotated[
    int | None,
    Field(alias="topK", ge=1, le=100, description="Number of results; the dataset has a default."),
]
IncludeErrors = Annotated[
    StrictBool,
    Field(alias="includeErrors", description="Also list datasets with errors."),
]


class KnowledgePlugin(Plugin[KnowledgeSettings]):
    """Contributes searches of embedded documentation."""

    title = "Documentation"
    settings_type = KnowledgeSettings
    instructions = """\
    Call {knowledge.search} for questions on the subject of a dataset of {knowledge.listDatasets}, \
and cite the path of each passage that you use.
    """

    _started_service: Service | None = None

    @hookimpl
    @asynccontextmanager
    async def lifespan(self) -> AsyncGenerator[None]:
        """Run the workers and keep the datasets current."""
        async with anyio.create_task_group() as group:
            self._started_service = Service(self.settings, self.root, group, self.context.log)
            yield
            group.cancel_scope.cancel()

    @property
    def root(self) -> Path:
        """The folder of the datasets."""
        return self.settings.root or self.context.state_dir / "datasets"

    @property
    def _service(self) -> Service:
        if self._started_service is None:
            raise ApiError("Knowledge search has not started.")
        return self._started_service

    @hookimpl
    async def check_health(self) -> Health:
        """Report the state of the workers, and the datasets with errors."""
        health = await self._service.health()
        details = health["details"]
        errors = [f"{entry['id']}: {entry['error']}" for entry in details if "error" in entry]
        message = f"{health['datasets']['ready']} datasets, workers {health['worker']['state']}"
        if health["status"] == "ok" and not health["datasets"]["total"]:
            message = "no datasets yet; `standards-mcp knowledge build` makes one"
        return Health(status=health["status"], message="; ".join([message, *errors]))

    @hookimpl
    def register_tools(self) -> Iterable[Tool]:
        """Return the three tools. Their timeout allows a second attempt in another worker."""
        timeout = ATTEMPTS * self.settings.timeout + _SPARE_SECONDS
        return [
            Tool(
                name=name,
                title=title,
                description=description,
                function=function,
                read_only=True,
                destructive=False,
                idempotent=True,
                open_world=False,
                returns_untrusted_text=function != self.health,
                timeout=timeout,
            )
            for name, title, description, function in (
                (SEARCH_TOOL, "Search documentation", SEARCH_TEXT, self.search),
                ("knowledge.listDatasets", "List datasets", LIST_TEXT, self.list_datasets),
                ("knowledge.health", "Health of the datasets", HEALTH_TEXT, self.health),
            )
        ]

    @hookimpl
    def wrap_tool_call(self, call_next: ToolHandler) -> ToolHandler:
        """Log searches with invalid arguments, whether the host or the service rejects them."""

        async def handle(call: ToolCall) -> ToolResult:
            if call.tool != SEARCH_TOOL:
                return await call_next(call)
            began = perf_counter()
            result = await call_next(call)
            if (result.structured or {}).get("error_type") == InvalidInputError.error_type:
                log_search(
                    self.context.log,
                    call.arguments.get("dataset"),
                    call.arguments.get("query"),
                    began=began,
                    outcome=InvalidInputError.error_type,
                    count=0,
                )
            return result

        return handle

    @hookimpl
    def register_commands(self) -> list[click.Command]:
        """Return the commands of ``standards-mcp knowledge``."""
        from .build_commands import build_commands  # noqa: PLC0415  - unused by a server
        from .commands import dataset_commands  # noqa: PLC0415

        return [*build_commands(self), *dataset_commands(self)]

    async def search(self, dataset: DatasetId, query: Query, top_k: TopK = None) -> SearchAnswer:
        """Return the passages of a dataset that answer a query."""
        return await self._service.search(dataset, query, top_k)

    async def list_datasets(self, include_errors: IncludeErrors = False) -> ListAnswer:  # noqa: FBT002  an argument of a tool
        """Return the datasets."""
        return await self._service.datasets(include_errors=include_errors)

    async def health(self) -> HealthAnswer:
        """Return the state of the datasets and the workers."""
        return await self._service.health()

    async def complete_dataset(self, typed: str, _: Mapping[str, str]) -> list[str]:
        """Return the dataset ids that begin with *typed*."""
        return await self._service.dataset_ids(typed)

    async def complete_path(self, typed: str, arguments: Mapping[str, str]) -> list[str]:
        """Return the document paths that contain *typed*."""
        return await self._service.document_paths(arguments.get("dataset", ""), typed)

    @resource(
        "knowledge://{dataset}/{+path}",
        name="document",
        title="A document of a dataset",
        mime_type="text/markdown",
        complete={"dataset": complete_dataset, "path": complete_path},
    )
    async def document(self, dataset: str, path: str) -> str:
        """Read a whole document that a search has cited, by its dataset and its path."""
        return await self._service.document(dataset, path)
