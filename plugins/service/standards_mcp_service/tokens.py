"""Create the tokens of the service, and hash them."""

from __future__ import annotations

import hashlib
from secrets import token_urlsafe


def new_token() -> str:
    """Return a new bearer token; with 256 random bits, its plain hash cannot be reversed."""
    return f"smcp_{token_urlsafe(32)}"


def token_hash(token: str) -> str:
    """Return the SHA-256 of a token in hexadecimal digits, as in the configuration."""
    # A slow hash protects words that people choose; these tokens have 256 random bits.
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).hexdigest()
