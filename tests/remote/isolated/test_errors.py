"""Errors of isolated plugins."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from support.hosts import started

from standards_mcp import ApiError
from standards_mcp.config.loading import load_settings
from standards_mcp.host import Host

pytestmark = [pytest.mark.anyio, pytest.mark.processes]
Install = Callable[..., Path]

PLUGIN = """
    from pydantic import SecretStr
    from standards_mcp import ApiError, Plugin, PluginSettings, prompt, tool

    class ShopSettings(PluginSettings):
        key: SecretStr = SecretStr("hunter-4242")

    class ShopPlugin(Plugin[ShopSettings]):
        settings_type = ShopSettings

        @tool(read_only=True)
        def buy(self) -> str:
            '''Buy something.'''
            raise ApiError("Busy.", retry_after=12.5, status=503, details={"key": "hunter-4242"})

        @prompt
        def offer(self) -> str:
            '''Offer something.'''
            return self.buy()
"""


@pytest.mark.parametrize("isolate", [False, True])
async def test_the_data_of_an_error_passes(install: Install, *, isolate: bool):
    install("shop", PLUGIN)
    host = Host(load_settings(overrides={"plugins": {"shop": {"isolate": isolate}}}))
    host.load()
    expected = {"retry_after": 12.5, "status": 503, "details": {"key": "***"}}
    async with started(host):
        structured = (await host.call_tool("buy", {})).structured
        assert structured is not None
        assert structured.items() >= expected.items()
        with pytest.raises(ApiError, match="Busy") as caught:
            await host.content.get_prompt("offer", {})
    assert caught.value.data == expected
