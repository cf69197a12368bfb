"""An OpenID provider that can be told to misbehave, and a browser without pictures."""

from __future__ import annotations

import base64
import hashlib
import http.server
import json
import time
import uuid
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from http.cookies import SimpleCookie
from typing import Any
from urllib.parse import parse_qs, parse_qsl, urlencode, urlsplit

import httpx2
import jwt
from cryptography.hazmat.primitives.asymmetric import rsa

from standards_mcp import CallContext, Plugin, tool

from .http import patient_client
from .web_server import QuietHandler

KEYS = {kid: rsa.generate_private_key(65537, 2048) for kid in ("one", "two")}
CLIENT, SECRET = "standards", "a secret of the service"
LOGOUT = "http://schemas.openid.net/event/backchannel-logout"
PAGE = {"accept": "text/html"}


class Provider(http.server.ThreadingHTTPServer):
    """An OpenID provider on a port of this machine, which signs in everybody as ``ann``.

    Attributes:
        metadata: Changes of its metadata.
        claims: Changes of its ID tokens; None removes a claim.
        user_info: What it says of the person apart from that.
        answer: Changes of the query with which browsers come back.
        tokens: Changes of its answer with tokens.
        kid: The key with which it signs.
        kids: The keys that it shows.
        algorithm: How it signs.
        is_down: It answers with an error of its own.
        checks_pkce: It wants the verifier of the browser's sign-in.
        is_public: The service has no secret there.
        asked: The paths that were asked for.
        codes: The sign-ins that wait for their code to come back.
    """

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.metadata: dict[str, Any] = {}
        self.claims: dict[str, Any] = {}
        self.user_info: dict[str, Any] = {"sub": "ann"}
        self.answer: dict[str, str | None] = {}
        self.tokens: dict[str, Any] = {}
        self.kid, self.kids, self.algorithm = "one", ["one"], "RS256"
        self.is_down, self.checks_pkce, self.is_public = False, True, False
        self.asked: list[str] = []
        self.codes: dict[str, dict[str, str]] = {}

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def described(self) -> dict[str, Any]:
        paths = {
            "authorization_endpoint": "authorize",
            "token_endpoint": "token",
            "userinfo_endpoint": "userinfo",
            "end_session_endpoint": "end",
            "jwks_uri": "keys",
        }
        return {
            "issuer": self.url,
            **{name: f"{self.url}/{path}" for name, path in paths.items()},
            "authorization_response_iss_parameter_supported": True,
            "code_challenge_methods_supported": ["S256"],
        } | self.metadata

    def public_keys(self) -> dict[str, Any]:
        keys = {
            kid: jwt.algorithms.RSAAlgorithm.to_jwk(KEYS[kid].public_key(), as_dict=True)
            for kid in self.kids
        }
        return {"keys": [{**key, "kid": kid} for kid, key in keys.items()]}

    def authorize(self, query: dict[str, str]) -> str:
        """Return the address to which a browser comes back."""
        code = uuid.uuid4().hex
        self.codes[code] = query
        answer = {"code": code, "state": query["state"], "iss": self.url} | self.answer
        sent = {name: value for name, value in answer.items() if value is not None}
        return f"{query['redirect_uri']}?{urlencode(sent)}"

    def logout_token(self, **claims: Any) -> str:
        """Return the token by which it tells that ``ann`` has signed out; None removes a claim."""
        now = int(time.time())
        usual = {"iss": self.url, "aud": CLIENT, "sub": "ann", "iat": now, "exp": now + 120}
        usual |= {"jti": uuid.uuid4().hex, "events": {LOGOUT: {}}}
        sent = {name: value for name, value in (usual | claims).items() if value is not None}
        return jwt.encode(sent, KEYS[self.kid], "RS256", {"kid": self.kid, "typ": "logout+jwt"})

    def exchange(self, form: dict[str, str], authorization: str) -> dict[str, Any] | None:
        """Return the tokens for a code, or None if the code is not valid."""
        basic = base64.b64encode(f"{CLIENT}:{SECRET.replace(' ', '%20')}".encode()).decode()
        begun = self.codes.pop(form.get("code", ""), None)
        verifier = hashlib.sha256(form["code_verifier"].encode()).digest()
        challenge = base64.urlsafe_b64encode(verifier).decode().rstrip("=")
        is_right = begun is not None and begun["redirect_uri"] == form["redirect_uri"]
        is_known = authorization == f"Basic {basic}"
        if self.is_public:
            is_known = not authorization and form["client_id"] == CLIENT
        if not is_right or not is_known:
            return None
        if self.checks_pkce and begun["code_challenge"] != challenge:
            return None
        now = int(time.time())
        claims = {"iss": self.url, "aud": CLIENT, "sub": "ann", "iat": now, "exp": now + 300}
        claims |= {"nonce": begun["nonce"], "groups": ["teachers"], "name": "Ann Example"}
        claims |= self.claims
        sent = {name: value for name, value in claims.items() if value is not None}
        key = SECRET * 2 if self.algorithm.startswith("HS") else KEYS[self.kid]
        key = None if self.algorithm == "none" else key
        id_token = jwt.encode(sent, key, self.algorithm, {"kid": self.kid})
        return {"access_token": "at", "token_type": "Bearer", "id_token": id_token} | self.tokens


class _Handler(QuietHandler):
    server: Provider

    def do_GET(self) -> None:  # noqa: N802
        parts = urlsplit(self.path)
        self.server.asked.append(parts.path)
        if self.server.is_down:
            self.reply(503)
        elif parts.path == "/authorize":
            self.reply(303, location=self.server.authorize(dict(parse_qsl(parts.query))))
        else:
            pages = {
                "/.well-known/openid-configuration": self.server.described,
                "/keys": self.server.public_keys,
                "/userinfo": lambda: self.server.user_info,
            }
            self.reply(200, json.dumps(pages[parts.path]()).encode())

    def do_POST(self) -> None:  # noqa: N802
        self.server.asked.append(self.path)
        body = self.rfile.read(int(self.headers["content-length"])).decode()
        form = {name: values[-1] for name, values in parse_qs(body).items()}
        tokens = None
        if not self.server.is_down:
            tokens = self.server.exchange(form, self.headers.get("authorization", ""))
        status = 503 if self.server.is_down else 200 if tokens else 400
        self.reply(status, json.dumps(tokens or {"error": "invalid_grant"}).encode())


class Browser:
    """Keeps cookies of one host as a browser does, and follows redirects one by one.

    The client's own jar would not send secure cookies to 127.0.0.1 without TLS, as browsers do.

    Attributes:
        url: The address of the host, as the browser knows it.
        cookies: The cookies by their names.

    Args:
        server: Where a proxy at this address passes requests on to, if there is one.
    """

    def __init__(self, url: str, server: str = "") -> None:
        self.url, self._server = url, server or url
        self.cookies = dict[str, str]()

    async def get(self, url: str, **headers: str) -> httpx2.Response:
        return await self.request("GET", url, headers=headers)

    async def post(self, path: str, **headers: str) -> httpx2.Response:
        own = {"origin": self.url, "sec-fetch-site": "same-origin"}
        return await self.request("POST", path, headers=own | headers)

    async def request(self, method: str, url: str, **options: Any) -> httpx2.Response:
        url = self.url + url if url.startswith("/") else url
        headers = PAGE | options.pop("headers", {})
        if url.startswith(self.url) and self.cookies:
            headers["cookie"] = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        if url.startswith(self.url):
            headers["host"] = urlsplit(self.url).netloc
            url = self._server + url.removeprefix(self.url)
        async with patient_client() as http:
            response = await http.request(method, url, headers=headers, **options)
        for line in response.headers.get_list("set-cookie"):
            ((name, morsel),) = SimpleCookie(line).items()
            assert name.startswith("__Host-"), line
            assert morsel["path"] == "/", line
            assert not morsel["domain"], line
            assert morsel["secure"], line
            assert morsel["httponly"], line
            assert morsel["samesite"] == "lax", line
            self.cookies.pop(name, None)
            if morsel["max-age"] != "0":
                self.cookies[name] = morsel.value
        return response

    async def leave_for_provider(self, page: str = "/admin") -> str:
        """Open a page, and return the address of the provider to which it leads."""
        asked = await self.get(page)
        assert asked.status_code == 303, asked.text
        begun = await self.get(asked.headers["location"])
        assert begun.status_code == 303, begun.text
        return str(begun.headers["location"])

    async def come_back(self, page: str = "/admin") -> str:
        """Sign in at the provider, and return the address to which it leads back."""
        answer = await self.get(await self.leave_for_provider(page))
        assert answer.status_code == 303, answer.text
        return str(answer.headers["location"])

    async def sign_in(self, page: str = "/admin") -> httpx2.Response:
        """Open a page, sign in for it, and return the last answer of the sign-in."""
        return await self.get(await self.come_back(page))


class DeskPlugin(Plugin):
    @tool(read_only=True)
    async def look(self, context: CallContext) -> str:
        """Look."""
        return context.caller

    @tool
    async def drop(self) -> str:
        """Drop."""
        return "dropped"


Serve = Callable[..., AbstractAsyncContextManager[Browser]]
