"""``[servers.<name>.auth]``: how the host signs in at another server, by OAuth 2.1."""

from typing import Annotated, Literal, Self, TypeAlias

from pydantic import Field, model_validator

from . import ScopePart, SecureUrl, Table, TextFormat, Url, error_at

_Variable: TypeAlias = Annotated[
    str, TextFormat(r"\$\{\w+\}", "a variable of the environment such as '${CLIENT_SECRET}'")
]


class ServerAuth(Table):
    """``[servers.<name>.auth]``: the host signs in at the server by OAuth 2.1.

    Attributes:
        grant: With ``client_credentials``, the host signs in as itself. With ``token_exchange``, it
            exchanges the token of each caller of the service over HTTP (RFC 8693). With
            ``authorization_code``, each user signs in with a browser.
        issuer: The address of the authorization server, exactly as in its metadata. By default, the
            MCP server names it (RFC 9728); a client with a secret must know its issuer.
        token_url: The token endpoint, if the authorization server has no metadata.
        authorization_url: The authorization endpoint, if the authorization server has no metadata.
        client_id: The client at the authorization server. By default, ``authorization_code``
            registers a client (RFC 7591).
        client_secret: The variable that has the secret of the client, such as ``${WIKI_SECRET}``.
        scopes: The scopes to ask for. By default, the authorization server decides.
        resource: The server that the token is for (RFC 8707). By default, its ``url``.
        audience: The server in the words of the authorization server, for ``token_exchange``.
        subject_token_type: The type of the callers' tokens, for ``token_exchange``.
        public_url: The public address of the service over HTTP, such as
            ``https://mcp.example.org``. With it, its users sign in at ``/plugins/<server>/sign-in``
            there, for ``authorization_code``.
    """

    grant: Literal["client_credentials", "token_exchange", "authorization_code"]
    issuer: SecureUrl | None = None
    token_url: SecureUrl | None = None
    authorization_url: SecureUrl | None = None
    client_id: Annotated[str, Field(min_length=1)] | None = None
    client_secret: Annotated[_Variable | None, Field(repr=False)] = None
    scopes: tuple[ScopePart, ...] = ()
    resource: Url | None = None
    audience: str | None = None
    subject_token_type: str = "urn:ietf:params:oauth:token-type:access_token"  # noqa: S105
    public_url: SecureUrl | None = None

    @model_validator(mode="after")
    def _check_is_complete(self) -> Self:
        is_person = self.grant == "authorization_code"
        if not is_person and not (self.client_id and self.client_secret):
            raise ValueError(f"{self.grant} needs client_id and client_secret")
        if self.client_secret and not (self.issuer or self.token_url):
            raise error_at("issuer", "it is needed, so that no other server gets the secret")
        if is_person and (self.token_url is None) != (self.authorization_url is None):
            raise ValueError("authorization_code needs both token_url and authorization_url")
        return self
