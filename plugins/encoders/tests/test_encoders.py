from __future__ import annotations

import gc
import json
import re
import socket
import subprocess
import sys
import threading
import weakref
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Annotated, Any

import anyio
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import AfterValidator, BaseModel, SecretStr, ValidationError

import standards_mcp_encoders as public
from standards_mcp.config.loading import load_settings
from standards_mcp.host import Host
from standards_mcp.loading.records import PluginInfo
from standards_mcp_catalog import starter
from standards_mcp_catalog.base import Catalog
from standards_mcp_catalog.plugin import CatalogPlugin
from standards_mcp_catalog.results import Seed
from standards_mcp_catalog.testing import records
from standards_mcp_encoders import minilm as embedding
from standards_mcp_encoders.encoders import open_encoder
from standards_mcp_encoders.errors import EncoderError, EncoderUnavailableError
from standards_mcp_encoders.minilm import MiniLmEncoder
from standards_mcp_encoders.spec import MINILM_NAME

WORDS = ("fractions", "Compare fractions.", "compare two fractions", "the", "")


@pytest.fixture(autouse=True)
def apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let these tests open the built-in model again, even if other tests have it open."""
    shared = weakref.WeakValueDictionary[str, MiniLmEncoder]()
    monkeypatch.setattr(embedding, "_SHARED", shared)


@pytest.fixture(scope="module")
def encoder() -> MiniLmEncoder:
    return MiniLmEncoder()


@pytest.mark.parametrize("threads", [1, 3])
def test_as_many_texts_are_encoded_at_once_as_there_are_threads(
    encoder: MiniLmEncoder, monkeypatch: pytest.MonkeyPatch, threads: int
):
    together, callers = threading.Barrier(threads, timeout=20), set[int]()

    def run(_outputs: None, inputs: dict[str, Any]) -> list[Any]:
        together.wait()
        callers.add(threading.get_ident())
        return [np.ones((len(inputs["ids"]), 384))]

    monkeypatch.setattr(encoder, "_threads", threads)
    monkeypatch.setattr(encoder, "_session", SimpleNamespace(run=run))
    encoder.encode(["one", "one two", "one two three"])
    assert len(callers) == threads
    assert (threading.get_ident() in callers) == (threads == 1)


def test_vectors_have_length_one_and_are_nearer_for_texts_of_like_meaning(encoder: MiniLmEncoder):
    texts = ["splitting a pizza equally", "Partition a circle into equal shares.", "Name planets."]
    vectors = encoder.encode([*texts, ""])
    assert (vectors.shape, vectors.dtype) == ((4, 384), np.float32)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    question, near, far, _ = vectors
    assert question @ near > question @ far
    assert encoder.encode([]).shape == (0, 384)


def assert_independent(encoder: MiniLmEncoder, texts: list[str]) -> None:
    alone = np.vstack([encoder.encode([text]) for text in texts])
    np.testing.assert_allclose(encoder.encode(texts), alone, atol=1e-6)


def test_a_vector_does_not_depend_on_the_other_texts_of_its_batch(encoder: MiniLmEncoder):
    lengths = (0, 1, 5, 20, 60, 119)
    words = ("long", "short", "\u6578\u5b66", "42", "dinosaur", "")
    assert_independent(encoder, [f"Read {'very ' * n}{word}" for n in lengths for word in words])


@settings(max_examples=25, deadline=None)
@given(texts=st.lists(st.text(max_size=30) | st.sampled_from(WORDS), min_size=2, max_size=12))
def test_a_vector_does_not_depend_on_any_other_text(encoder: MiniLmEncoder, texts: list[str]):
    assert_independent(encoder, texts)


@pytest.mark.parametrize("text", ["\ud800", "\x00\x07", "🍎" * 500, "[SEP] [MASK]", "w" * 8000])
def test_every_string_can_be_encoded(encoder: MiniLmEncoder, text: str):
    assert np.isfinite(encoder.encode([text])).all()


def test_a_changed_model_file_is_refused_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    other = tmp_path / "minilm.onnx"
    other.write_bytes(b"something else")
    monkeypatch.setattr(embedding, "_FILES", tmp_path)
    with pytest.raises(EncoderError, match=r"onnx is not .* install .*--force"):
        MiniLmEncoder()
    other.unlink()
    with pytest.raises(EncoderError, match=r"cannot read .*minilm\.onnx"):
        MiniLmEncoder()


@pytest.mark.parametrize("missing", ["onnxruntime", "tokenizers"])
def test_what_is_missing_is_said_with_the_command_that_installs_it(
    monkeypatch: pytest.MonkeyPatch, missing: str
):
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(EncoderUnavailableError, match=f"pip install {missing}"):
        open_encoder("minilm")


@pytest.mark.parametrize("spec", ["", "bert", "fastembed:", "https://host/v1", "none"])
def test_a_setting_that_names_no_model_is_refused(spec: str):
    error = EncoderUnavailableError if spec == "none" else EncoderError
    with pytest.raises(error, match=r"unknown text model|names no model|none"):
        open_encoder(spec)


@pytest.mark.parametrize(
    "model", ["all-MiniLM-L6-v2", "ORG/all-minilm-l6-v2-INT8", "x:" + MINILM_NAME]
)
def test_other_spellings_of_the_built_in_model_are_known(model: str):
    assert public.is_minilm(model)
    assert not public.is_minilm(f"{model}-ft")


def test_the_name_of_an_encoder_is_known_before_it_is_opened(encoder: MiniLmEncoder):
    assert public.encoder_name("minilm") == encoder.name == MINILM_NAME
    assert public.encoder_name("https://me:secret@host/v1#m") == "https://host/v1#m"


@pytest.mark.parametrize(
    ("spec", "module"),
    [
        ("sentence-transformers:some/model", "sentence_transformers"),
        ("fastembed:some/model", "fastembed"),
        ("model2vec:some/model", "model2vec"),
    ],
)
def test_a_library_encodes_with_the_named_model_or_says_what_is_missing(
    monkeypatch: pytest.MonkeyPatch, spec: str, module: str
):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(EncoderError, match=rf"pip install '{spec.partition(':')[0]}<"):
        open_encoder(spec)
    monkeypatch.setitem(sys.modules, module, ModuleType(module))
    with pytest.raises(EncoderError, match="cannot load the model 'some/model'"):
        open_encoder(spec)
    monkeypatch.setitem(sys.modules, module, _fake_library())
    encoder = open_encoder(spec)
    assert (encoder.name, encoder.dimensions) == (spec, 2)
    np.testing.assert_allclose(encoder.encode(["ab", "abcd"]), [[0.6, 0.8], [0.6, 0.8]])


def _fake_library() -> Any:
    def encode(texts: list[str]) -> list[list[float]]:
        return [[3.0 * len(text), 4.0 * len(text)] for text in texts]

    model = SimpleNamespace(encode=encode, embed=encode)
    return SimpleNamespace(
        SentenceTransformer=lambda _name: model,
        TextEmbedding=lambda model_name: model,  # noqa: ARG005
        StaticModel=SimpleNamespace(from_pretrained=lambda _name: model),
    )


class _Endpoint(BaseHTTPRequestHandler):
    requests: list[tuple[str | None, dict[str, Any]]]
    paths: list[str]
    answer: Any

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.requests.append((self.headers["Authorization"], body))
        self.paths.append(self.path)
        status, answer = self.answer(body)
        self.send_response(status)
        self.send_header("Location", "/elsewhere")
        self.end_headers()
        self.wfile.write(json.dumps(answer).encode())

    def log_message(self, *_: Any) -> None: ...


def _vectors_backwards(body: dict[str, Any]) -> tuple[int, Any]:
    rows = [{"index": i, "embedding": [len(text), 0]} for i, text in enumerate(body["input"])]
    return 200, {"data": rows[::-1]}


@pytest.fixture
def endpoint() -> Iterator[type[_Endpoint]]:
    members = {"requests": [], "paths": [], "answer": staticmethod(_vectors_backwards)}
    handler = type("Handler", (_Endpoint,), members)
    with HTTPServer(("127.0.0.1", 0), handler) as server:
        handler.url = f"http://127.0.0.1:{server.server_port}/v1/embeddings#model-x"
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield handler
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("key", [SecretStr("k-123"), None])
def test_an_endpoint_is_asked_for_the_model_with_the_key_and_without_a_proxy(
    endpoint: Any, monkeypatch: pytest.MonkeyPatch, key: SecretStr | None
):
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    encoder = open_encoder(endpoint.url, key)
    vectors = encoder.encode([f"{'a' * n}" for n in range(1, 71)])
    np.testing.assert_allclose(vectors, [[1, 0]] * 70)
    assert encoder.dimensions == 2
    sent, body = endpoint.requests[0]
    assert sent == (key and "Bearer k-123")
    assert body["model"] == "model-x"
    assert [len(body["input"]) for _, body in endpoint.requests] == [64, 6, 1]


def test_an_endpoint_gets_the_key_that_stands_in_the_env_file(
    endpoint: Any, monkeypatch: pytest.MonkeyPatch
):
    seed = Seed(records=records(), model="other", hashes=(), vectors=np.zeros((0, 2)))
    monkeypatch.setattr(starter, "starter_seed", lambda: seed)
    Path(".env").write_text(
        f"STANDARDS_MCP_EMBEDDING_API_KEY=k-123\nSTANDARDS_MCP_PLUGINS__CATALOG__LOCAL__MODEL={endpoint.url}\n"
        "STANDARDS_MCP_PLUGINS__CATALOG__PATH=here\n",
        encoding="utf-8",
    )
    plugin = PluginInfo(name="catalog", load=lambda: CatalogPlugin)
    host = Host(load_settings(), installed=[plugin], remembers=False)
    host.load()

    async def search() -> None:
        await host.service(Catalog).search("fractions")
        await host.manager.services.aclose()

    anyio.run(search)
    assert {key for key, _ in endpoint.requests} == {"Bearer k-123"}


def test_a_key_in_the_query_of_an_address_is_asked_with_and_never_shown(endpoint: Any):
    url, _, model = endpoint.url.partition("#")
    encoder = open_encoder(f"{url}?key=opensesame#{model}")
    assert encoder.name == endpoint.url
    assert encoder.encode(["a"]).shape == (1, 2)
    assert endpoint.paths == ["/v1/embeddings?key=opensesame"]
    spec = "http://me:opensesame@127.0.0.1:9/v1/embeddings?key=opensesame"
    for wrong in (lambda: open_encoder(spec), lambda: open_encoder(f"{spec}#m").encode(["a"])):
        with pytest.raises(EncoderError, match=r"http://127\.0\.0\.1:9/v1/embeddings") as caught:
            wrong()
        assert "opensesame" not in str(caught.value)
    with pytest.raises(EncoderError, match=r"^http://far.invalid/v1: ") as caught:
        open_encoder("http://far.invalid/v1?key=opensesame#m", SecretStr("k-123"))
    assert "opensesame" not in str(caught.value)
    assert open_encoder("https://host/v1#@cf/m?x").name == "https://host/v1#@cf/m?x"


def test_a_key_is_not_sent_unencrypted_and_a_plugin_says_what_to_check():
    url, remedy = "http://example.invalid/v1#m", "check [plugins.find] model and FIND_KEY"
    with pytest.raises(EncoderError, match="would be sent unencrypted; use https") as caught:
        open_encoder(url, SecretStr("k-123"), remedy=remedy)
    assert str(caught.value).endswith(f"use https; {remedy}")
    assert open_encoder(url).name.endswith("#m")


def test_a_validator_of_settings_may_let_a_wrong_spec_through():
    class FindSettings(BaseModel):
        model: Annotated[str, AfterValidator(lambda spec: public.check_model(spec) or spec)]

    assert FindSettings(model="minilm").model == "minilm"
    with pytest.raises(ValidationError, match="unknown text model 'minilmm'; did you mean"):
        FindSettings(model="minilmm")


@pytest.mark.parametrize(
    "answer",
    [(500, {}), (302, {}), (200, []), (200, {"data": []}), (200, {"data": [{"index": 0}]})],
)
def test_a_failing_endpoint_is_named_without_the_key(endpoint: Any, answer: Any):
    endpoint.answer = staticmethod(lambda _body: answer)
    with pytest.raises(EncoderError, match=r"127\.0\.0\.1.*failed") as caught:
        open_encoder(endpoint.url, SecretStr("k-123")).encode(["a"])
    assert "k-123" not in str(caught.value)
    assert len(endpoint.requests) == 1


@pytest.mark.parametrize(
    ("url", "cause"),
    [
        ("http://127.0.0.1:9/v1/embeddings#m", "refused"),
        ("http://nowhere.invalid/v1/embeddings#m", "[Nn]ame|nodename|getaddrinfo"),
    ],
)
def test_an_endpoint_out_of_reach_is_one_plain_line(url: str, cause: str):
    with pytest.raises(EncoderError) as caught:
        open_encoder(url, remedy="check [plugins.books] model").encode(["a"])
    told = str(caught.value)
    assert re.search(rf"embeddings failed: .*({cause})", told)
    assert told.endswith("; check [plugins.books] model")
    assert "Err" not in told


def test_plugins_open_encoders_by_the_public_package():
    encoder = public.open_encoder("minilm")
    assert isinstance(encoder, public.TextEncoder)
    assert encoder.encode(["a text"]).shape == (1, 384)
    assert "fastembed:NAME" in public.SPECS
    with pytest.raises(AttributeError, match="no attribute 'open_encoders'"):
        _ = public.open_encoders


def test_the_built_in_model_is_open_once_in_a_process():
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: public.open_encoder("minilm"), range(4)))
    assert len(set(map(id, found))) == 1
    gone = weakref.ref(found.pop())
    found.clear()
    gc.collect()
    assert gone() is None, "it is given back once nobody has it"


def test_the_names_of_models_are_known_without_numpy():
    code = "import sys; import standards_mcp_encoders as e; e.check_model('minilm'); "
    code += "sys.exit('numpy' in sys.modules or 'sentence_transformers' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


class TestTheClient:
    """`EmbeddingClient`, for plugins that need more than an encoder."""

    def test_answers_without_blocking_an_event_loop(self, endpoint: Any):
        client = public.EmbeddingClient(endpoint.url, SecretStr("k-123"), batch=2)
        vectors = anyio.run(client.aembed, ["a", "bb", "ccc"])
        np.testing.assert_allclose(vectors, client.embed(["a", "bb", "ccc"]))
        assert {key for key, _ in endpoint.requests} == {"Bearer k-123"}
        assert [len(body["input"]) for _, body in endpoint.requests] == [2, 1, 2, 1]
        client.close()
        assert client.embed(["a"]).shape == (1, 2)

    def test_sends_more_fields_to_endpoints_that_want_them(self, endpoint: Any):
        client = public.EmbeddingClient(endpoint.url, truncation=True)
        client.embed(["a"], input_type="query")
        ((_, body),) = endpoint.requests
        assert (body["truncation"], body["input_type"]) == (True, "query")

    @pytest.mark.parametrize(
        ("answer", "cause", "status"),
        [
            ((401, {}), "refused", 401),
            ((429, {}), "refused", 429),
            ((200, {"data": []}), "malformed", None),
            ((200, {"data": [{"index": 0, "embedding": [float("nan"), 1]}]}), "malformed", None),
        ],
    )
    def test_tells_the_kinds_of_failure_apart(
        self, endpoint: Any, answer: Any, cause: str, status: int | None
    ):
        endpoint.answer = staticmethod(lambda _body: answer)
        client = public.EmbeddingClient(endpoint.url, remedy="check MODEL")
        for embed in (client.embed, lambda texts: anyio.run(client.aembed, texts)):
            with pytest.raises(public.EmbeddingError, match=r"; check MODEL$") as caught:
                embed(["a"])
            assert (caught.value.cause, caught.value.status) == (cause, status)

    def test_gives_up_on_an_endpoint_that_hangs(self):
        with socket.create_server(("127.0.0.1", 0)) as silent:
            url = f"http://127.0.0.1:{silent.getsockname()[1]}/v1#m"
            client = public.EmbeddingClient(url, timeout=0.1)
            for embed in (client.embed, lambda texts: anyio.run(client.aembed, texts)):
                with pytest.raises(public.EmbeddingError, match="no answer within") as caught:
                    embed(["a"])
                assert caught.value.cause == "timeout"

    def test_leaves_a_failed_endpoint_alone_while_its_circuit_breaker_is_open(self, endpoint: Any):
        endpoint.answer = staticmethod(lambda _body: (503, {}))
        client = public.EmbeddingClient(endpoint.url, rest=1e6)
        for _ in range(2):
            with pytest.raises(public.EmbeddingError, match="status 503"):
                client.embed(["a"])
        assert len(endpoint.requests) == 1
