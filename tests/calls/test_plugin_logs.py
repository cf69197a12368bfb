"""What plugins log, in the host's process and in one of their own."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest
from support.hosts import Install, configured, started

from standards_mcp._utils.logs import JsonFormatter

pytestmark = pytest.mark.anyio

PLUGIN = """
    from pydantic import SecretStr
    from standards_mcp import CallContext, Plugin, PluginSettings, tool

    class WordySettings(PluginSettings):
        key: SecretStr = SecretStr("hunter-4242")

    class WordyPlugin(Plugin[WordySettings]):
        settings_type = WordySettings

        @tool(read_only=True)
        async def work(self, call: CallContext) -> str:
            '''Work and tell of it.'''
            self.context.log.debug("too much")
            self.context.log.info(
                "index opened", extra={"size": 3, "odd": object, "with_key": "hunter-4242"})
            self.context.log.getChild("deep").warning("deep down")
            self.context.log.info("in disguise", extra={"plugin": "another"})
            call.add_log_fields(dataset="books", outcome="mine", name="x", level="y")
            call.add_log_fields(odd=object, raw=b"\\xff")
            endless = {}
            endless["itself"] = endless
            try:
                call.add_log_fields(endless=endless)
            except ValueError:
                self.context.log.info("refused")
            return "done"
"""


@pytest.mark.slow
@pytest.mark.parametrize("isolate", [False, True])
async def test_lines_from_info_on_are_heard_with_the_name_of_the_plugin(
    install: Install, caplog: pytest.LogCaptureFixture, *, isolate: bool
):
    install("wordy", PLUGIN)
    caplog.set_level(logging.INFO, "standards_mcp")
    async with started(configured(plugins={"wordy": {"isolate": isolate}})) as host:
        assert (await host.call_tool("work", {})).text == "done"
    lines = [json.loads(JsonFormatter(host.secrets).format(each)) for each in caplog.records]
    told: dict[str, dict[str, Any]] = {line["event"]: line for line in lines}
    opened = told["index opened"]
    assert (opened["level"], opened["plugin"], opened["size"]) == ("info", "wordy", 3)
    assert opened["with_key"] == "***"
    assert told["deep down"]["plugin"] == "wordy"
    assert "too much" not in told
    assert told["in disguise"]["plugin"] == "wordy"
    assert "refused" in told
    call = told["tool call"]
    assert (call["dataset"], call["outcome"], call["level"]) == ("books", "ok", "info")
    assert (call["odd"], call["raw"], "endless" in call) == ("<class 'object'>", "_w==", False)
