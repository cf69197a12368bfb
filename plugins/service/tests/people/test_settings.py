"""The settings of the sign-in of people, as commands check and show them."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from standards_mcp.cli import cli
from standards_mcp.config.loading import Sources

TEXT = """
[server]
allowed_hosts = {hosts}

[server.auth.oidc]
issuer = "https://login.example.org"
client_id = "standards"
public_url = "https://MCP.example.org"
groups = {{ operators = ["admin"] }}
"""
SECRET = "STANDARDS_MCP_SERVER__AUTH__OIDC__CLIENT_SECRET"  # noqa: S105


def written(hosts: str = '["*.example.org"]') -> None:
    Path("standards-mcp.toml").write_text(TEXT.format(hosts=hosts), encoding="utf-8")


@pytest.mark.parametrize(
    ("hosts", "is_reached"),
    [
        ('["mcp.example.org"]', True),
        ('["*.Example.org"]', True),
        ("[]", False),
        ('["a.org"]', False),
    ],
)
def test_a_public_address_that_the_service_refuses_is_reported(hosts: str, *, is_reached: bool):
    written(hosts)
    checked = CliRunner().invoke(cli, ["config", "check"])
    assert checked.exit_code == 0, checked.output
    told = "public_url: requests for the host 'mcp.example.org' are refused"
    assert (told in checked.output) == (not is_reached)
    assert "no token exists" not in checked.output


@pytest.mark.parametrize("secret", ["s3cret", "12345", "true", "[1.5]"])
def test_the_secret_of_the_client_may_be_in_a_variable_and_is_not_shown(
    monkeypatch: pytest.MonkeyPatch, secret: str
):
    written()
    monkeypatch.setenv(SECRET, secret)
    settings = Sources().load().settings.server.auth
    assert settings.oidc
    assert settings.oidc.client_secret
    assert settings.oidc.client_secret.get_secret_value() == secret
    assert settings.is_required
    shown = CliRunner().invoke(cli, ["config", "show"]).output
    assert "client_secret" in shown
    assert secret not in shown.partition("client_secret")[2].splitlines()[0]
    assert secret not in repr(settings)
