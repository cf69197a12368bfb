"""Addresses of Redis: the forms that are read, and those that are refused."""

from __future__ import annotations

import re

import pytest

from standards_mcp_career.redis_address import RedisAddress, parse_address


@pytest.mark.parametrize(
    ("text", "expected", "shown"),
    [
        ("redis://host", RedisAddress("host"), "host:6379"),
        ("redis://host:1/15", RedisAddress("host", 1, 15), "host:1"),
        ("redis://[::1]:65535", RedisAddress("::1", 65535), "[::1]:65535"),
        ("redis://:p%2Fw@host", RedisAddress("host", 6379, 0, None, "p/w"), "host:6379"),
        ("redis://u@host", RedisAddress("host", username="u"), "host:6379"),
        (
            "rediss://u:p:q@host/0",
            RedisAddress("host", 6379, 0, "u", "p:q", is_encrypted=True),
            "host:6379",
        ),
        ("tcp://host:7", RedisAddress("host", 7), "host:7"),
        ("unix:///run/redis.sock", RedisAddress(path="/run/redis.sock"), "/run/redis.sock"),
        ("unix:///a%20b?db=3", RedisAddress(path="/a b", db=3), "/a b"),
    ],
)
def test_each_form_is_read(text: str, expected: RedisAddress, shown: str):
    found = parse_address(text)
    assert found == expected
    assert str(found) == shown
    assert "p/w" not in repr(found)


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
        "tcp://host/1",
        "tcp://u:p@host",
        "tcp://host/",
        "unix://",
        "unix://relative",
        "unix:///a?db=",
        "unix:///a?db=x",
        "unix:///a?other=1",
    ],
)
def test_all_else_is_refused_with_the_forms_and_without_the_text(text: str):
    with pytest.raises(ValueError, match=r"redis://.*rediss://.*tcp://.*unix://") as raised:
        parse_address(text)
    assert "u:p" not in str(raised.value)
    assert "host/1/2" not in str(raised.value)


@pytest.mark.parametrize(
    ("text", "mistake"),
    [
        ("", "is empty"),
        ("host:6379", "has no scheme"),
        ("http://host", "scheme is unknown"),
        ("redis://host:65536", "port is not a number from 1 to 65535"),
        ("redis://host/x", "database after the slash"),
        ("redis://user:pass@word@host", "must be encoded"),
        ("redis://:6379", "host is missing"),
        ("tcp://host/1", "host and a port only"),
        ("unix://relative", "not absolute"),
    ],
)
def test_an_address_that_is_refused_is_told_with_its_mistake(text: str, mistake: str):
    with pytest.raises(ValueError, match=mistake) as raised:
        parse_address(text)
    assert not re.search(r"://[^ ]*@", str(raised.value))  # the host would mask it
    assert "word" not in str(raised.value).lower().replace("password", "")
