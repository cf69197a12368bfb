"""Bearer tokens of the service over HTTP, and the hashes that are kept of them."""

from __future__ import annotations

import hashlib
import secrets


def new_token() -> str:
    """Return a new token, with 256 random bits: so many that a plain hash cannot be reversed."""
    return f"smcp_{secrets.token_urlsafe(32)}"


def token_hash(token: str) -> str:
    """Return the SHA-256 of a token in hexadecimal digits, as it stands in the configuration."""
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).hexdigest()
