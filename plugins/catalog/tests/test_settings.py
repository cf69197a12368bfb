from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from standards_mcp.config.loading import load_settings
from standards_mcp.errors import ConfigError
from standards_mcp.host import Host
from standards_mcp.loading.records import PluginInfo
from standards_mcp_catalog import Catalog
from standards_mcp_catalog.plugin import CatalogPlugin
from standards_mcp_catalog.settings import CatalogSettings, checked_host


def load(overrides: Any = None) -> Host:
    """Return a host of the plugin alone, as the files and variables of the test configure it."""
    plugin = PluginInfo(name="catalog", load=lambda: CatalogPlugin)
    host = Host(load_settings(overrides=overrides), installed=[plugin], remembers=False)
    host.load()
    return host


def settings_of(host: Host) -> CatalogSettings:
    plugin = host.manager.records["catalog"].plugin
    assert isinstance(plugin, CatalogPlugin)
    return plugin.settings


@pytest.fixture
def write_toml() -> Any:
    def write(text: str) -> Path:
        file = Path("standards-mcp.toml")
        file.write_text(text, encoding="utf-8")
        return file

    return write


class TestVariables:
    def test_of_the_environment_come_before_env_file_and_toml(
        self, monkeypatch: pytest.MonkeyPatch, write_toml: Any
    ):
        write_toml('[plugins.catalog.pinecone]\nindex_name = "c"\nnamespace = "c"\nhost = "c.io"\n')
        Path(".env").write_text(
            "PINECONE_NAMESPACE=b\nPINECONE_HOST=b.io\nPINECONE_OTHER=x\n", encoding="utf-8"
        )
        monkeypatch.setenv("PINECONE_HOST", "a.io")
        table = settings_of(load()).pinecone
        assert (table.index_name, table.namespace, table.host) == ("c", "b", "https://a.io")

    def test_have_defaults(self):
        table = settings_of(load()).pinecone
        assert (table.index_name, table.namespace) == ("common-core-standards", "standards")
        assert (table.api_key, table.host, table.fallback) == (None, None, "none")

    @pytest.mark.parametrize(
        "text", ["PINECONE_API_KEY='pcsk_fake '\n", 'PINECONE_API_KEY="pcsk_fake"']
    )
    def test_a_key_may_stand_in_the_env_file(self, text: str):
        Path(".env").write_text(text, encoding="utf-8")
        host = load()
        key = settings_of(host).pinecone.api_key
        assert key is not None
        assert key.get_secret_value() == "pcsk_fake"
        assert {each.strip() for each in host.secrets()} == {"pcsk_fake"}
        assert "pcsk_fake" not in repr(host.loaded) + repr(host.layers)

    def test_an_empty_key_is_none(self, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setenv("PINECONE_API_KEY", " ")
        assert settings_of(load()).choice[0] == "local"

    def test_a_mistake_is_told_with_the_name_of_the_variable(self, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setenv("PINECONE_HOST", "http://index.example.org")
        with pytest.raises(ConfigError, match=r"^environment: PINECONE_HOST: .* use https$"):
            load()
        monkeypatch.delenv("PINECONE_HOST")
        Path(".env").write_text("PINECONE_INDEX_NAME=Not_a_name\n", encoding="utf-8")
        with pytest.raises(ConfigError, match=r"^\.env: PINECONE_INDEX_NAME: "):
            load()


class TestTheKey:
    def test_is_refused_on_the_command_line(self):
        with pytest.raises(
            ConfigError, match=r"^command line: \[plugins.catalog.pinecone\] api_key"
        ):
            load({"plugins": {"catalog": {"pinecone": {"api_key": "pcsk_fake"}}}})


class TestTheKeyOfAnEncoder:
    @pytest.mark.parametrize("source", ["environment", ".env"])
    def test_comes_from_a_variable_and_reaches_the_encoder(
        self, source: str, monkeypatch: pytest.MonkeyPatch
    ):
        if source == "environment":
            monkeypatch.setenv("STANDARDS_MCP_EMBEDDING_API_KEY", " k-123 ")
        else:
            Path(".env").write_text("STANDARDS_MCP_EMBEDDING_API_KEY=k-123\n", encoding="utf-8")
        host = load()
        found = settings_of(host).local.api_key
        assert found is not None
        assert found.get_secret_value() == "k-123"
        assert "k-123" in host.secrets()
        assert "k-123" not in repr(host.loaded) + repr(host.service(Catalog))

    def test_is_refused_beside_an_endpoint_that_is_not_encrypted(
        self, monkeypatch: pytest.MonkeyPatch
    ):
        monkeypatch.setenv(
            "STANDARDS_MCP_PLUGINS__CATALOG__LOCAL__MODEL", "http://example.com/v1#m"
        )
        assert load()
        monkeypatch.setenv("STANDARDS_MCP_EMBEDDING_API_KEY", "k-123")
        with pytest.raises(ConfigError, match="would be sent unencrypted; use https") as caught:
            load()
        assert "k-123" not in str(caught.value)
        monkeypatch.setenv("STANDARDS_MCP_PLUGINS__CATALOG__LOCAL__MODEL", "http://[::1]:8080/v1#m")
        assert load()


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("a-1.svc.pinecone.io", "https://a-1.svc.pinecone.io"),
        (" https://a-1.svc.pinecone.io/ ", "https://a-1.svc.pinecone.io"),
        ("http://127.0.0.1:5080", "http://127.0.0.1:5080"),
        ("http://localhost:5080", "http://localhost:5080"),
        ("http://[::1]:5080", "http://[::1]:5080"),
        ("http://a.pinecone.io", ""),
        ("ftp://a.io", ""),
        ("https://", ""),
        ("a.io/path", ""),
        ("http://10.0.0.1", ""),
    ],
)
def test_a_host_is_https_unless_on_loopback(host: str, url: str):
    if url:
        assert checked_host(host) == url
    else:
        with pytest.raises(ValueError, match=r"is not a host|unencrypted"):
            checked_host(host)


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("STANDARDS_MCP_PLUGINS__CATALOG__LOCAL__MODEL", "https://ann:k-123@host/v1/embeddings#m"),
        ("PINECONE_HOST", "https://ann:k-123@index.example.org"),
        ("PINECONE_HOST", "ann:k-123@index.example.org"),
    ],
)
def test_an_address_with_a_password_is_refused_without_showing_it(
    variable: str, value: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv(variable, value)
    with pytest.raises(ConfigError, match=f"{variable}: an? .* no user name and no pass") as caught:
        load()
    assert "k-123" not in str(caught.value)


class TestTheBackend:
    def test_is_pinecone_when_there_is_a_key(self, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setenv("PINECONE_API_KEY", "pcsk_fake")
        host = load()
        assert settings_of(host).choice == (
            "pinecone",
            '[plugins.catalog] backend = "auto", and PINECONE_API_KEY is set',
        )

    def test_can_be_local_in_spite_of_a_key(self, monkeypatch: pytest.MonkeyPatch, write_toml: Any):
        monkeypatch.setenv("PINECONE_API_KEY", "pcsk_fake")
        write_toml('[plugins.catalog]\nbackend = "local"\n')
        assert settings_of(load()).choice == ("local", '[plugins.catalog] backend = "local"')


def test_the_sdk_is_not_imported_to_configure_pinecone(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PINECONE_API_KEY", "pcsk_fake")
    monkeypatch.setenv("PINECONE_HOST", "http://127.0.0.1:9")
    program = (
        "import sys; from standards_mcp.host import Host; "
        "from standards_mcp.config.loading import load_settings; "
        "Host(load_settings()).load(); print('pinecone' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert done.stdout.strip() == b"False"


def test_an_old_table_is_refused_with_its_new_name(write_toml: Any):
    write_toml("strict = true\n[catalog.local]\nmodel = 'none'\n")
    with pytest.raises(
        ConfigError, match=r"^standards-mcp.toml:2: catalog: it is now \[plugins.catalog\]$"
    ):
        load()


def test_an_old_variable_is_refused_with_its_new_name(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("STANDARDS_MCP_CATALOG__LOCAL__MODEL", "none")
    now = "STANDARDS_MCP_PLUGINS__CATALOG__LOCAL__MODEL"
    with pytest.raises(ConfigError, match=f"CATALOG__LOCAL__MODEL: it is {now} now$"):
        load()


@pytest.mark.parametrize(
    ("table", "line", "message"),
    [
        (".pinecone", "api_key = 'k-123'", "api_key: a secret does not.*set PINECONE_API_KEY"),
        (".pinecone", "deadline = inf", "deadline: input should be a finite number"),
        (".pinecone", "index_name = 'A'", "index_name: string should match pattern"),
        ("", "backend = 'web'", "backend: input should be 'auto', 'local' or 'pin"),
        ("", "backend = 'pincone'", "backend: .*; did you mean 'pinecone'"),
        ("", "backend = 'pinecone'", "backend: .*needs a key; set PINECONE_API_KEY"),
        ("", "path = 'file'", "path: .*is no folder; correct"),
        (".local", "api_key = 'k-123'", "api_key: .*set STANDARDS_MCP_EMBEDDING_API_KEY"),
        (".local", "modle = 'x'", "modle: unknown key; did you mean 'model'"),
        (".local", "model = 5", "model: input should be text in quotes"),
        (
            ".local",
            "model = 'minlm'",
            r"model: .* 'minlm'; did you mean 'minilm'\? use one of",
        ),
        (".local", "model = 'fastembd:x'", "model: .*did you mean 'fastembed:x'"),
        (".local", "model = 'gpt'", "model: unknown text model 'gpt'; use one of minilm, none, "),
        (".local", "model = 'fastembed'", "model: .*write fastembed:NAME"),
        (".local", "model = 'https://host/v1'", "model: .*after the address: https://host/v1#NAME"),
    ],
)
def test_a_mistake_stops_the_host_with_its_line_and_without_a_secret(
    write_toml: Any, table: str, line: str, message: str
):
    Path("file").touch()
    write_toml(f"[plugins.catalog{table}]\n{line}\n")
    where = rf"^standards-mcp.toml:2: \[plugins.catalog{table}\] "
    with pytest.raises(ConfigError, match=where + message) as caught:
        load()
    assert "k-123" not in str(caught.value)
    assert "\n" not in str(caught.value)
