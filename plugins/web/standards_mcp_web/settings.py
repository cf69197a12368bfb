"""The plugin's table."""

from __future__ import annotations

from typing import Annotated, Final, Literal, Self
from urllib.parse import urlsplit

import httpx2
from pydantic import AfterValidator, Field, SecretStr, model_validator

from standards_mcp import PluginSettings, Variable

BRAVE: Final = "https://api.search.brave.com"
LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")


def _address(url: str) -> str:
    try:
        parts = urlsplit(url)
        # Both raise: this for a wrong port, that for what else the client cannot ask.
        _ = parts.port, httpx2.URL(url)
    except (ValueError, httpx2.InvalidURL):
        raise ValueError("this is no address: check its host and its port") from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("an address begins with https:// or http:// and has a host")
    if parts.query or parts.fragment or "@" in parts.netloc:
        raise ValueError("an address of a service has no query, name and password")
    return url.rstrip("/")


def _sendable(key: SecretStr) -> SecretStr:
    """Return a key without white space around it, if a header can have it."""
    text = key.get_secret_value().strip()
    if not all("!" <= each <= "~" for each in text):
        raise ValueError(
            "the key has a character that no key has, such as a space; copy it again from the "
            "provider's page"
        )
    return SecretStr(text)


def _encrypted(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme != "https" and parts.hostname not in LOOPBACK:
        raise ValueError("the key would be sent unencrypted: use https://")
    return url


class WebSettings(PluginSettings):
    """Settings.

    Attributes:
        provider: Who searches: brave, or searxng. Given by SEARCH_PROVIDER.
        api_key: The key for Brave. Given by SEARCH_API_KEY.
        base_url: The address of Brave's API.
        searxng_url: The address of a SearXNG that answers in JSON; searxng needs it.
        timeout: Seconds for one search, with all attempts.
        rate_limit: How often the provider is asked, by all callers together, such as 10/minute.
            Kept answers do not count.
        cache_ttl: Seconds for which an answer is kept; 0: never.
        cache_size: How many answers are kept.
    """

    provider: Annotated[Literal["brave", "searxng"], Variable("SEARCH_PROVIDER")] = "brave"
    api_key: Annotated[
        Annotated[SecretStr, AfterValidator(_sendable)] | None, Variable("SEARCH_API_KEY")
    ] = None
    base_url: Annotated[str, AfterValidator(_address), AfterValidator(_encrypted)] = BRAVE
    searxng_url: Annotated[str, AfterValidator(_address)] | None = None
    timeout: float = Field(20, gt=0, le=300)
    rate_limit: str = Field("10/minute", pattern=r"^[1-9]\d{0,5}/(second|minute|hour|day)$")
    cache_ttl: float = Field(300, ge=0)
    cache_size: int = Field(100, ge=1, le=100_000)

    @model_validator(mode="after")
    def _has_address(self) -> Self:
        if self.provider == "searxng" and self.searxng_url is None:
            raise ValueError('provider "searxng" needs searxng_url, the address of a SearXNG')
        return self
