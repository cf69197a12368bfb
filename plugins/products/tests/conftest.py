"""Products of files, built in the state folder of the hosts that tests start."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from mcp import Client

from standards_mcp.cli import run as run_program
from standards_mcp.testing import Connect
from standards_mcp_encoders import open_encoder
from standards_mcp_products.building import Options, build
from standards_mcp_products.columns import read_mapping
from standards_mcp_products.plugin import ProductsPlugin
from standards_mcp_products.settings import ProductsSettings
from standards_mcp_products.store import Catalogue

_ALL = Options()
OpenProducts = Callable[..., AbstractAsyncContextManager[Client]]
Write = Callable[..., Path]
Build = Callable[..., Any]
_LAMP: dict[str, Any] = {
    "Uniq Id": "lamp",
    "Product Name": "A desk lamp",
    "Brand Name": "Glow",
    "Category": "Office",
    "Selling Price": "$12.50",
    "Rating": "4.5 out of 5",
    "About Product": "It shines on paper.",
}
_SOAP: dict[str, Any] = {
    "Uniq Id": "soap",
    "Product Name": "Olive soap, 4 oz",
    "Brand Name": "Suds",
    "Category": "Bath",
    "Selling Price": "$3.00",
    "Ingredients": "Olive oil, salt",
}
_TENT: dict[str, Any] = {"Uniq Id": "tent", "Product Name": "A tent for two", "Category": "Camping"}


class Done(NamedTuple):
    """What a command has printed."""

    stdout: str
    stderr: str


class Counting:
    """The built-in encoder, which counts the texts that it is given."""

    def __init__(self, name: str = "") -> None:
        self._encoder = open_encoder("minilm")
        self.name, self.texts = name or self._encoder.name, list[str]()

    def encode(self, texts: Sequence[str]) -> Any:
        self.texts += texts
        return self._encoder.encode(texts)


@pytest.fixture(scope="session", autouse=True)
def _shared_encoder() -> Iterator[None]:
    """Keep the encoder of the process, which is loaded anew if no reference to it exists."""
    encoder = open_encoder("minilm")
    yield
    del encoder


@pytest.fixture
def lamp() -> dict[str, Any]:
    return dict(_LAMP)


@pytest.fixture
def soap() -> dict[str, Any]:
    return dict(_SOAP)


@pytest.fixture
def tent() -> dict[str, Any]:
    return dict(_TENT)


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """Return the plugin's state folder."""
    return tmp_path / "state" / "plugins" / "products"


def write_rows(file: Path, rows: Sequence[Mapping[str, Any]]) -> Path:
    """Write rows into a file, as the end of its name says."""
    if file.suffix == ".jsonl":
        file.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    elif file.suffix == ".parquet":
        pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        parquet.write_table(pyarrow.Table.from_pylist(list(rows)), file)
    else:
        with file.open("w", encoding="utf-8", newline="") as opened:
            writer = csv.DictWriter(opened, list(dict.fromkeys(key for row in rows for key in row)))
            writer.writeheader()
            writer.writerows(rows)
    return file


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Return a function that writes rows into a file of this name."""
    return lambda *rows, name="products.csv": write_rows(tmp_path / name, rows)


@pytest.fixture(scope="session")
def build_apart(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Return a function that builds rows in a new state folder, for tests that only read."""

    def build_rows(*rows: Mapping[str, Any], mapping: Mapping[str, list[str]] = {}) -> Path:
        folder = tmp_path_factory.mktemp("built")
        file = write_rows(folder / "products.jsonl", rows)
        catalogue = Catalogue(ProductsSettings(), folder / "state" / "plugins" / "products")
        build(catalogue, file, mapping, open_encoder("minilm"))
        return folder / "state"

    return build_rows


@pytest.fixture(scope="session")
def shop(build_apart: Callable[..., Path]) -> Path:
    """Return a state folder with the lamp, the soap and the tent, for tests that only read."""
    return build_apart(_LAMP, _SOAP, _TENT)


@pytest.fixture
def encoder() -> Counting:
    return Counting()


@pytest.fixture
def another_encoder() -> Counting:
    return Counting("another")


@pytest.fixture
def make(write: Write, state: Path, encoder: Counting) -> Build:
    """Return a function that builds rows, or a file."""

    def make_products(
        *rows: Mapping[str, Any],
        file: Path | None = None,
        mapping: Path | None = None,
        name: str = "products.csv",
        options: Options = _ALL,
        made_by: Any = encoder,
        **settings: Any,
    ) -> Any:
        catalogue = Catalogue(ProductsSettings(**settings), state)
        return build(
            catalogue, file or write(*rows, name=name), read_mapping(mapping), made_by, options
        )

    return make_products


@pytest.fixture
def open_products(connect: Connect, tmp_path: Path) -> OpenProducts:
    """Return a function that opens a client of a host with the plugin."""

    def open_one(
        state_dir: Path = tmp_path / "state", **settings: Any
    ) -> AbstractAsyncContextManager[Client]:
        config = {"state_dir": state_dir}
        return connect(ProductsPlugin, name="products", config=config, **settings)

    return open_one


@pytest.fixture
def run(
    install: Callable[..., Path], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> Callable[..., Done]:
    """Return a function that runs ``standards-mcp`` with the state folder of the tests."""
    install(
        "products", "from standards_mcp_products.plugin import ProductsPlugin as ProductsPlugin"
    )
    file = tmp_path / "config.toml"
    file.write_text(f"state_dir = {json.dumps(str(tmp_path / 'state'))}\n", "utf-8")

    def run_one(*arguments: str | Path, status: int = 0) -> Done:
        code = run_program(["--config", str(file), *map(str, arguments)])
        done = Done(*capfd.readouterr())
        assert code == status, done.stderr + done.stdout
        return done

    return run_one
