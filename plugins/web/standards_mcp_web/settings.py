"""The settings ``[plugins.web]``."""

from typing import Annotated, Final, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from standards_mcp import ApiKey, PluginSettings, ServiceUrl, Variable, is_unencrypted

BRAVE: Final = "https://api.search.brave.com"


def _encrypted(url: str) -> str:
    if is_unencrypted(url):
        raise ValueError("the key would be sent unencrypted: use https://")
    return url


class WebSettings(PluginSettings):
    """Settings.

    Attributes:
        provider: The search engine, brave or searxng. Given by SEARCH_PROVIDER.
        api_key: The key for Brave. Given by SEARCH_API_KEY.
        base_url: The address of Brave's API.
        searxng_url: The address of a SearXNG that answers in JSON; searxng needs it.
        timeout: Seconds for one search, including retries.
        rate_limit: Maximum rate of requests to the provider for all callers, such as 10/minute.
            Cached answers do not count.
        cache_ttl: Seconds to keep an answer; 0 disables the cache.
        cache_size: Maximum number of cached answers.
    """

    provider: Annotated[Literal["brave", "searxng"], Variable("SEARCH_PROVIDER")] = "brave"
    api_key: Annotated[ApiKey | None, Variable("SEARCH_API_KEY")] = None
    base_url: Annotated[ServiceUrl, AfterValidator(_encrypted)] = BRAVE
    searxng_url: ServiceUrl | None = None
    timeout: float = Field(20, gt=0, le=300)
    rate_limit: str = Field("10/minute", pattern=r"^[1-9]\d{0,5}/(second|minute|hour|day)$")
    cache_ttl: float = Field(300, ge=0)
    cache_size: int = Field(100, ge=1, le=100_000)

    @model_validator(mode="after")
    def _has_address(self) -> Self:
        if self.provider == "searxng" and self.searxng_url is None:
            raise ValueError('provider "searxng" needs searxng_url, the address of a SearXNG')
        return self
