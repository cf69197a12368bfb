"""An authorization server on Authlib, and an MCP server that takes its tokens."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import flask
import jwt
import pytest
from authlib.integrations.flask_oauth2 import AuthorizationServer
from authlib.oauth2.rfc6749 import grants
from authlib.oauth2.rfc6749.errors import InvalidGrantError, InvalidRequestError
from authlib.oauth2.rfc7636 import CodeChallenge
from cryptography.hazmat.primitives.asymmetric import rsa
from support.hosts import MakeHost
from support.http import served_over_http
from werkzeug.serving import WSGIRequestHandler, make_server

from standards_mcp import ApiError, CallContext, Plugin, prompt, resource, tool
from standards_mcp.calls.context import CALLER
from standards_mcp_service import authorization

KEY = rsa.generate_private_key(65537, 2048)
SECRET = "a secret of the client/+"  # noqa: S105
UPSTREAM, HOST = "https://upstream.example.org/mcp", "https://host.example.org/mcp"
METHODS = ["client_secret_basic", "none"]
EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"


ISSUED: list[Issuer] = []


class Quiet(WSGIRequestHandler):
    def log(self, *_: Any) -> None: ...


class Registered:
    """The client ``host`` with a secret, and any other one without."""

    def __init__(self, name: str) -> None:
        self.client_id = name

    def get_client_id(self) -> str:
        return self.client_id

    def get_default_redirect_uri(self) -> str:
        raise AssertionError("the client names it")

    def get_allowed_scope(self, scope: str) -> str:
        return scope or ""

    def check_redirect_uri(self, uri: str) -> bool:
        return uri.startswith("http://127.0.0.1:")

    def check_client_secret(self, secret: str) -> bool:
        return secret == SECRET

    def check_endpoint_auth_method(self, method: str, endpoint: str) -> bool:
        del endpoint
        return method == ("client_secret_basic" if self.client_id == "host" else "none")

    def check_response_type(self, kind: str) -> bool:
        return kind == "code"

    def check_grant_type(self, grant: str) -> bool:
        return bool(grant)


class Code(dict[str, Any]):
    def get_redirect_uri(self) -> str:
        return self["redirect_uri"]

    def get_scope(self) -> str:
        return self["scope"]

    def __getattr__(self, name: str) -> Any:
        return self.get(name)


class Issuer:
    """An authorization server on a port of this machine, which signs in everybody as ``user``.

    Attributes:
        requests: The forms that its token endpoint got.
        lifetime: Seconds for which its tokens are valid.
        refresh_tokens: The valid refresh tokens, with their users; each is valid once.
        metadata: Changes of its metadata.
        changes: Changes of its answers with tokens.
        status: The status with which it answers everything; 0 for the right one.
        delay: Seconds until it answers a refresh.
        given: All tokens that it has issued.
        next_audience: The audience of the next token only, if it is not the usual one.
    """

    def __init__(self) -> None:
        self.requests: list[dict[str, str]] = []
        self.lifetime, self.user, self.status = 600, "ann", 0
        self.refresh_tokens: dict[str, str] = {}
        self.codes: dict[str, Code] = {}
        self.metadata: dict[str, Any] = {}
        self.changes: dict[str, Any] = {}
        self.delay = 0.0
        self.given: list[str] = []
        self.next_audience = ""
        app = flask.Flask("issuer")
        self.server = make_server("127.0.0.1", 0, app, threaded=True, request_handler=Quiet)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        oauth = AuthorizationServer(app, query_client=Registered, save_token=lambda *_: None)
        self._add_grants(oauth)
        self._add_pages(app)
        self._add_endpoints(app, oauth)

    def _add_grants(self, oauth: AuthorizationServer) -> None:  # noqa: C901  - one class a grant
        issuer = self

        def bearer(
            grant_type: str, client: Any, user: Any = None, scope: Any = None, **_: Any
        ) -> dict[str, Any]:
            subject = user or client.client_id
            audience, issuer.next_audience = issuer.next_audience or UPSTREAM, ""
            token = {
                "token_type": "Bearer",
                "access_token": issuer.token(subject, audience, scope=scope or ""),
                "expires_in": issuer.lifetime,
            }
            if grant_type in {"authorization_code", "refresh_token"}:
                token["refresh_token"] = refresh = uuid.uuid4().hex
                issuer.refresh_tokens[refresh] = subject
                issuer.given.append(refresh)
            return token | issuer.changes

        oauth.register_token_generator("default", bearer)

        class CodeGrant(grants.AuthorizationCodeGrant):
            TOKEN_ENDPOINT_AUTH_METHODS = METHODS

            def save_authorization_code(self, code: str, request: Any) -> None:
                issuer.codes[code] = Code(
                    redirect_uri=request.payload.redirect_uri,
                    scope=request.payload.scope,
                    code_challenge=request.payload.data.get("code_challenge"),
                    code_challenge_method=request.payload.data.get("code_challenge_method"),
                    user=request.user,
                )

            def query_authorization_code(self, code: str, client: Any) -> Code | None:
                del client
                return issuer.codes.get(code)

            def delete_authorization_code(self, code: Code) -> None:
                issuer.codes = {k: v for k, v in issuer.codes.items() if v is not code}

            def authenticate_user(self, code: Code) -> str:
                return code["user"]

        class RefreshGrant(grants.RefreshTokenGrant):
            TOKEN_ENDPOINT_AUTH_METHODS = METHODS

            def validate_token_request(self) -> None:
                self.request.client = self.authenticate_token_endpoint_client()
                self.user = issuer.refresh_tokens.pop(self.request.form["refresh_token"], None)
                time.sleep(issuer.delay)
                if self.user is None:
                    raise InvalidGrantError

            def create_token_response(self) -> Any:
                return (
                    200,
                    self.generate_token(user=self.user, scope=""),
                    self.TOKEN_RESPONSE_HEADER,
                )

        class MachineGrant(grants.ClientCredentialsGrant):
            pass

        class ExchangeGrant(grants.BaseGrant, grants.TokenEndpointMixin):
            GRANT_TYPE = EXCHANGE

            def validate_token_request(self) -> None:
                self.request.client = self.authenticate_token_endpoint_client()
                form = self.request.form
                if not form.get("resource") and not form.get("audience"):
                    raise InvalidRequestError
                try:
                    claims = issuer.claims(form["subject_token"], HOST)
                except jwt.InvalidTokenError:
                    raise InvalidGrantError from None
                self.user = claims["sub"]

            def create_token_response(self) -> Any:
                token = self.generate_token(user=self.user, include_refresh_token=False)
                token |= {"issued_token_type": "urn:ietf:params:oauth:token-type:access_token"}
                return 200, token, self.TOKEN_RESPONSE_HEADER

        oauth.register_grant(CodeGrant, [CodeChallenge(required=True)])
        for grant in (RefreshGrant, MachineGrant, ExchangeGrant):
            oauth.register_grant(grant)

    def _add_pages(self, app: flask.Flask) -> None:
        issuer = self

        @app.before_request
        def fail() -> Any:
            return ("", issuer.status) if issuer.status else None

        @app.get("/.well-known/oauth-authorization-server")
        def metadata() -> Any:
            known = {
                "issuer": issuer.url,
                "authorization_endpoint": f"{issuer.url}/authorize",
                "token_endpoint": f"{issuer.url}/token",
                "revocation_endpoint": f"{issuer.url}/revoke",
                "registration_endpoint": f"{issuer.url}/register",
                "code_challenge_methods_supported": ["S256"],
                "authorization_response_iss_parameter_supported": True,
                "jwks_uri": f"{issuer.url}/keys",
            }
            return known | issuer.metadata

        @app.get("/.well-known/oauth-protected-resource/mcp")
        def resource() -> Any:
            url = f"{issuer.url}/mcp"
            return {"resource": url, "authorization_servers": [issuer.url]}

        @app.get("/keys")
        def keys() -> Any:
            key = jwt.algorithms.RSAAlgorithm.to_jwk(KEY.public_key(), as_dict=True)
            return {"keys": [key | {"kid": "one", "alg": "RS256"}]}

    def _add_endpoints(self, app: flask.Flask, oauth: AuthorizationServer) -> None:
        issuer = self

        @app.get("/authorize")
        def authorize() -> Any:
            grant = oauth.get_consent_grant(end_user=issuer.user)
            answer = oauth.create_authorization_response(grant_user=issuer.user, grant=grant)
            answer.headers["location"] += f"&iss={issuer.url}"
            return answer

        @app.post("/token")
        def token() -> Any:
            issuer.requests.append(flask.request.form.to_dict())
            return oauth.create_token_response()

        @app.post("/moved")
        def moved() -> Any:
            return flask.redirect("/token", 307)

        @app.post("/long")
        def long() -> Any:
            return {"access_token": "x" * 300_000, "token_type": "Bearer"}

        @app.post("/register")
        def register() -> Any:
            return {**flask.request.json, "client_id": uuid.uuid4().hex}, 201

        @app.post("/revoke")
        def revoke() -> Any:
            issuer.refresh_tokens.pop(flask.request.form["token"], None)
            return ""

    def token(self, subject: str, audience: str = UPSTREAM, **claims: Any) -> str:
        """Return an access token for an audience."""
        now = int(time.time())
        content = {"iss": self.url, "aud": audience, "sub": subject, "jti": uuid.uuid4().hex}
        content |= {"exp": now + self.lifetime} | claims
        token = jwt.encode(content, KEY, "RS256", {"kid": "one"})
        self.given.append(token)
        return token

    def claims(self, token: str, audience: str) -> dict[str, Any]:
        return jwt.decode(token, KEY.public_key(), ["RS256"], audience=audience, issuer=self.url)


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    issuer = Issuer()
    ISSUED.append(issuer)
    thread = threading.Thread(target=issuer.server.serve_forever, daemon=True)
    thread.start()
    yield issuer
    issuer.server.shutdown()
    thread.join()
    issuer.server.server_close()


class WhoPlugin(Plugin):
    """The tools of the other server."""

    @resource("who://me")
    async def me(self) -> str:
        """Return the caller."""
        caller = CALLER.get()
        assert caller
        return caller.name

    @prompt
    async def greet(self, context: CallContext) -> str:
        """Greet the caller."""
        return f"Hello, {context.caller}"

    @tool(read_only=True)
    async def who(self, context: CallContext) -> str:
        """Return the caller."""
        return context.caller

    @tool
    async def fail(self, text: str) -> str:
        """Repeat the newest tokens in an error."""
        raise ApiError(f"{text} {ISSUED[-1].given[-3:]}")


@pytest.fixture
def upstream(make_host: MakeHost, issuer: Issuer) -> Callable[..., Any]:
    """Return a function that serves an MCP server which takes the issuer's tokens."""

    @asynccontextmanager
    async def serve(**server: Any) -> AsyncGenerator[str]:
        keys = {"issuer": issuer.url, "audience": UPSTREAM, "jwks_url": f"{issuer.url}/keys"}
        settings = {"port": 0, "auth": {"jwt": keys}, **server}
        async with served_over_http(make_host({"who": WhoPlugin}, server=settings)) as url:
            yield f"{url}/mcp"

    return serve


@pytest.fixture(autouse=True)
def secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLIENT_SECRET", SECRET)
    monkeypatch.setenv("AUTHLIB_INSECURE_TRANSPORT", "1")


@pytest.fixture
def auth_of(issuer: Issuer) -> Callable[..., dict[str, Any]]:
    """Return a function that makes the table ``auth`` of a server."""

    def make(grant: str = "client_credentials", **keys: Any) -> dict[str, Any]:
        secret = {"client_id": "host", "client_secret": "${CLIENT_SECRET}"}
        shared = {} if grant == "authorization_code" else secret
        return {"grant": grant, "issuer": issuer.url, **shared, **keys}

    return make


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the tokens that services verify, except the ones for the host itself."""
    tokens: list[str] = []
    verify = authorization.JwtTokens.verify_token

    async def note(self: Any, token: str) -> Any:
        if self._audience == UPSTREAM:
            tokens.append(token)
        return await verify(self, token)

    monkeypatch.setattr(authorization.JwtTokens, "verify_token", note)
    return tokens
