from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support.pinecone_server import KEY, PineconeServer

from standards_mcp._utils.secrets import secrets_of
from standards_mcp.config.loading import LoadedSettings, load_settings
from standards_mcp.errors import ConfigError
from standards_mcp.host import Host
from standards_mcp_catalog.pinecone.client import PineconeClient
from standards_mcp_catalog.pinecone.fallback import FallbackCatalog


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
    ) -> None:
        write_toml('[catalog.pinecone]\nindex_name = "c"\nnamespace = "c"\nhost = "c.io"\n')
        Path(".env").write_text(
            "PINECONE_NAMESPACE=b\nPINECONE_HOST=b.io\nPINECONE_OTHER=x\n", encoding="utf-8"
        )
        monkeypatch.setenv("PINECONE_HOST", "a.io")
        table = load_settings().settings.catalog.pinecone
        assert (table.index_name, table.namespace, table.host) == ("c", "b", "https://a.io")

    def test_have_defaults(self) -> None:
        table = load_settings().settings.catalog.pinecone
        assert (table.index_name, table.namespace) == ("common-core-standards", "standards")
        assert (table.api_key, table.host, table.fallback) == (None, None, "none")

    @pytest.mark.parametrize(
        "text", ["PINECONE_API_KEY='pcsk_fake '\n", 'PINECONE_API_KEY="pcsk_fake"']
    )
    def test_a_key_may_stand_in_the_env_file(self, text: str) -> None:
        Path(".env").write_text(text, encoding="utf-8")
        loaded = load_settings()
        key = loaded.settings.catalog.pinecone.api_key
        assert key is not None
        assert key.get_secret_value() == "pcsk_fake"
        assert secrets_of(loaded.settings) == {"pcsk_fake"}
        assert "pcsk_fake" not in repr(loaded)

    def test_an_empty_key_is_none(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("PINECONE_API_KEY", " ")
        assert load_settings().settings.catalog.choice[0] == "local"

    def test_a_mistake_is_told_with_the_name_of_the_variable(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("PINECONE_HOST", "http://index.example.org")
        with pytest.raises(ConfigError, match=r"^environment: PINECONE_HOST: .* use https$"):
            load_settings()
        monkeypatch.delenv("PINECONE_HOST")
        Path(".env").write_text("PINECONE_INDEX_NAME=Not_a_name\n", encoding="utf-8")
        with pytest.raises(ConfigError, match=r"^\.env: PINECONE_INDEX_NAME: "):
            load_settings()


class TestTheKey:
    def test_is_refused_in_a_file(self, write_toml: Any) -> None:
        write_toml('[catalog.pinecone]\napi_key = "pcsk_fake"\n')
        with pytest.raises(ConfigError, match="set PINECONE_API_KEY") as caught:
            load_settings()
        assert "pcsk_fake" not in str(caught.value)

    def test_is_refused_on_the_command_line(self) -> None:
        with pytest.raises(ConfigError, match=r"^command line: \[catalog.pinecone\] api_key"):
            load_settings(overrides={"catalog": {"pinecone": {"api_key": "pcsk_fake"}}})


class TestTheKeyOfAnEncoder:
    @pytest.mark.parametrize("source", ["environment", ".env"])
    def test_comes_from_a_variable_and_reaches_the_encoder(
        self, source: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        if source == "environment":
            monkeypatch.setenv("STANDARDS_MCP_EMBEDDING_API_KEY", " k-123 ")
        else:
            Path(".env").write_text("STANDARDS_MCP_EMBEDDING_API_KEY=k-123\n", encoding="utf-8")
        loaded = load_settings()
        found = loaded.settings.catalog.local.api_key
        assert found is not None
        assert found.get_secret_value() == "k-123"
        host = Host(loaded, installed=())
        assert "k-123" in host.secrets()
        assert "k-123" not in repr(loaded) + repr(host.catalog)

    def test_is_refused_beside_an_endpoint_that_is_not_encrypted(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("STANDARDS_MCP_CATALOG__LOCAL__MODEL", "http://example.com/v1#m")
        assert load_settings()
        monkeypatch.setenv("STANDARDS_MCP_EMBEDDING_API_KEY", "k-123")
        with pytest.raises(ConfigError, match="would be sent unencrypted; use https") as caught:
            load_settings()
        assert "k-123" not in str(caught.value)
        monkeypatch.setenv("STANDARDS_MCP_CATALOG__LOCAL__MODEL", "http://[::1]:8080/v1#m")
        assert load_settings()

    def test_is_refused_in_a_file(self, write_toml: Any) -> None:
        write_toml('[catalog.local]\napi_key = "k-123"\n')
        with pytest.raises(ConfigError, match="set STANDARDS_MCP_EMBEDDING_API_KEY") as caught:
            load_settings()
        assert "k-123" not in str(caught.value)


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("STANDARDS_MCP_CATALOG__LOCAL__MODEL", "https://ann:k-123@host/v1/embeddings#m"),
        ("PINECONE_HOST", "https://ann:k-123@index.example.org"),
        ("PINECONE_HOST", "ann:k-123@index.example.org"),
    ],
)
def test_an_address_with_a_password_is_refused_without_showing_it(
    variable: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(ConfigError, match=f"{variable}: an? .* no user name and no pass") as caught:
        load_settings()
    assert "k-123" not in str(caught.value)


class TestTheBackend:
    def test_is_pinecone_when_there_is_a_key(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("PINECONE_API_KEY", KEY)
        loaded = load_settings()
        assert loaded.settings.catalog.choice == (
            "pinecone",
            '[catalog] backend = "auto", and PINECONE_API_KEY is set',
        )
        assert isinstance(Host(loaded, installed=()).catalog, PineconeClient)

    def test_can_be_local_in_spite_of_a_key(
        self, monkeypatch: pytest.MonkeyPatch, write_toml: Any
    ) -> None:
        monkeypatch.setenv("PINECONE_API_KEY", KEY)
        write_toml('[catalog]\nbackend = "local"\n')
        assert load_settings().settings.catalog.choice == ("local", '[catalog] backend = "local"')

    def test_needs_a_key_to_be_pinecone(self, write_toml: Any) -> None:
        write_toml('[catalog]\nbackend = "pinecone"\n')
        with pytest.raises(ConfigError, match="needs a key; set PINECONE_API_KEY") as caught:
            load_settings()
        assert "\n" not in str(caught.value)

    def test_can_fall_back_to_the_embedded_index(
        self, monkeypatch: pytest.MonkeyPatch, write_toml: Any
    ) -> None:
        pytest.importorskip("standards_mcp_catalog.local.catalog")
        monkeypatch.setenv("PINECONE_API_KEY", KEY)
        write_toml('[catalog.pinecone]\nfallback = "local"\nindex_name = "mine"\ndeadline = 3\n')
        catalog = Host(load_settings(), installed=()).catalog
        assert isinstance(catalog, FallbackCatalog)
        assert catalog.primary.connections.index_name == "mine"
        assert catalog.primary.connections.deadline == 3

    def test_is_named_with_its_reason_by_data_status(self, monkeypatch: pytest.MonkeyPatch) -> None:
        import anyio

        monkeypatch.setenv("PINECONE_API_KEY", KEY)
        with PineconeServer() as server:
            server.add_index()
            monkeypatch.setenv("PINECONE_HOST", server.url)
            host = Host(load_settings(), installed=())

            async def stats() -> Any:
                try:
                    return await host.catalog_stats()
                finally:
                    await host.catalog.aclose()

            found = anyio.run(stats)
        assert (found.backend, found.records) == ("pinecone", 0)
        assert found.details["reason"].endswith("PINECONE_API_KEY is set")


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ("minlm", r"unknown text model 'minlm'; did you mean 'minilm'\? use one of minilm, none, "),
        ("fastembd:x", "did you mean 'fastembed:x'"),
        ("gpt", "unknown text model 'gpt'; use one of minilm, none, sentence-transformers:NAME"),
        ("fastembed", "write fastembed:NAME"),
        ("https://host/v1", "write it after the address: https://host/v1#NAME"),
    ],
)
def test_a_model_that_does_not_exist_is_a_mistake_of_the_configuration(
    write_toml: Any, model: str, message: str
) -> None:
    write_toml(f'[catalog.local]\nmodel = "{model}"\n')
    with pytest.raises(
        ConfigError, match=rf"^standards-mcp.toml:2: \[catalog.local\] model: .*{message}"
    ):
        load_settings()


def test_the_sdk_is_not_imported_to_configure_pinecone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PINECONE_API_KEY", KEY)
    monkeypatch.setenv("PINECONE_HOST", "http://127.0.0.1:9")
    program = (
        "import sys; from standards_mcp.host import Host; "
        "from standards_mcp.config.loading import load_settings; "
        "Host(load_settings(), installed=()); print('pinecone' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert done.stdout.strip() == b"False"


def test_settings_of_a_host_never_show_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PINECONE_API_KEY", KEY)
    loaded: LoadedSettings = load_settings()
    host = Host(loaded, installed=())
    assert KEY not in repr(loaded) + repr(host.catalog) + str(loaded.settings)
    assert KEY in host.secrets()
