"""``[server]``: the service over HTTP, who may use it, the audit log and traces."""

import time
from datetime import datetime
from pathlib import Path
from typing import Annotated, Final, Literal, Self, TypeAlias

from pydantic import Field, SecretStr, ValidationInfo, field_validator, model_validator

from . import AtStart, NotBool, ScopePart, Seconds, SecureUrl, Table, TextFormat, Url, error_at

NAME: Final = r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}"
_NAME_FORMAT: Final = "a name of up to 64 letters, digits, '.', '_', '@' and '-'"
Name: TypeAlias = Annotated[str, TextFormat(NAME, _NAME_FORMAT)]
TokenName: TypeAlias = Annotated[
    str,
    TextFormat(rf"(?!(?:local|anonymous)$){NAME}", f"{_NAME_FORMAT}, not 'local' or 'anonymous'"),
]
_Host: TypeAlias = Annotated[
    str, TextFormat(r"[^\s/:\[\]]+|[0-9A-Fa-f.:]+", "a host without port, scheme and brackets")
]
_Proxy: TypeAlias = Annotated[
    str,
    TextFormat(
        r"[0-9A-Fa-f.:]+(/\d{1,3})?|\*", "an address such as 127.0.0.1, or a network 10.0.0.0/8"
    ),
]
_Origin: TypeAlias = Annotated[
    str, TextFormat(r"https?://[^\sA-Z/*]+", "an origin such as https://chat.example.org")
]
Digest: TypeAlias = Annotated[
    str,
    TextFormat(
        r"[0-9a-f]{64}", "a SHA-256 in 64 hexadecimal digits, which `auth token new` writes"
    ),
]
Moment: TypeAlias = Annotated[
    str,
    TextFormat(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", "a time in UTC such as '2026-12-31T23:59:59Z'"),
]
_PublicUrl: TypeAlias = Annotated[
    str, TextFormat(r"https://[^\s/?#@]+(/[^\s?#]*)?", "an address such as https://a.b/mcp")
]
_Count: TypeAlias = Annotated[int, Field(gt=0), NotBool]
ALL: Final = "*"
"""The scope of a token for everything that is served."""
ADMIN: Final = "admin"
"""The scope of the admin page, and of the plugins in ``/health``."""
METRICS: Final = "metrics"
"""The scope of ``/metrics``."""
BUILT_IN: Final = (ADMIN, METRICS, ALL)
"""The scopes that tokens may have without a definition."""


class TokenSection(Table):
    """``[server.auth.tokens.<name>]``: the hash of a token.

    Attributes:
        sha256: The SHA-256 of the token. ``standards-mcp auth token new`` writes it.
        scopes: The scopes of the token. ``*`` allows everything that is served; ``admin`` and
            ``metrics`` are for the pages with these names.
        expires: From this time on the token is refused, in UTC such as ``2026-12-31T23:59:59Z``.
            ``standards-mcp auth token new --expires 90d`` writes it. By default it never expires.
    """

    sha256: Digest
    scopes: tuple[str, ...] = (ALL,)
    expires: Moment | None = None

    @field_validator("expires")
    @classmethod
    def _check_expires(cls, expires: str | None) -> str | None:
        if expires is not None:
            datetime.fromisoformat(expires)
        return expires

    @property
    def expires_at(self) -> int | None:
        """The time at which the token expires in seconds since 1970, or None."""
        return int(datetime.fromisoformat(self.expires).timestamp()) if self.expires else None

    @property
    def is_expired(self) -> bool:
        """True if the token has expired."""
        return self.expires_at is not None and self.expires_at <= time.time()


class Scope(Table):
    """``[server.auth.scopes.<name>]``: the contributions that a scope allows.

    Attributes:
        names: Globs over the names of tools, prompts, resources and skills.
        profile: The name of a profile, one of ``profiles``, that narrows the scope.
    """

    names: tuple[str, ...] = ("*",)
    profile: str | None = None


Scopes: TypeAlias = dict[Name, tuple[str, ...] | Scope]


class JwtSettings(Table):
    """``[server.auth.jwt]``: tokens of an authorization server, as JSON Web Tokens.

    Attributes:
        issuer: The address of the authorization server, exactly as in ``iss``.
        audience: The address of this service, such as ``https://mcp.example.org/mcp``. Tokens must
            be made for it (``aud``).
        jwks_url: The address of the keys. By default the issuer's OpenID configuration has it.
    """

    issuer: Url
    audience: Url
    jwks_url: Url | None = None


class OidcSettings(Table):
    """``[server.auth.oidc]``: people sign in with a browser to the pages of the service.

    Attributes:
        issuer: The address of the OpenID provider, exactly as in ``iss``.
        client_id: The client that is registered for the service at the provider.
        client_secret: The secret of this client. A public client has none.
        public_url: The address of the service for browsers, such as ``https://mcp.example.org``.
        scopes: The scopes to ask the provider for, in addition to ``openid``.
        groups_claim: The claim with the groups of a person, in the ID token or in the user info.
        groups: The scopes of each group's members; ``*`` is the group of all.
        lifetime: After this many seconds, a person must sign in again.
    """

    issuer: SecureUrl
    client_id: Annotated[str, Field(min_length=1)]
    client_secret: SecretStr | None = None
    public_url: SecureUrl
    scopes: tuple[ScopePart, ...] = ("profile",)
    groups_claim: str = "groups"
    groups: Annotated[dict[str, tuple[str, ...]], Field(min_length=1)]
    lifetime: Seconds = 28_800.0


class AuthSettings(Table):
    """``[server.auth]``: the users of the service. Without this table, requests need no token.

    Attributes:
        required: If true, requests need a token, even if no token exists. By default they need one
            if there are ``tokens``, ``jwt`` or ``oidc``.
        tokens: Each table is a token, with a name of your choice.
        jwt: Tokens of an authorization server are accepted, too.
        oidc: People sign in with a browser, by OpenID Connect.
        scopes: The contributions that each scope allows: globs over names, or a table with
            ``names`` and ``profile``. Globs of several scopes add up; each profile narrows them.
    """

    required: bool | None = None
    tokens: dict[TokenName, TokenSection] = Field(default_factory=dict[str, TokenSection])
    jwt: Annotated[JwtSettings | None, AtStart()] = None
    oidc: Annotated[OidcSettings | None, AtStart()] = None
    scopes: Annotated[Scopes, Field(validate_default=True)] = Field(default_factory=Scopes)

    @field_validator("scopes")
    @classmethod
    def _check_scopes(cls, scopes: Scopes, info: ValidationInfo) -> Scopes:
        tokens: dict[str, TokenSection] = info.data.get("tokens", {})
        held = {f"the token {name!r}": token.scopes for name, token in tokens.items()}
        if oidc := info.data.get("oidc"):
            held |= {f"the group {name!r}": of_group for name, of_group in oidc.groups.items()}
        for holder, names in held.items():
            if unknown := next((name for name in names if name not in (*BUILT_IN, *scopes)), None):
                raise ValueError(f"{holder} has the unknown scope {unknown!r}")
        return scopes

    @property
    def is_required(self) -> bool:
        """True if requests need a token."""
        by_default = bool(self.tokens or self.jwt or self.oidc)
        return by_default if self.required is None else self.required


class AuditSettings(Table):
    """``[server.audit]``: a file with a line for each call, over stdio too.

    Attributes:
        path: The file, in an existing folder. Without it, no audit log is written.
        arguments: With ``hash``, a line has a keyed hash of the arguments. With ``redacted``, it
            has the arguments, without secrets and values whose names look secret.
        required: If true, a line is also written before each call, and the call does not run if
            that fails.
        max_bytes: A file of this many bytes is renamed, and a new one is started.
        files: This many older files are kept.
    """

    path: Path | None = None
    arguments: Literal["hash", "redacted"] = "hash"
    required: bool = False
    max_bytes: Annotated[int, Field(ge=10_000), NotBool] = 50_000_000
    files: Annotated[int, Field(gt=0, le=1000), NotBool] = 10

    @model_validator(mode="after")
    def _check_has_path(self) -> Self:
        if self.required and self.path is None:
            raise error_at("required", "it needs the path of the audit log")
        return self


class TelemetrySettings(Table):
    """``[server.telemetry]``: OpenTelemetry, over stdio too.

    Attributes:
        traces: If true, a span of each request is sent over OTLP, as configured by the environment
            variables ``OTEL_*``. It needs the extra ``otel``.
    """

    traces: Annotated[bool, AtStart()] = False


class HttpSettings(Table):
    """``[server]``: how ``serve --transport http`` serves.

    Attributes:
        host: The service listens at this address.
        port: The service listens at this port; 0 chooses a free port.
        uds: The service listens at the Unix socket with this path, in place of host and port. The
            user and the group of the process may use it.
        allowed_hosts: Requests may name these hosts, such as ``mcp.example.org`` or
            ``*.example.org``. By default, a service that only this machine can reach accepts names
            of this machine; any other service accepts all names and needs authorization.
        allowed_origins: Pages of these origins may use the service from a browser, such as
            ``https://chat.example.org``.
        trusted_proxies: The ``X-Forwarded-For`` of proxies at these addresses or networks is
            believed. With ``uds``, ``*`` means the proxy that uses the socket.
        workers: Number of processes that serve the port. Several need ``stateless``.
        state_key: This key encrypts the state that clients of protocol version 2026-07-28 keep
            while their user is asked. It has 32 characters or more. Services behind one load
            balancer need the same key. By default, each start makes its own.
        stateless: If true, the service keeps no sessions. Clients of protocol versions before
            2026-07-28 then get no questions and no notice of changes.
        json_response: If true, calls are answered with JSON in place of a stream. This is faster,
            but there is no progress, and clients of older versions get no questions.
        max_request_bytes: The body of a request may have this many bytes.
        max_sessions: This many sessions may be open at a time.
        max_sessions_per_client: One token may have this many sessions. By default, a fifth of
            ``max_sessions``.
        session_idle: A session without a request for this many seconds is closed.
        rest: If true, the tools are also a REST API: ``POST /tools/{name}``, documented at
            ``/openapi.json`` and ``/docs``.
        pages: If true, pages of plugins are served, such as ``/explore`` of the plugin ``views``.
            They show and call what the caller's token allows.
        admin: If true, ``/admin`` shows the service, and changes its plugins, tools and tokens, for
            tokens with the scope ``admin``.
        card: With this public address of the service, such as ``https://mcp.example.org/mcp``,
            ``/mcp/server-card`` describes the service to everybody.
        snapshot: If true, a start over stdio answers the handshake and the lists of a client from a
            snapshot of the last start, before plugins are loaded.
        drain: When the service ends, calls in flight may take this many seconds to finish.
        auth: The users of the service.
        metrics: If true, ``/metrics`` has metrics for Prometheus.
        audit: A file with a line for each call.
        telemetry: OpenTelemetry.
    """

    host: Annotated[str, AtStart()] = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65_535), NotBool, AtStart()] = 8000
    uds: Annotated[Path | None, AtStart()] = None
    allowed_hosts: Annotated[tuple[_Host, ...], AtStart()] = ()
    allowed_origins: Annotated[tuple[_Origin, ...], AtStart()] = ()
    trusted_proxies: Annotated[tuple[_Proxy, ...], AtStart()] = ()
    workers: Annotated[_Count, AtStart()] = 1
    state_key: Annotated[SecretStr | None, Field(min_length=32), AtStart()] = None
    stateless: Annotated[bool, AtStart()] = False
    json_response: Annotated[bool, AtStart()] = False
    max_request_bytes: Annotated[_Count, AtStart()] = 4_194_304
    max_sessions: Annotated[_Count, AtStart()] = 1000
    max_sessions_per_client: Annotated[_Count | None, AtStart()] = None
    session_idle: Annotated[Seconds, AtStart()] = 1800.0
    rest: Annotated[bool, AtStart()] = False
    pages: bool = True
    admin: Annotated[bool, AtStart()] = False
    card: Annotated[_PublicUrl | None, AtStart()] = None
    snapshot: Annotated[bool, AtStart()] = True
    drain: Annotated[Seconds, AtStart()] = 10.0
    auth: AuthSettings = Table.empty
    metrics: Annotated[bool, AtStart()] = False
    audit: Annotated[AuditSettings, AtStart()] = Table.empty
    telemetry: TelemetrySettings = Table.empty

    @model_validator(mode="after")
    def _check_proxies(self) -> Self:
        # A Unix socket has no addresses, so there `*` means all programs that may use its file.
        # Over TCP, a client could forge its address, and get another address locked out.
        if "*" in self.trusted_proxies and self.uds is None:
            raise ValueError("trusted_proxies: '*' is for uds; name the addresses of the proxies")
        return self

    @property
    def session_share(self) -> int:
        """The maximum number of sessions of one token."""
        return self.max_sessions_per_client or max(1, self.max_sessions // 5)
