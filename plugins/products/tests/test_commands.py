"""The commands: the main job in one, and building, asking and looking at one's own products."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from support.waiting import WAIT

import standards_mcp_products
from standards_mcp_products import cli as trying

Run = Write = Callable[..., Any]
Row = dict[str, Any]
QUESTION = "a cleaner for steel that is kind to the environment"


def test_the_main_job_takes_one_command(run: Run, state: Path):
    cheap = '{"price": {"$lte": 15}}'
    shown = run("products", "try", QUESTION, "--filters", cheap).stdout
    assert shown.startswith("1. Leafwise Stainless Steel Cleaner, 16 oz Wipes fingerprints")
    assert "   $8.49, 4.6 of 5, Sudmere, P1001\n" in shown
    built = (state / "tried" / "active.json").read_bytes()
    told = json.loads(run("products", "try", QUESTION, "--filters", cheap, "--json").stdout)
    assert told["tool"] == "rag.search"
    assert told["results"][0]["sku"] == "P1001"
    assert all(each["price"] <= 15 for each in told["results"])
    assert (state / "tried" / "active.json").read_bytes() == built, "it is built once"
    assert not (state / "active.json").exists(), "one's own products are apart"
    reader = run("products", "try", "an e-book reader").stdout
    assert "price not known, 4.6 of 5, Zephrine" in reader
    assert (
        run("products", "try", "x", "--filters", '{"price": 0}').stdout
        == "No products were found.\n"
    )


def test_at_least_150_products_are_shipped(run: Run, write: Write, tmp_path: Path):

    shipped = Path(standards_mcp_products.__file__).parent / "data" / "products.csv"
    built = json.loads(run("products", "build", shipped, "--dry-run", "--json").stdout)
    assert built["indexed"] >= 150
    assert built["skipped"] == []
    del write, tmp_path


def test_ones_own_products_are_built_and_asked(
    run: Run, write: Write, lamp: Row, soap: Row, tent: Row
):
    file = write(lamp, soap, tent | {"Uniq Id": ""})
    dry = run("products", "build", file, "--dry-run").stdout
    assert dry.startswith("amazon2020 would be built of 3 rows: 2 indexed, 0 unchanged, 0 removed.")
    assert run("products", "status", status=1).stdout.count("not known") == 5
    shown = run("products", "build", file).stdout
    assert shown == (
        "amazon2020 is built of 3 rows: 2 indexed, 0 unchanged, 0 removed.\n"
        "Columns: sku from Uniq Id, title from Product Name, features from About Product, category "
        "from Category, brand from Brand Name, price from Selling Price, rating from Rating, "
        "ingredients from Ingredients.\n"
        "Row 3 is skipped: has no 'Uniq Id'.\n"
    )
    told = json.loads(run("products", "build", file, "--limit", "1", "--json").stdout)
    assert (told["unchanged"], told["removed"]) == (1, 1)
    found = json.loads(run("products", "search", "a light", "--json").stdout)
    assert [each["doc_id"] for each in found["results"]] == ["lamp"]
    shown = run("products", "search", "a light", "--top", "1").stdout
    assert shown == ("1. A desk lamp It shines on paper. Office\n   $12.50, 4.5 of 5, Glow, lamp\n")
    dear = ("--filters", '{"price": {"$gt": 99}}')
    assert run("products", "search", "a light", *dear).stdout == "No products were found.\n"
    status = json.loads(run("products", "status", "--json").stdout)
    assert (status["products"], status["source"]) == (1, "products.csv")
    assert status["active"].startswith("amazon2020--")
    assert status["model"] == "all-MiniLM-L6-v2-w7a8"
    assert "collection: amazon2020\nproducts: 1\n" in run("products", "status").stdout


def test_a_file_with_usual_names_needs_no_mapping_and_the_one_used_is_told(run: Run, write: Write):
    file = write({"sku": "A1", "name": "Desk lamp", "price": "12.50", "colour": "red"})
    built = json.loads(run("products", "build", file, "--json").stdout)
    assert built["mapping"] == {"sku": ["sku"], "title": ["name"], "price": ["price"]}
    assert (built["indexed"], built["unused"]) == (1, ["colour"])
    shown = run("products", "build", file).stdout
    assert "\nColumns: sku from sku, title from name, price from price.\n" in shown
    shown = run("products", "search", "a light").stdout
    assert shown == "1. Desk lamp\n   $12.50, A1\n"


def test_what_was_doubtful_is_told(run: Run, write: Write):
    row = {"sku": "A1", "name": "Desk lamp", "Price": "call us", "price": "3"}
    shown = run("products", "build", write(row)).stdout
    assert "price from Price or price." in shown
    assert "Values of price that could not be read: 1, the first 'call us' in row 1. The" in shown


def test_many_skipped_rows_are_counted(run: Run, write: Write, lamp: Row):
    shown = run("products", "build", write(lamp, *[lamp | {"Uniq Id": ""}] * 25)).stdout
    assert shown.count("is skipped") == 20
    assert shown.endswith("5 more rows are skipped; --json lists all.\n")


def test_another_collection_and_a_mapping_are_named(run: Run, write: Write, tmp_path: Path):
    mapping = tmp_path / "mapping.toml"
    mapping.write_text('sku = "id"\ntitle = "name"\nweight = ["grams", "g"]\n')
    file = write({"id": "1", "name": "Oats", "bag": "2 kg"})
    shown = run("products", "build", file, "--mapping", mapping, "--collection", "oats").stdout
    assert shown == (
        "oats is built of 1 rows: 1 indexed, 0 unchanged, 0 removed.\n"
        "Columns: sku from id, title from name.\n"
        "The file has no column that the mapping names for weight.\n"
        "Columns that are not used: bag. A mapping can add them.\n"
    )
    assert (
        "The products 'amazon2020' are not built" in run("products", "search", "x", status=1).stderr
    )
    run("--set", "plugins.products.collection=oats", "products", "search", "x")
    assert run("products", "build", file, "--collection", "a b", status=2).stderr


def test_a_command_that_cannot_do_its_work_says_why(run: Run, write: Write, tmp_path: Path):
    for filters in ("{", "[]"):
        for name in ("search", "try"):
            told = run("products", name, "x", "--filters", filters, status=2).stderr
            assert "--filters" in told
    told = run("products", "try", "x", "--filters", '{"price": {"$lower": 1}}', status=1).stderr
    assert "filters.price: unknown operator '$lower'; use $eq" in told
    assert "The query is empty" in run("products", "try", " ", status=1).stderr
    told = run("products", "build", write({"a": "b"}), status=1).stderr
    assert "no column for sku, the id of a product. It has a. Write the line sku = " in told
    run("products", "build", tmp_path / "none.csv", status=2)
    answer = run("products", "search", "x", "--json", status=1).stdout
    assert json.loads(answer)["error_type"] == "api_error"


def test_a_second_build_at_one_time_is_refused(run: Run, write: Write, lamp: Row, state: Path):
    import filelock

    state.mkdir(parents=True)
    with filelock.FileLock(state / "build.lock"):
        told = run("products", "build", write(lamp), status=1).stderr
    assert "Another build is running" in told
    run("products", "build", write(lamp))


def test_trying_waits_for_another_that_builds(
    run: Run, state: Path, monkeypatch: pytest.MonkeyPatch
):
    import filelock

    class Waited(filelock.FileLock):
        def _acquire(self) -> None:  # at each attempt
            super()._acquire()
            if self.lock_file == lock.lock_file:  # the host has locks of its own
                lock.release()

    (state / "tried").mkdir(parents=True)
    lock = filelock.FileLock(state / "tried" / "build.lock", thread_local=False)
    lock.acquire()
    monkeypatch.setattr(trying, "_BUILD_WAIT_SECONDS", 0.1)
    told = run("products", "try", "a lamp", status=1).stderr
    assert "Another build is running. Try again when it has ended." in told
    monkeypatch.setattr(trying, "_BUILD_WAIT_SECONDS", WAIT)
    monkeypatch.setattr(filelock, "FileLock", Waited)
    assert run("products", "try", "a lamp").stdout.startswith("1. ")


def test_a_key_in_the_address_of_a_model_is_neither_shown_nor_kept(
    run: Run, write: Write, lamp: Row, soap: Row, state: Path
):
    with endpoint() as (url, lengths):
        for key, rows in (("opensesame", [lamp]), ("newsesame", [lamp, soap])):
            model = f"plugins.products.model={url}?key={key}#m"
            built = run("--set", model, "products", "build", write(*rows), "--json").stdout
            shown = run("--set", model, "products", "status").stdout
            assert f"model: {url}#m\n" in shown
            assert key not in built + shown + (state / "active.json").read_text()
        counts = json.loads(built)
        assert (counts["indexed"], counts["unchanged"]) == (1, 1), "a new key is no other model"
        lengths.append(3)
        counts = json.loads(run("--set", model, "products", "build", write(lamp), "--json").stdout)
        assert (counts["indexed"], counts["unchanged"], counts["removed"]) == (1, 0, 1)
        assert run("--set", model, "products", "search", "x").stdout.startswith("1. A desk lamp")
        counts = json.loads(run("--set", model, "products", "build", write(lamp), "--json").stdout)
        assert counts["unchanged"] == 1
    told = run(
        "--set", f"plugins.products.model={url}?key=opensesame", "products", "status", status=1
    )
    assert "names no model" in told.stderr
    assert "opensesame" not in told.stderr


@contextmanager
def endpoint() -> Iterator[tuple[str, list[int]]]:
    """Serve an encoder; yield its address, and the lengths of its vectors: the last one counts."""
    lengths = [2]

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            texts = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["input"]
            rows = [{"index": i, "embedding": [1.0] * lengths[-1]} for i in range(len(texts))]
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps({"data": rows}).encode())

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/v1/embeddings", lengths
        server.shutdown()


def test_progress_is_shown_on_a_terminal(
    run: Run, write: Write, lamp: Row, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    json.loads(run("products", "build", write(lamp), "--json").stdout)
    shown = run("products", "build", write(lamp | {"Rating": 1})).stderr
    assert "Building" in shown
    assert "100%" in shown


def test_files_that_cannot_be_written_are_told(run: Run, write: Write, lamp: Row, state: Path):
    state.parent.mkdir(parents=True)
    state.write_text("in the way")
    assert run("products", "build", write(lamp), status=1).stderr
