"""Tells its secret in errors, in logs, in what it prints and in the reason of its failure."""

import contextlib
import logging

from pydantic import SecretStr

from standards_mcp import InvalidInputError, Plugin, PluginSettings, Tool, hookimpl


class Settings(PluginSettings):
    key: SecretStr = SecretStr("")


class BlurtsPlugin(Plugin[Settings]):
    settings_type = Settings

    @hookimpl
    def register_tools(self):
        key = self.settings.key.get_secret_value()

        def blurt() -> str:
            logging.getLogger("blurts").error("the key is %s", key)
            raise InvalidInputError(f"the key is {key}")

        def crash() -> str:
            raise RuntimeError(f"the key is {key}")

        return [
            Tool(name="blurt", description="Blurt.", function=blurt),
            Tool(name="crash", description="Crash.", function=crash),
        ]

    @hookimpl
    @contextlib.asynccontextmanager
    async def lifespan(self):
        yield
        raise RuntimeError(f"the key is {self.settings.key.get_secret_value()}")
