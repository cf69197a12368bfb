"""The plugin in real processes: the command, and the REST API of the service."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest
from support.http import bearer, patient_client, served_over_http
from support.schemathesis import check_openapi
from support.waiting import WAIT, let_time_pass, until

from standards_mcp.host import Host
from standards_mcp_service.tokens import new_token, token_hash
from standards_mcp_web.plugin import WebPlugin

pytestmark = pytest.mark.anyio
MakeHost = Callable[..., Host]
Run = Callable[..., subprocess.CompletedProcess[str]]
KEY = "BSA-opensesame-0123456789"
ANN, BOB = new_token(), new_token()


@pytest.fixture
def run(install: Callable[..., Path], tmp_path: Path, engine: Any) -> Run:
    """Return a function that runs ``standards-mcp web`` before the engine."""
    install("web", "from standards_mcp_web.plugin import WebPlugin as WebPlugin")
    file = tmp_path / "config.toml"
    state = json.dumps(str(tmp_path / "state"))
    file.write_text(
        f'state_dir = {state}\n[plugins.web]\nbase_url = "{engine.url}"\n', encoding="utf-8"
    )

    def run(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "standards_mcp", "--config", str(file), "web", *arguments],
            capture_output=True,
            text=True,
            check=False,
            cwd=tmp_path,
            env={**os.environ, "HOME": str(tmp_path), **variables},
        )

    return run


@pytest.mark.slow
def test_the_main_job_takes_one_command(run: Run, engine: Any):
    engine.body = {
        "web": {
            "results": [
                {
                    "title": "Oat milk",
                    "url": "https://example.org/oats",
                    "description": "A <strong>litre</strong>.",
                    "product": {"offers": [{"price": "2.50", "priceCurrency": "EUR"}]},
                }
            ]
        }
    }
    shown = run("search", "oat milk", "--top", "1", SEARCH_API_KEY=KEY)
    page = "1. Oat milk\n   https://example.org/oats\n   A litre.\n   2.50 EUR\n"
    assert (shown.returncode, shown.stdout) == (0, page)
    assert engine.asked[0][1]["x-subscription-token"] == KEY
    told = run("search", "oat milk", "--json", SEARCH_API_KEY=KEY)
    assert json.loads(told.stdout)["results"][0]["price"] == "2.50 EUR"
    engine.body = {}
    assert run("search", "oat milk", SEARCH_API_KEY=KEY).stdout == "No pages were found.\n"


@pytest.mark.slow
def test_a_command_that_cannot_search_says_why_and_fails(run: Run, engine: Any):
    without = run("search", "oat milk", SEARCH_API_KEY="")
    assert (without.returncode, engine.asked) == (1, [])
    assert "SEARCH_API_KEY is not set" in without.stdout
    engine.status = [401]
    refused = run("search", "oat milk", SEARCH_API_KEY=KEY)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert refused.stderr.startswith("Brave refuses the key. Set a valid one by SEARCH_API_KEY")
    for arguments in (("search",), ("search", "x", "--top", "6")):
        assert run(*arguments).returncode == 2


@pytest.mark.slow
def test_the_provider_is_named_by_the_variable_of_its_name(run: Run, engine: Any):
    engine.body = {"results": []}
    refused = run("search", "oat milk", SEARCH_PROVIDER="searxng")
    assert refused.returncode == 1
    assert "needs searxng_url" in refused.stderr
    address = {"STANDARDS_MCP_PLUGINS__WEB__SEARXNG_URL": engine.url}
    assert run("search", "x", SEARCH_PROVIDER="searxng", **address).returncode == 1
    assert engine.asked[0][0] == {"q": ["x"], "format": ["json"]}


async def test_programs_get_each_outcome_by_its_status(make_host: MakeHost, engine: Any):
    tokens = {
        "ann": {"sha256": token_hash(ANN)},
        "bob": {"sha256": token_hash(BOB), "scopes": []},
    }
    options = {"base_url": engine.url, "api_key": KEY, "rate_limit": "3/minute", "timeout": WAIT}
    host = make_host(
        {"web": WebPlugin},
        server={"port": 0, "rest": True, "auth": {"tokens": tokens}},
        plugins={"web": options},
    )
    async with served_over_http(host) as url, patient_client(base_url=url, timeout=None) as client:

        async def post(token: str = ANN, **body: Any) -> httpx2.Response:
            return await client.post("/web.search", json=body, headers=bearer(token))

        found = await post(query="oat milk", top_k=2)
        assert (found.status_code, len(found.json()["results"])) == (200, 2)
        engine.status = [404]
        refused = await post(query="other")
        assert (refused.status_code, refused.json()["error_type"]) == (502, "api_error")
        engine.pause = 2
        late = asyncio.ensure_future(post(query="late"))
        await until(lambda: len(engine.asked) == 3)
        let_time_pass()
        assert (await late).status_code == 504
        limited = await post(query="one too many")
        assert (limited.status_code, limited.json()["error_type"]) == (429, "rate_limited")
        assert 1 <= int(limited.headers["retry-after"]) <= 60
        assert (await post(query="")).status_code == 400
        assert (await client.post("/web.search", json={"query": "x"})).status_code == 401
        assert (await post(BOB, query="x")).status_code == 404, "it does not see the tool"
        (tool,) = (await client.get("/tools", headers=bearer(ANN))).json()["tools"]
        assert {"name", "description", "input_schema", "output_schema"} <= tool.keys()


@pytest.mark.slow
async def test_schemathesis_finds_nothing(make_host: MakeHost, engine: Any, tmp_path: Path):
    options = {"base_url": engine.url, "api_key": KEY, "rate_limit": "99999/second"}
    host = make_host({"web": WebPlugin}, server={"port": 0, "rest": True}, plugins={"web": options})
    # No schema can say that a text has at most 50 words.
    accepted = ("2xx", "400")
    async with served_over_http(host) as url:
        await check_openapi(url, tmp_path, accepted)
