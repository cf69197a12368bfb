"""The cookies of people: of begun sign-ins, and of people who have signed in.

They are encrypted, so only services with the same key make and read them. Browsers accept their
prefix ``__Host-`` only from this host itself over TLS, or from a loopback address.
"""

from __future__ import annotations

import base64
import hashlib
import logging
import os
import re
import time
from pathlib import Path
from secrets import token_bytes, token_urlsafe
from typing import Final, TypeVar

import filelock
from cryptography.fernet import Fernet, InvalidToken
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from pydantic import BaseModel, Field, SecretStr, ValidationError
from starlette.requests import HTTPConnection
from starlette.responses import Response

from standards_mcp import ApiError
from standards_mcp.files import FILE_MODE, private_folder
from standards_mcp_service.authorization import Person
from standards_mcp_service.guards import MCP, is_own_page

log = logging.getLogger("standards_mcp.service")

_SIGN_IN: Final = "__Host-standards-mcp-sign-in-"
_PERSON: Final = "__Host-standards-mcp"
_SIGN_IN_SECONDS: Final = 600
_MAX_SIGN_INS: Final = 5
_LEEWAY_SECONDS: Final = 30
"""The clocks of services with the same key may differ by this."""
_LOCK_SECONDS: Final = 5.0
_MAX_COOKIE_CHARS: Final = 3_800
"""Browsers ignore a cookie of more than 4,096 bytes, with its name and attributes."""
_ModelT = TypeVar("_ModelT", bound=BaseModel)


def _random() -> str:
    return token_urlsafe(32)


class Attempt(BaseModel):
    """A begun sign-in.

    Attributes:
        issuer: The provider that gets the browser.
        page: The page to which the person comes back.
        state: Names this sign-in, so that no other browser can finish it.
        nonce: Comes back in the ID token, so that no other sign-in's code counts.
        verifier: The secret of PKCE.
    """

    issuer: str
    page: str
    state: str = Field(default_factory=_random)
    nonce: str = Field(default_factory=_random)
    verifier: str = Field(default_factory=_random)


class Cookies:
    """Set, read and end cookies.

    Args:
        key: Encrypts the cookies; None: a random key, so that a restart ends them.
        identity: The provider and the client, for which the cookies are valid.
        folder: The folder that keeps which sign-ins have ended, for all processes of the machine.
        lifetime: Seconds for which a sign-in is valid.
    """

    def __init__(self, key: SecretStr | None, identity: str, folder: Path, lifetime: float) -> None:
        secret = key.get_secret_value().encode() if key else token_bytes()
        self._attempts = _cipher(secret, f"sign-in {identity}")
        self._people = _cipher(secret, f"person {identity}")
        self._folder, self._lifetime = folder, lifetime

    def begin(self, request: HTTPConnection, response: Response, attempt: Attempt) -> None:
        """Let a browser remember a sign-in that it begins; it may begin several.

        It forgets the oldest ones, since the header with all cookies has a limit, too.
        """
        name_form = re.compile(rf"{_SIGN_IN}[\w-]+", re.ASCII)
        begun = [name for name in request.cookies if name_form.fullmatch(name)]
        # Browsers send the oldest cookie first (RFC 6265, section 5.4).
        for name in begun[: 1 - _MAX_SIGN_INS]:
            _delete(response, name)
        sealed = self._attempts.encrypt(attempt.model_dump_json().encode())
        _set(response, _SIGN_IN + attempt.state, sealed, _SIGN_IN_SECONDS)

    def attempt(self, request: HTTPConnection, state: str) -> Attempt | None:
        """Return the sign-in that this browser has begun, or None."""
        sealed = request.cookies.get(_SIGN_IN + state, "")
        attempt = _unsealed(Attempt, self._attempts, sealed, _SIGN_IN_SECONDS)
        return attempt if attempt and attempt.state == state else None

    def finish(self, response: Response, attempt: Attempt) -> None:
        """Let a browser forget a sign-in that it has begun."""
        _delete(response, _SIGN_IN + attempt.state)

    def sign_in(self, response: Response, person: Person) -> None:
        """Let a browser act for a person.

        Raises:
            ApiError: The cookie would be too long.
        """
        sealed = self._people.encrypt(person.model_dump_json().encode())
        if len(sealed) > _MAX_COOKIE_CHARS:
            raise ApiError("your account has too many groups for a cookie")
        _set(response, _PERSON, sealed, int(self._lifetime))

    def person(self, request: HTTPConnection) -> Person | None:
        """Return the person for whom a browser acts.

        The cookie is for pages. It does not count for MCP clients, nor if another page than the
        service's own wants to change something.
        """
        scope = request.scope
        is_safe = scope["method"] in ("GET", "HEAD") or is_own_page(scope)
        if not is_safe or scope["path"] == MCP:
            return None
        person = _unsealed(Person, self._people, request.cookies.get(_PERSON, ""))
        if person is None or self._has_ended(person):
            return None
        # A shorter lifetime counts at once, also for cookies that were made before.
        remaining = (person.expires_at or 0) - time.time()
        return person if 0 < remaining <= self._lifetime + _LEEWAY_SECONDS else None

    def sign_out(self, response: Response, person: Person) -> None:
        """Let a browser no longer act for a person, nor anybody who has copied its cookie."""
        _delete(response, _PERSON)
        try:
            self.end(person.session, time.time())
        except OSError as exc:
            fields = {"caller": person.client_id, "reason": str(exc)}
            log.warning("a sign-out cannot be kept; a copied cookie stays valid", extra=fields)

    def end(self, key: str, until: float) -> None:
        """Let no browser act any more by some sign-ins, in all processes of the machine.

        Args:
            key: The id of a sign-in, or an `ending_key`.
            until: The time, in seconds since 1970, up to which sign-ins of an `ending_key` end.

        Raises:
            OSError: This cannot be kept.
        """
        file = private_folder(self._folder) / key
        # Processes must not remove or date back what another one is just writing.
        with filelock.FileLock(self._folder.with_suffix(".lock"), _LOCK_SECONDS, FILE_MODE):
            until = max(until, _changed_at(file))
            file.open("ab").close()  # which leaves the time of an older one as it is
            os.utime(file, (until, until))
            oldest = time.time() - self._lifetime - 2 * _LEEWAY_SECONDS
            for ended in self._folder.iterdir():
                if _changed_at(ended) < oldest:
                    ended.unlink(missing_ok=True)

    def _has_ended(self, person: Person) -> bool:
        if (self._folder / person.session).exists():
            return True
        keys = (person.provider_session, ending_key("sub", person.subject or ""))
        return any(key and _changed_at(self._folder / key) >= person.signed_in for key in keys)


def ending_key(kind: str, name: str) -> str:
    """Return the key of what a provider ends: a session (``sid``), or all of a person (``sub``)."""
    return hashlib.sha256(f"{kind} {name}".encode(errors="surrogatepass")).hexdigest()


def _changed_at(file: Path) -> float:
    """Return the time of a file, before all others for none."""
    try:
        return file.stat().st_mtime
    except FileNotFoundError:
        return float("-inf")


def _cipher(secret: bytes, purpose: str) -> Fernet:
    derived = HKDF(SHA256(), 32, None, f"standards-mcp {purpose}".encode()).derive(secret)
    return Fernet(base64.urlsafe_b64encode(derived))


def _unsealed(
    kind: type[_ModelT], cipher: Fernet, sealed: str, seconds: int | None = None
) -> _ModelT | None:
    try:
        return kind.model_validate_json(cipher.decrypt(sealed, seconds))
    except (InvalidToken, ValidationError, ValueError):
        return None


def _set(response: Response, name: str, value: bytes, seconds: int) -> None:
    response.set_cookie(
        name, value.decode(), seconds, path="/", secure=True, httponly=True, samesite="lax"
    )


def _delete(response: Response, name: str) -> None:
    response.delete_cookie(name, path="/", secure=True, httponly=True, samesite="lax")
