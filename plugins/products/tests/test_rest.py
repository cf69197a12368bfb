"""The tool by the REST API of the service."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest
from support.http import bearer, served_over_http
from support.schemathesis import check_openapi

from standards_mcp_products.plugin import ProductsPlugin
from standards_mcp_service.tokens import new_token, token_hash

pytestmark = [pytest.mark.anyio, pytest.mark.slow]
Build = MakeHost = Callable[..., Any]
Row = dict[str, Any]
ANN, BOB = new_token(), new_token()


async def test_programs_get_each_outcome_by_its_status(
    make: Build, make_host: MakeHost, lamp: Row, soap: Row, state: Path
):
    tokens = {"ann": {"sha256": token_hash(ANN)}, "bob": {"sha256": token_hash(BOB), "scopes": []}}
    host = make_host(
        {"products": ProductsPlugin},
        server={"port": 0, "rest": True, "auth": {"tokens": tokens}},
        tools={"overrides": {"rag.search": {"rate_limit": "6/minute"}}},
    )
    make(lamp, soap)
    async with served_over_http(host) as url, httpx2.AsyncClient(base_url=url) as client:

        async def post(token: str = ANN, **body: Any) -> httpx2.Response:
            return await client.post("/rag.search", json=body, headers=bearer(token))

        found = await post(query="a lamp", top_k=1)
        assert (found.status_code, found.json()["results"][0]["doc_id"]) == (200, "lamp")
        empty = await post(query="a lamp", filters={"price": {"$gt": 99}})
        assert (empty.status_code, empty.json()["results"]) == (200, [])
        wrong = await post(query="a lamp", filters={"price": {"$lte": "9"}})
        assert (wrong.status_code, wrong.json()["error_type"]) == (400, "invalid_input")
        assert wrong.json()["message"] == "filters.price.$lte: a number is needed"
        of_json = bearer(ANN) | {"content-type": "application/json"}
        broken = await client.post("/rag.search", content=b"{", headers=of_json)
        assert broken.status_code == 400
        assert (await client.post("/rag.search", json={"query": "x"})).status_code == 401
        assert (await post(BOB, query="x")).status_code == 404, "it does not see the tool"
        (state / "active.json").unlink()
        gone = await post(query="a lamp")
        assert (gone.status_code, gone.json()["error_type"]) == (502, "api_error")
        (tool,) = (await client.get("/tools", headers=bearer(ANN))).json()["tools"]
        assert {"name", "description", "input_schema", "output_schema"} <= tool.keys()
        limited = [await post(query="a lamp") for _ in range(6)][-1]
        assert limited.status_code == 429
        assert 1 <= int(limited.headers["retry-after"]) <= 60


async def test_schemathesis_finds_nothing(
    make: Build, make_host: MakeHost, lamp: Row, tmp_path: Path
):
    make(lamp)
    host = make_host({"products": ProductsPlugin}, server={"port": 0, "rest": True})
    # No schema that clients take can say what filters may be: it would recurse.
    accepted = ("2xx", "400")
    async with served_over_http(host) as url:
        await check_openapi(url, tmp_path, accepted)
