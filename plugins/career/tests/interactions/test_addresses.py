"""Addresses of Redis: the forms that are read, and those that are refused."""

from __future__ import annotations

import pytest
from redis.connection import parse_url

from standards_mcp_career.addresses import RedisAddress


@pytest.mark.parametrize(
    ("text", "shown", "parts"),
    [
        ("redis://host", "host:6379", {"host": "host"}),
        ("redis://host:1/15", "host:1", {"host": "host", "port": 1, "db": 15}),
        ("redis://[::1]:65535", "[::1]:65535", {"host": "::1", "port": 65535}),
        ("redis://:p%2Fw@host", "host:6379", {"host": "host", "password": "p/w"}),
        ("redis://u@host", "host:6379", {"host": "host", "username": "u"}),
        ("rediss://u:p%3Aq@host/0", "host:6379", {"username": "u", "password": "p:q", "db": 0}),
        ("tcp://host:7", "host:7", {"host": "host", "port": 7}),
        ("unix:///run/redis.sock", "/run/redis.sock", {"path": "/run/redis.sock"}),
        ("unix:///a%20b?db=3", "/a b", {"path": "/a b", "db": 3}),
    ],
)
def test_each_form_is_read(text: str, shown: str, parts: dict[str, object]):
    address = RedisAddress.parse(text)
    assert address.display_name == shown
    assert parse_url(address.url).items() >= parts.items()
    assert "p%2Fw" not in repr(address)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "host",
        "host:6379",
        "http://host",
        "REDIS://host",
        "redis://",
        "redis://:6379",
        "redis://host:",
        "redis://host:x",
        "redis://host:0",
        "redis://host:65536",
        "redis://host:٣",
        "redis://host/",
        "redis://host/x",
        "redis://host/-1",
        "redis://host/1/2",
        "redis://host?db=1",
        "redis://host#1",
        "redis://ho st",
        "redis://host\n",
        "redis://[::1",
        "redis://user:pass@word@host",
        "tcp://host/1",
        "tcp://u:p@host",
        "tcp://host/",
        "tcps://host",
        "unix://",
        "unix://relative",
        "unix:///a?db=",
        "unix:///a?db=x",
        "unix:///a?other=1",
    ],
)
def test_all_else_is_refused_with_the_forms_and_without_the_text(text: str):
    with pytest.raises(ValueError, match=r"redis://.*rediss://.*tcp://.*unix://.*%40") as raised:
        RedisAddress.parse(text)
    for part in ("u:p", "host/1/2", "word@"):
        assert part not in str(raised.value)
    assert "://" in str(raised.value)
