from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from threading import Event
from typing import Any

import filelock
import numpy as np
import pytest
from support.records import SMALL_CATALOG, record

from standards_mcp_catalog import CatalogUnavailableError
from standards_mcp_catalog.local.index import engine
from standards_mcp_catalog.local.seeding import SeedSource
from standards_mcp_catalog.local.store import LocalStore
from standards_mcp_catalog.records import StandardRecord, text_hash
from standards_mcp_catalog.results import Seed
from standards_mcp_encoders.encoders import open_encoder
from standards_mcp_encoders.errors import EncoderUnavailableError
from standards_mcp_encoders.minilm import MiniLmEncoder, Vectors
from standards_mcp_encoders.spec import MINILM_NAME


class CountingEncoder:
    """Encodes a text by its letters, quickly, and remembers which texts it was given."""

    dimensions = 26

    def __init__(self, name: str = "letters") -> None:
        self.name = name
        self.seen: list[str] = []

    def encode(self, texts: Any) -> Vectors:
        self.seen.extend(texts)
        counts = [[text.lower().count(chr(97 + letter)) for letter in range(26)] for text in texts]
        array = np.array(counts, dtype=np.float32).reshape(len(texts), 26) + 0.01
        return array / np.linalg.norm(array, axis=1, keepdims=True)


@pytest.fixture(autouse=True)
def encoder(monkeypatch: pytest.MonkeyPatch) -> CountingEncoder:
    encoder = CountingEncoder()
    monkeypatch.setattr(
        engine,
        "open_encoder",
        lambda spec, _key, **_: open_encoder(spec) if spec == "none" else encoder,
    )
    return encoder


@pytest.fixture(scope="module")
def minilm() -> MiniLmEncoder:
    return MiniLmEncoder()


@pytest.fixture
def opened(folder: Path) -> Iterator[LocalStore]:
    local = LocalStore(folder)
    yield local
    local.close()


def ids(result: Any) -> list[str]:
    return [hit.record.id for hit in result.hits]


QUESTIONS = [record(1, "Who are they and what is it?"), record(2, "Draw maps.")]


class TestSearch:
    def test_finds_by_meaning_what_shares_no_word_with_the_query(
        self, folder: Path, minilm: MiniLmEncoder, monkeypatch: pytest.MonkeyPatch
    ):
        monkeypatch.setattr(engine, "open_encoder", lambda _spec, _key, **_: minilm)
        with closing(LocalStore(folder)) as local:
            local.upsert(SMALL_CATALOG)
            found = local.search("photosynthesis lesson", 3)
            assert (ids(found)[0], found.notes) == ("R005", ())
            assert local.search("photosynthesis", 3, mode="lexical").hits == ()
            assert ids(local.search("photosynthesis", 3, mode="dense"))[0] == "R005"

    @pytest.mark.parametrize(
        ("records", "query", "found"),
        [
            pytest.param(SMALL_CATALOG, "comparing a fraction", ["R000", "R001"], id="other forms"),
            pytest.param(
                [
                    record(1, "Solve.", content="Depth 0: Ratios\nDepth 1: Solve."),
                    record(2, "Draw."),
                ],
                "ratio",
                ["R001"],
                id="ancestors",
            ),
            pytest.param(
                [record(1, "", content="Depth 0: Astronomy\nDepth 1: "), record(2, "Botany.")],
                "astronomy",
                ["R001"],
                id="ancestors alone",
            ),
            pytest.param(QUESTIONS, "what is a map", ["R002"], id="no words of grammar"),
            pytest.param(QUESTIONS, "who are they", ["R001"], id="words of grammar alone"),
        ],
    )
    def test_reads_words(
        self, opened: LocalStore, records: list[StandardRecord], query: str, found: list[str]
    ):
        opened.upsert(records)
        assert ids(opened.search(query, 5, mode="lexical")) == found

    def test_prefers_a_standard_with_parts_to_the_headings_above_it(self, opened: LocalStore):
        heading, part = (
            record(1, "Number sense here."),
            record(2, "Number sense.", parent_id="R001"),
        )
        opened.upsert([heading, part, record(3, "Count.", parent_id="R002")])
        assert ids(opened.search("number sense", 2)) == ["R002", "R001"]

    def test_collapses_equal_texts_into_one_hit_and_fills_up_with_others(self, opened: LocalStore):
        same = [record(n, "Count objects.") for n in range(150)]
        opened.upsert([*same, record(200, "Count money."), record(201, "count  OBJECTS")])
        hits = opened.search("count objects", 5).hits
        assert [hit.record.id for hit in hits] == ["R000", "R200"]
        assert len(hits[0].also_in) == 150
        opened.upsert([record(500 + n, f"Count objects, case {n}.") for n in range(20)])
        assert len(opened.search("count objects", 15).hits) == 15

    def test_lists_in_also_in_only_what_the_filter_lets_through(self, opened: LocalStore):
        levels = ["03", "04", "04"]
        opened.upsert(
            [record(n, "Same.", education_levels=[level]) for n, level in enumerate(levels)]
        )
        [hit] = opened.search("same", 5, {"education_levels": "04"}).hits
        assert hit.record.id == "R001"
        assert [other.id for other in hit.also_in] == ["R002"]

    def test_puts_the_standard_first_whose_code_is_the_query(self, opened: LocalStore):
        opened.upsert(SMALL_CATALOG)
        hits = opened.search("xq.3", 3).hits
        assert hits[0].record.statement_notation == "XQ.3"
        assert hits[0].score == 1
        assert opened.search("xq.3", 3, {"subject": "Science"}).hits == ()

    def test_says_that_a_catalog_is_empty(self, opened: LocalStore):
        result = opened.search("fractions")
        assert result.hits == ()
        assert "data import" in result.notes[0]
        assert opened.fetch(["R001"]) == opened.find("R001") == opened.suggest("XQ.1") == []
        assert opened.facets().subjects == {}
        assert opened.stats().records == 0


def missing(_spec: str, _key: object, **_: object) -> None:
    raise EncoderUnavailableError("it is not installed")


class TestWithoutVectors:
    def test_search_goes_on_by_words_and_says_so(self, folder: Path):
        with closing(LocalStore(folder, "none")) as local:
            local.upsert(SMALL_CATALOG)
            result = local.search("fractions", 5)
            assert ids(result) == ["R001", "R000"]
            assert result.notes == ('Searched by words only: the configured model is "none".',)
            assert local.stats().model is None

    def test_an_index_built_with_words_only_says_how_to_add_vectors(self, folder: Path):
        with closing(LocalStore(folder, "none")) as words:
            words.upsert(SMALL_CATALOG)
        with closing(LocalStore(folder)) as local:
            assert "data build" in local.search("fractions").notes[0]
            local.build()
            assert local.search("fractions").notes == ()

    def test_an_index_with_vectors_serves_when_the_model_has_gone(
        self, opened: LocalStore, folder: Path, monkeypatch: pytest.MonkeyPatch
    ):
        opened.upsert(SMALL_CATALOG)
        monkeypatch.setattr(engine, "open_encoder", missing)
        with closing(LocalStore(folder)) as local:
            notes = ("Searched by words only: it is not installed.",)
            assert local.search("fractions").notes == notes


class TestRecords:
    def test_that_did_not_change_are_not_counted_and_build_nothing(
        self, opened: LocalStore, folder: Path
    ):
        assert opened.upsert(SMALL_CATALOG) == 8
        before = (folder / "index" / "current").read_text()
        assert opened.upsert(SMALL_CATALOG) == 0
        assert (folder / "index" / "current").read_text() == before
        assert opened.upsert([*SMALL_CATALOG, record(0, "Changed.")]) == 1
        assert (folder / "index" / "current").read_text() != before
        assert opened.fetch(["R000"])[0].description == "Changed."


def test_nothing_is_ever_embedded_twice(opened: LocalStore, encoder: CountingEncoder):
    opened.upsert([record(1, "Count."), record(2, "Count."), record(3, "Add.")])
    assert sorted(encoder.seen) == ["Add.", "Count."]
    opened.delete(["R001", "R002"])
    opened.upsert([record(4, "Count."), record(5, "Halve.")])
    opened.build()
    assert sorted(encoder.seen) == ["Add.", "Count.", "Halve."]


def test_progress_is_told_while_texts_are_embedded(opened: LocalStore):
    told: list[tuple[int, int]] = []
    opened.upsert([record(n, f"Text {n}.") for n in range(700)], lambda *now: told.append(now))
    assert told == [(512, 700), (700, 700)]


def test_an_index_refuses_another_model_by_name(
    opened: LocalStore, folder: Path, monkeypatch: pytest.MonkeyPatch
):
    opened.upsert(SMALL_CATALOG)
    monkeypatch.setattr(engine, "open_encoder", lambda _spec, _key, **_: CountingEncoder("other"))
    local = LocalStore(folder)
    with pytest.raises(CatalogUnavailableError, match=r"'letters'.*'other'.*data build"):
        local.search("fractions")
    local.build()
    assert local.search("fractions").hits
    assert local.stats().model == "other"
    local.close()


def test_an_index_of_an_earlier_built_in_encoder_says_how_to_build_it_again(
    opened: LocalStore, folder: Path, monkeypatch: pytest.MonkeyPatch
):
    class Earlier(MiniLmEncoder):
        name = "all-MiniLM-L6-v2-int8"

    monkeypatch.setattr(engine, "open_encoder", lambda _spec, _key, **_: Earlier())
    opened.upsert(SMALL_CATALOG)
    monkeypatch.setattr(engine, "open_encoder", open_encoder)
    with closing(LocalStore(folder)) as local:
        expected = rf"^the index at .* '{Earlier.name}', .*'{MINILM_NAME}'; run `[^`]*data build`$"
        with pytest.raises(CatalogUnavailableError, match=expected):
            local.search("fractions")
        local.build()
        assert local.search("fractions").hits
        assert local.stats().model == MINILM_NAME


def test_facets_and_stats_tell_what_there_is(opened: LocalStore, folder: Path):
    opened.upsert(SMALL_CATALOG)
    facets = opened.facets()
    assert facets.subjects == {"Language Arts": 2, "Mathematics": 4, "Science": 2}
    assert facets.education_levels == {"03": 4, "04": 1, "05": 3}
    assert facets.jurisdictions == {"Somewhere": 8}
    assert facets.standard_sets == {"Mathematics of Somewhere": 8}
    assert opened.facets() is facets
    stats = opened.stats()
    assert (stats.backend, stats.records, stats.model) == ("local", 8, "letters")
    assert stats.location == str(folder)
    assert stats.size_bytes
    assert stats.details["index"] == "current"
    opened.upsert([record(99, "One more.", license="CC BY 4.0")])
    assert opened.facets().subjects["Mathematics"] == 5
    assert opened.stats().details["licenses"] == {"CC BY 4.0": 9}


def test_stats_tell_when_the_records_last_changed(folder: Path):
    def changed_by(records: Sequence[StandardRecord]) -> str:
        with closing(LocalStore(folder)) as local:
            local.upsert(records)
            local.search("fractions")
        with closing(LocalStore(folder)) as reopened:
            return str(reopened.stats().details["changed"])

    assert changed_by(SMALL_CATALOG).startswith(f"{datetime.now(UTC):%Y-}")
    # As if years had gone by.
    with closing(sqlite3.connect(folder / "catalog.sqlite3")) as database, database:
        long_ago = "2001-02-03T04:05:06+00:00"
        database.execute("UPDATE state SET value = ? WHERE key = 'changed'", (long_ago,))
    assert changed_by(SMALL_CATALOG) == "2001-02-03 04:05 UTC"
    assert changed_by([record(99, "One more.")]) > "2001-02-03 04:05 UTC"


def seed_of(records: Sequence[StandardRecord]) -> Seed:
    texts = sorted({record.description for record in records})
    vectors = CountingEncoder().encode(texts).astype(np.float16)
    hashes = [text_hash(text) for text in texts]
    return Seed(records=records, model="letters", hashes=hashes, vectors=vectors)


def seeded(folder: Path, records: Sequence[StandardRecord], edition: str = "1") -> Any:
    """Open a catalog that begins with records."""
    load = partial(seed_of, records)
    source = SeedSource(name="letters", edition=lambda: edition, load=load)
    return closing(LocalStore(folder, seed=source))


OWN = record(50, "My own.")


class TestASeed:
    def test_fills_a_new_catalog_once_without_embedding(
        self, folder: Path, encoder: CountingEncoder
    ):
        with seeded(folder, SMALL_CATALOG) as local:
            assert local.search("compare fractions", 1).hits
            assert encoder.seen == ["compare fractions"]
            local.delete([each.id for each in SMALL_CATALOG])
        with seeded(folder, SMALL_CATALOG) as again:
            assert again.search("fractions").hits == ()

    def test_comes_before_the_first_import(self, folder: Path):
        with seeded(folder, SMALL_CATALOG) as local:
            assert local.upsert([record(0, "Official text.")]) == 1
            assert local.stats().records == 8
            assert local.fetch(["R000"])[0].description == "Official text."

    def test_of_a_newer_edition_replaces_what_is_as_it_was(
        self, folder: Path, encoder: CountingEncoder
    ):
        official = record(2, "Official text.")
        with seeded(folder, SMALL_CATALOG[:7]) as local:
            assert local.search("fractions", 20).hits
            local.delete(["R001"])
            local.upsert([official])
        newer = [record(n, f"Rewritten, {n} words.") for n in range(6)]
        added = record(9, "New in this edition.")
        with seeded(folder, [*newer, added], "2") as again:
            assert again.fetch(["R000", "R003"]) == [newer[0], newer[3]]
            assert again.fetch(["R001", "R006"]) == []
            assert again.fetch(["R002", "R009"]) == [official, added]
            assert ids(again.search("new in this edition", 1)) == ["R009"]
            assert again.stats().details["index"] == "current"
        assert encoder.seen == ["fractions", "Official text.", "new in this edition"]

    def test_of_a_newer_edition_waits_for_a_write_where_there_is_more(self, folder: Path):
        with seeded(folder, SMALL_CATALOG) as local:
            local.upsert([OWN])
        rewritten = record(0, "Rewritten.")
        with seeded(folder, [rewritten], "2") as again:
            assert again.fetch(["R000"]) == [SMALL_CATALOG[0]]
            again.upsert([record(51, "My own too.")])
            assert again.fetch(["R000"]) == [rewritten]
            assert again.stats().records == 3

    def test_that_was_removed_stays_removed_and_so_does_a_set_of_it(self, folder: Path):
        other, late = (record(n, f"{n}.", standard_set_id="set-other") for n in (20, 22))
        with seeded(folder, [*SMALL_CATALOG, other]) as local:
            local.delete(["R020"])
        with seeded(folder, [*SMALL_CATALOG, other, late, record(30, "Fresh.")], "2") as again:
            assert [each.id for each in again.fetch(["R020", "R022", "R030"])] == ["R030"]
            again.delete([each.id for each in again.records()])
        with seeded(folder, [record(40, "Later still.")], "3") as third:
            assert third.stats().records == 0
            assert "data import starter" in third.search("later").notes[0]

    def test_is_offered_again_to_a_catalog_that_lost_it_or_never_had_it(
        self, folder: Path, encoder: CountingEncoder
    ):
        with closing(LocalStore(folder)) as without:
            without.upsert([OWN])
        with seeded(folder, SMALL_CATALOG) as local:
            assert local.stats().records == 1
            assert local.upsert(local.load_seed()) == 8
            assert encoder.seen == ["My own."]
        rewritten = record(0, "Rewritten.")
        with seeded(folder, [rewritten], "2") as again:
            again.delete(["R050"])
            assert again.fetch(["R000"]) == [rewritten]

    def test_is_safe_when_two_start_at_once(self, folder: Path):
        loaded: list[int] = []

        def load() -> Seed:
            loaded.append(1)
            time.sleep(0.1)
            return seed_of(SMALL_CATALOG)

        source = SeedSource(name="letters", edition=lambda: "1", load=load)
        stores = [LocalStore(folder, seed=source) for _ in range(3)]
        with ThreadPoolExecutor(3) as pool:
            found = list(pool.map(lambda each: len(each.search("time", 8).hits), stores))
        assert (found, loaded) == ([8, 8, 8], [1])
        for each in stores:
            each.close()


class TestSeveralUsers:
    def test_readers_see_a_new_index_with_their_next_search(self, opened: LocalStore, folder: Path):
        opened.upsert(SMALL_CATALOG)
        with closing(LocalStore(folder)) as reader:
            assert len(reader.search("fractions", 20).hits) == 8
            opened.upsert([record(90, "Simplify fractions.")])
            assert len(reader.search("fractions", 20).hits) == 9

    @pytest.mark.slow
    def test_searches_run_in_many_threads_while_one_writes(self, opened: LocalStore):
        opened.upsert(SMALL_CATALOG)
        stop = Event()

        def read(_: int) -> None:
            while not stop.is_set():
                assert len(opened.search("fractions and time", 20).hits) >= 8
                opened.find("XQ.1")
                opened.facets()

        with ThreadPoolExecutor(4) as pool:
            reading = pool.map(read, range(4))
            for number in range(5):
                opened.upsert([record(100 + number, f"Extra {number}.")])
            stop.set()
            list(reading)  # raises what they raise

    def test_a_second_writer_is_refused_when_the_first_does_not_end(self, folder: Path):
        folder.mkdir()
        with closing(LocalStore(folder, lock_timeout=0.1)) as local:
            with (
                filelock.FileLock(folder / "catalog.lock"),
                pytest.raises(CatalogUnavailableError, match=r"another process .* try again"),
            ):
                local.upsert(SMALL_CATALOG)
            assert local.upsert(SMALL_CATALOG) == 8

    def test_two_builders_at_once_both_end_well(self, opened: LocalStore, folder: Path):
        opened.upsert(SMALL_CATALOG)
        with closing(LocalStore(folder)) as other, ThreadPoolExecutor(4) as pool:
            list(pool.map(LocalStore.build, (opened, other, opened, other)))
        assert len(opened.search("fractions", 20).hits) == 8
        assert len([path for path in (folder / "index").iterdir() if path.is_dir()]) == 2


_KILLED_BUILD = """
import os, sys
from functools import partial
from pathlib import Path
from standards_mcp_catalog.local.index import generation
from standards_mcp_catalog.records import StandardRecord
from standards_mcp_catalog.local.store import LocalStore

write_durably = generation._write_durably
def stop_before_the_swap(path, text):
    if path.name == "current":
        print("ready", flush=True)
        sys.stdin.read()
    write_durably(path, text)
generation._write_durably = stop_before_the_swap
store = LocalStore(Path(sys.argv[1]), "none")
new = store.fetch(["R001"])[0].model_copy(update={"id": "R900", "description": "Juggle."})
store.upsert([new])
"""


@pytest.mark.slow
def test_a_build_that_is_killed_leaves_the_old_index_serving(folder: Path):
    local = LocalStore(folder, "none")
    local.upsert(SMALL_CATALOG)
    command = [sys.executable, "-c", _KILLED_BUILD, str(folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline().strip() == b"ready"
        os.kill(process.pid, signal.SIGKILL)
    assert len(list((folder / "index").glob("g*"))) == 2
    result = local.search("juggle fractions", 20)
    assert ids(result) == ["R001", "R000"]
    assert "latest changes of the standards cannot be searched yet" in result.notes[-1]
    assert local.check() == result.notes
    assert local.stats().details["index"] == "outdated"
    local.build()
    assert "latest changes" not in " ".join(local.check())
    assert "R900" in ids(local.search("juggle fractions", 20))
    assert len(list((folder / "index").glob("g*"))) == 2
    local.close()


def test_nothing_heavy_is_imported_before_the_first_search(folder: Path):
    code = (
        "import anyio, pathlib, sys, standards_mcp_catalog.local.catalog as local\n"
        "catalog = local.LocalCatalog(pathlib.Path(sys.argv[1]))\n"
        "anyio.run(catalog.stats)\n"
        "anyio.run(catalog.aclose)\n"
        "heavy = {'numpy', 'onnxruntime', 'tantivy', 'tokenizers'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    command = [sys.executable, "-c", code, str(folder)]
    done = subprocess.run(command, capture_output=True, check=True)
    assert done.stdout.strip() == b"[]"


def test_a_database_that_was_moved_away_leaves_nothing_to_the_new_one(folder: Path):
    folder.mkdir()
    (folder / "catalog.sqlite3-wal").write_bytes(b"what another database left behind")
    with closing(LocalStore(folder)) as local:
        assert local.upsert(SMALL_CATALOG) == local.stats().records == len(SMALL_CATALOG)


def with_sql(statement: str) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        with closing(sqlite3.connect(path)) as connection:
            connection.execute(statement)

    return write


@pytest.mark.parametrize(
    ("write", "message"),
    [
        (lambda path: path.write_bytes(b"not a database at all, " * 100), r"catalog\.sqlite3"),
        (with_sql("CREATE TABLE recipes (name)"), "is not a catalog of standards"),
        (with_sql("PRAGMA user_version = 99"), "has the schema 99.*; upgrade with"),
        (with_sql("PRAGMA user_version = 1"), "has the schema 1.*; move it away and import"),
    ],
    ids=["no database", "of another program", "of a newer version", "of an earlier version"],
)
def test_a_foreign_database_is_named_and_left_alone(
    folder: Path, write: Callable[[Path], None], message: str
):
    if "schema" in message:
        with closing(LocalStore(folder, "none")) as local:
            local.upsert(SMALL_CATALOG)
    folder.mkdir(exist_ok=True)
    write(folder / "catalog.sqlite3")
    with pytest.raises(CatalogUnavailableError, match=message):
        LocalStore(folder).search("x")
