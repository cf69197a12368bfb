"""Has settings whose validators, defaults and secrets raise."""

from pydantic import ConfigDict, SecretStr, field_validator

from standards_mcp import Plugin, PluginSettings


class Settings(PluginSettings):
    key: SecretStr = SecretStr("half \ud83d")

    @field_validator("key")
    @classmethod
    def fail(cls, value):
        raise KeyboardInterrupt(value)

    model_config = ConfigDict(validate_default=True)


class SettlesPlugin(Plugin[Settings]):
    settings_type = Settings
