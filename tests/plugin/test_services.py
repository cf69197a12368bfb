"""Settings that name a service: its address, and the key for it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr, ValidationError

from standards_mcp import ApiKey, PluginSettings, ServiceUrl, is_unencrypted, may_use_proxy


class Settings(PluginSettings):
    """Settings.

    Attributes:
        url: An address.
        key: A key.
    """

    url: ServiceUrl = "https://example.org"
    key: ApiKey | None = None


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("https://example.org", "https://example.org"),
        ("http://127.0.0.1:6333/", "http://127.0.0.1:6333"),
        ("https://example.org/api/v1/", "https://example.org/api/v1"),
    ],
)
def test_an_address_is_kept_without_a_slash_at_its_end(given: str, kept: str):
    assert Settings(url=given).url == kept


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ("example.org", "begins with https:// or http:// and has a host"),
        ("ftp://example.org", "begins with https:// or http:// and has a host"),
        ("https://example.org:70000", "check its host and its port"),
        ("https://example.org/\x1b", "no white space and no control characters"),
        ("https://example.org?key=opensesame", "no query"),
        ("https://ann:opensesame@example.org", "no query, user name and password"),
    ],
)
def test_what_is_no_address_of_a_service_is_refused_with_the_reason(given: str, reason: str):
    with pytest.raises(ValidationError) as refused:
        Settings(url=given)
    (error,) = refused.value.errors()
    assert reason in error["msg"]
    assert "opensesame" not in error["msg"]


@given(st.text(min_size=1).map(lambda text: f" {text}\n"))
def test_a_key_is_what_a_header_can_carry_or_refused_without_being_shown(text: str):
    try:
        key = Settings(key=SecretStr(text)).key
    except ValidationError as refused:
        assert "an invalid character" in str(refused)  # noqa: PT017  - either outcome is right
    else:
        assert key is not None
        assert key.get_secret_value().encode("ascii") == text.strip().encode("ascii")


@pytest.mark.parametrize(
    ("url", "unencrypted", "proxied"),
    [
        ("http://example.org", True, True),
        ("https://example.org", False, True),
        ("http://localhost:8000", False, False),
        ("https://localhost:8000", False, True),
        ("HTTP://127.0.0.1", False, False),
        ("http://127.0.0.1.example.org", True, True),
    ],
)
def test_plain_http_goes_unencrypted_and_by_proxies_but_to_this_machine(
    url: str, *, unencrypted: bool, proxied: bool
):
    assert (is_unencrypted(url), may_use_proxy(url)) == (unencrypted, proxied)
