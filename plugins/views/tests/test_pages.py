"""The documents of the views: one file each, small, without a network, and strict."""

from __future__ import annotations

import base64
import hashlib
import re
from importlib.resources import files

import pytest

from standards_mcp_views.pages import NAMES, explore_page, page

MAX_SIZE = 60_000
each_view = pytest.mark.parametrize("name", NAMES)


@each_view
def test_a_view_is_one_small_document(name: str):
    text = page(name)
    assert text.startswith("<!doctype html>")
    assert len(text.encode()) <= MAX_SIZE
    assert not re.search(r'(src|href)\s*=|url\(|@import|import\s*[("]', text)


def test_the_page_in_a_browser_is_as_small_and_reaches_only_its_server():
    text, policy = explore_page()
    assert len(text.encode()) <= MAX_SIZE
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    assert (rules["default-src"], rules["connect-src"]) == ("'none'", "'self'")
    assert "unsafe" not in policy
    assert not re.search(r" on[a-z]+=| style=", text)


@each_view
def test_the_policy_allows_exactly_the_own_script_and_style(name: str):
    text = page(name)
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]+)"', text)
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    assert rules["default-src"] == "'none'"
    for tag in ("script", "style"):
        (content,) = re.findall(rf"<{tag}>(.*?)</{tag}>", text, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert rules[f"{tag}-src"] == f"'sha256-{digest}'"


def test_no_text_becomes_markup():
    scripts = (files("standards_mcp_views") / "web").iterdir()
    text = "".join(file.read_text(encoding="utf-8") for file in scripts)
    assert not re.search(r"innerHTML|outerHTML|insertAdjacent|document\.write|\beval\b", text)
    assert "window.openai" not in text
