"""The page of tokens: list them, make new ones, change when they expire, and revoke them."""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import urlencode

from pydantic import ValidationError
from starlette.datastructures import ImmutableMultiDict
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from standards_mcp.transports import (
    ADMIN,
    ALL,
    METRICS,
    AuthSettings,
    Host,
    Principal,
    Scope,
    Settings,
    TokenSection,
    with_checked_values,
)
from standards_mcp_service.authorization import token_name
from standards_mcp_service.bodies import read_form
from standards_mcp_service.tokens import (
    change_of_expiry,
    creation,
    in_utc,
    new_token,
    revocation,
    token_hash,
)

from .actions import RefusedError
from .controls import ConfigChange

if TYPE_CHECKING:
    from .pages import Admin

_BUILT_IN: Final = {
    ADMIN: "this page, where its holder can make tokens with any scope",
    METRICS: "/metrics",
    ALL: "all that is served, this page and /metrics",
}
_Form = ImmutableMultiDict[str, str]


class TokenRow(NamedTuple):
    """A token on the page.

    Attributes:
        place: Where it is defined: a file with the line, or the name of another source.
        in_file: True if it is defined in the file that the page changes.
        is_yours: True if the reader of the page uses it.
    """

    name: str
    section: TokenSection
    place: str
    in_file: bool
    is_yours: bool


class TokensPage:
    """Show the tokens of the configuration, and change them. Their secrets are not known here."""

    def __init__(self, host: Host, admin: Admin) -> None:
        self._host, self._admin = host, admin

    async def get(
        self,
        request: Request,
        principal: Principal,
        status: int = 200,
        problem: str = "",
        entered: _Form | None = None,
    ) -> Response:
        """List the tokens, and show the form for a new one."""
        del principal
        auth = self._host.settings.server.auth
        return self._admin.show(
            request,
            "tokens.html",
            status,
            tokens=self._rows(token_name(request)),
            is_required=auth.is_required,
            scopes=_scopes(auth),
            problem=problem,
            changed=request.query_params.get("changed", ""),
            entered=entered or _Form(),
        )

    def _rows(self, own_name: str) -> list[TokenRow]:
        loaded, rows = self._host.loaded, list[TokenRow]()
        for name, section in self._host.settings.server.auth.tokens.items():
            path = ("server", "auth", "tokens", name)
            source = loaded.layers.source(path)
            in_file = source is not None and source.name == str(loaded.file)
            place = loaded.layers.origin(path) or "the settings"
            rows.append(TokenRow(name, section, place, in_file, name == own_name))
        return rows

    async def post(self, request: Request, principal: Principal) -> Response:
        """Make, limit or revoke a token."""
        form = await read_form(request)
        action, name = form.get("action", ""), form.get("name", "").strip()
        secret = new_token()
        try:
            change = self._change_of(action, name, form, secret, token_name(request))
            if question := await self._admin.apply(request, principal, form, change):
                return question
        except RefusedError as exc:
            entered = form if action == "create" else None
            return await self.get(request, principal, 409, str(exc), entered)
        if action == "create":
            return self._admin.show(request, "token.html", name=name, token=secret)
        return RedirectResponse(f"tokens?{urlencode({'changed': name})}", 303)

    def _change_of(
        self, action: str, name: str, form: _Form, secret: str, own_name: str
    ) -> ConfigChange:
        """Return the change that a form asks for.

        Raises:
            RefusedError: A field is not valid.
            HTTPException: The form is not of this page.
        """
        facts: dict[str, object] = {"action": f"auth token {action}", "token": name}
        if action == "create":
            section = _section(name, form, secret, self._host.settings.server.auth)
            facts |= {"scopes": [*section.scopes], "expires": section.expires}
            edit, question = creation(name, section), f"Make the token {name}?"
        elif action in ("expire", "expire now"):
            text = in_utc(datetime.now(UTC)) if action == "expire now" else form.get("expires", "")
            facts["expires"] = expires = _moment(text)
            edit, question = change_of_expiry(name, expires), f"Let the token {name} expire?"
        elif action == "revoke":
            edit, question = revocation(name), f"Revoke the token {name}?"
        else:
            raise HTTPException(400, "This form does not say what to do.")
        sources = self._admin.controls.reloading.sources
        return ConfigChange(
            question,
            facts,
            partial(with_checked_values, sources=sources, values=edit.values, check=edit.check),
            partial(_review, name, own_name),
        )


def _section(name: str, form: _Form, secret: str, auth: AuthSettings) -> TokenSection:
    """Return the table of a new token.

    Raises:
        RefusedError: A field of the form is not valid.
    """
    scopes, expires = form.getlist("scope"), _moment(form.get("expires", ""))
    if not scopes:
        raise RefusedError("Nothing is changed. Choose at least one scope.")
    if unknown := next((scope for scope in scopes if scope not in _scopes(auth)), None):
        raise RefusedError(f"Nothing is changed. There is no scope {unknown!r}, or no longer.")
    section = TokenSection(sha256=token_hash(secret), scopes=tuple(scopes), expires=expires)
    if section.is_expired:
        raise RefusedError("Nothing is changed. The time at which the token expires is past.")
    try:
        AuthSettings(tokens={name: section}, scopes=auth.scopes)
    except ValidationError as exc:
        why = exc.errors()[0]["msg"].removeprefix("Value error, ")
        raise RefusedError(f"Nothing is changed. The name of the token: {why}.") from None
    return section


def _moment(text: str) -> str | None:
    """Return the time of a field as the configuration has it, or None for an empty field.

    Raises:
        RefusedError: The field has no time.
    """
    if not text.strip():
        return None
    try:
        moment = datetime.fromisoformat(text.strip())
        return in_utc(moment if moment.tzinfo else moment.replace(tzinfo=UTC))
    except (ValueError, OverflowError):
        raise RefusedError(
            "Nothing is changed. Give the time as 2026-12-31T23:59, in UTC, or nothing for never."
        ) from None


def _scopes(auth: AuthSettings) -> dict[str, str]:
    """Return the scopes that a token may have, with what they give, in words."""
    own: dict[str, str] = {}
    for name, scope in auth.scopes.items():
        table = scope if isinstance(scope, Scope) else Scope(names=scope)
        profile = [f"only by the profile {table.profile}"] if table.profile else []
        own[name] = ", ".join([*table.names, *profile]) or "no tools"
    return own | _BUILT_IN


def _review(name: str, own_name: str, before: Settings, after: Settings) -> list[str]:
    """Return the effects of a change of a token that must be confirmed.

    Args:
        own_name: The name of the token that the caller uses, or an empty string.
    """
    old, new = before.server.auth, after.server.auth
    token, effects = new.tokens.get(name), list[str]()
    if token is None or token.is_expired:
        effects.append("Requests with this token are refused at once, and its sessions end.")
    if new.is_required and not old.is_required:
        effects.append(
            "From now on, every request needs a token. For this page, the browser asks for it as"
            " the password, with any name."
        )
    may_lose = token is None or token.expires is not None
    if may_lose and name == own_name:
        until = f" It is valid until {token.expires}." if token and not token.is_expired else ""
        effects.append(f"You use this token now.{until} Afterwards you need another one.")
    lasting = _operators(new) - ({name} if may_lose else set())
    if not lasting and (not old.is_required or name in _operators(old)):
        effects.append(
            f"No other token and no group has the scope {ADMIN}: nobody can open this page then."
            f" On the machine of the service, standards-mcp auth token new NAME --scope {ADMIN}"
            " makes a token for it."
        )
    return effects


def _operators(auth: AuthSettings) -> set[str]:
    """Return the names of the valid tokens, and of the groups of people, that open this page."""

    def opens(scopes: Collection[str]) -> bool:
        return ADMIN in scopes or ALL in scopes

    tokens = {
        name for name, token in auth.tokens.items() if opens(token.scopes) and not token.is_expired
    }
    groups = auth.oidc.groups.items() if auth.oidc else ()
    return tokens | {f"the group {name}" for name, scopes in groups if opens(scopes)}
