from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from threading import Event, Thread
from typing import Any

import filelock
import numpy as np
import pytest

from standards_mcp_catalog import CatalogUnavailableError
from standards_mcp_catalog.base import Seed
from standards_mcp_catalog.local.index import engine
from standards_mcp_catalog.local.seeding import SeedSource
from standards_mcp_catalog.local.store import LocalStore
from standards_mcp_catalog.records import StandardRecord, text_hash
from standards_mcp_encoders.encoders import open_encoder
from standards_mcp_encoders.errors import EncoderUnavailableError
from standards_mcp_encoders.minilm import MiniLmEncoder, Vectors

MakeRecord = Callable[..., StandardRecord]


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


class TestSearch:
    def test_finds_by_meaning_what_shares_no_word_with_the_query(
        self, folder: Path, small_catalog: list[StandardRecord], minilm: MiniLmEncoder,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:  # fmt: skip
        monkeypatch.setattr(engine, "open_encoder", lambda _spec, _key, **_: minilm)
        local = LocalStore(folder)
        local.upsert(small_catalog)
        hits = local.search("photosynthesis lesson", 3).hits
        assert hits[0].record.id == "R005"
        assert not local.search("photosynthesis lesson", 3).notes
        assert local.search("photosynthesis", 3, mode="lexical").hits == ()
        assert ids(local.search("photosynthesis", 3, mode="dense"))[0] == "R005"
        local.close()

    def test_finds_other_forms_of_a_word(
        self, opened: LocalStore, small_catalog: list[StandardRecord]
    ) -> None:
        opened.upsert(small_catalog)
        assert ids(opened.search("comparing a fraction", 1, mode="lexical")) == ["R000"]

    def test_reads_the_ancestors_too(self, opened: LocalStore, record: MakeRecord) -> None:
        content = "Depth 0: Ratios and Proportions\nDepth 1: Solve problems."
        opened.upsert([record(1, "Solve problems.", content=content), record(2, "Solve riddles.")])
        assert ids(opened.search("proportion", 5, mode="lexical")) == ["R001"]

    def test_prefers_a_standard_with_parts_to_the_headings_above_it(
        self, opened: LocalStore, record: MakeRecord
    ) -> None:
        opened.upsert(
            [
                record(1, "Number sense here."),
                record(2, "Number sense hers.", parent_id="R001"),
                record(3, "Count.", parent_id="R002"),
            ]
        )
        assert ids(opened.search("number sense", 2)) == ["R002", "R001"]

    def test_reads_words_of_grammar_only_when_there_are_no_others(
        self, opened: LocalStore, record: MakeRecord
    ) -> None:
        opened.upsert([record(1, "Who are they and what is it?"), record(2, "Draw maps.")])
        assert ids(opened.search("what is a map", 5, mode="lexical")) == ["R002"]
        assert ids(opened.search("who are they", 5, mode="lexical")) == ["R001"]

    def test_collapses_equal_texts_into_one_hit(
        self, opened: LocalStore, record: MakeRecord
    ) -> None:
        same = [record(n, "Count objects.") for n in range(150)]
        opened.upsert([*same, record(200, "Count money."), record(201, "count  OBJECTS")])
        hits = opened.search("count objects", 5).hits
        assert [hit.record.id for hit in hits] == ["R000", "R200"]
        assert len(hits[0].also_in) == 150

    def test_fills_up_when_equal_texts_take_all_the_places(
        self, opened: LocalStore, record: MakeRecord
    ) -> None:
        same = [record(n, "Count objects to twenty.") for n in range(300)]
        others = [record(500 + n, f"Count objects, case {n}.") for n in range(20)]
        opened.upsert(same + others)
        assert len(opened.search("count objects to twenty", 15).hits) == 15

    def test_lists_in_also_in_only_what_the_filter_lets_through(
        self, opened: LocalStore, record: MakeRecord
    ) -> None:
        levels = ["03", "04", "04"]
        opened.upsert(
            [record(n, "Same.", education_levels=[level]) for n, level in enumerate(levels)]
        )
        [hit] = opened.search("same", 5, {"education_levels": "04"}).hits
        assert hit.record.id == "R001"
        assert [other.id for other in hit.also_in] == ["R002"]

    def test_puts_the_standard_first_whose_code_is_the_query(
        self, opened: LocalStore, small_catalog: list[StandardRecord]
    ) -> None:
        opened.upsert(small_catalog)
        hits = opened.search("xq.3", 3).hits
        assert hits[0].record.statement_notation == "XQ.3"
        assert hits[0].score == 1
        assert opened.search("xq.3", 3, {"subject": "Science"}).hits == ()

    def test_says_that_a_catalog_is_empty(self, opened: LocalStore) -> None:
        result = opened.search("fractions")
        assert result.hits == ()
        assert "data import" in result.notes[0]
        assert opened.fetch(["R001"]) == opened.find("R001") == opened.suggest("XQ.1") == []
        assert opened.facets().subjects == {}
        assert opened.stats().records == 0


class TestWithoutVectors:
    def test_search_goes_on_by_words_and_says_so(
        self, folder: Path, small_catalog: list[StandardRecord]
    ) -> None:
        local = LocalStore(folder, "none")
        local.upsert(small_catalog)
        result = local.search("fractions", 5)
        assert ids(result) == ["R001", "R000"]
        assert result.notes == ('Searched by words only: the configured model is "none".',)
        assert local.stats().model is None
        local.close()

    def test_an_index_built_with_words_only_says_how_to_add_vectors(
        self, folder: Path, small_catalog: list[StandardRecord], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        words = LocalStore(folder, "none")
        words.upsert(small_catalog)
        words.close()
        monkeypatch.setattr(engine, "open_encoder", lambda _spec, _key, **_: CountingEncoder())
        local = LocalStore(folder)
        assert "data build" in local.search("fractions").notes[0]
        local.build()
        assert local.search("fractions").notes == ()
        local.close()

    def test_an_index_with_vectors_serves_when_the_model_has_gone(
        self, opened: LocalStore, folder: Path, small_catalog: list[StandardRecord],
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:  # fmt: skip
        opened.upsert(small_catalog)

        def missing(_spec: str, _key: object, **_: object) -> None:
            raise EncoderUnavailableError("it is not installed")

        monkeypatch.setattr(engine, "open_encoder", missing)
        local = LocalStore(folder)
        assert local.search("fractions").notes == ("Searched by words only: it is not installed.",)
        local.close()


class TestRecords:
    def test_that_did_not_change_are_not_counted_and_build_nothing(
        self, opened: LocalStore, folder: Path, small_catalog: list[StandardRecord],
        record: MakeRecord,
    ) -> None:  # fmt: skip
        assert opened.upsert(small_catalog) == 8
        before = (folder / "index" / "current").read_text()
        assert opened.upsert(small_catalog) == 0
        assert (folder / "index" / "current").read_text() == before
        assert opened.upsert([*small_catalog, record(0, "Changed.")]) == 1
        assert (folder / "index" / "current").read_text() != before
        assert opened.fetch(["R000"])[0].description == "Changed."

    def test_without_a_description_are_found_by_their_ancestors(
        self, opened: LocalStore, record: MakeRecord
    ) -> None:
        opened.upsert(
            [record(1, "", content="Depth 0: Astronomy\nDepth 1: "), record(2, "Botany.")]
        )
        assert ids(opened.search("astronomy", 1, mode="lexical")) == ["R001"]


def test_nothing_is_ever_embedded_twice(
    opened: LocalStore, encoder: CountingEncoder, record: MakeRecord
) -> None:
    opened.upsert([record(1, "Count."), record(2, "Count."), record(3, "Add.")])
    assert sorted(encoder.seen) == ["Add.", "Count."]
    opened.delete(["R001", "R002"])
    opened.upsert([record(4, "Count."), record(5, "Halve.")])
    opened.build()
    assert sorted(encoder.seen) == ["Add.", "Count.", "Halve."]


def test_progress_is_told_while_texts_are_embedded(opened: LocalStore, record: MakeRecord) -> None:
    told: list[tuple[int, int]] = []
    opened.upsert([record(n, f"Text {n}.") for n in range(700)], lambda *now: told.append(now))
    assert told == [(512, 700), (700, 700)]


def test_an_index_refuses_another_model_by_name(
    opened: LocalStore, folder: Path, small_catalog: list[StandardRecord],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    opened.upsert(small_catalog)
    monkeypatch.setattr(engine, "open_encoder", lambda _spec, _key, **_: CountingEncoder("other"))
    local = LocalStore(folder)
    with pytest.raises(CatalogUnavailableError, match=r"'letters'.*'other'.*data build"):
        local.search("fractions")
    local.build()
    assert local.search("fractions").hits
    assert local.stats().model == "other"
    local.close()


def test_an_index_that_was_built_with_a_key_in_the_address_serves_without_it(
    folder: Path, small_catalog: list[StandardRecord], monkeypatch: pytest.MonkeyPatch
) -> None:
    def open_with(query: str) -> LocalStore:
        encoder = CountingEncoder(f"https://host.example/v1/embeddings{query}#m")
        monkeypatch.setattr(engine, "open_encoder", lambda _spec, _key, **_: encoder)
        return LocalStore(folder)

    with closing(open_with("?key=opensesame")) as local:
        local.upsert(small_catalog)
    with closing(open_with("")) as local:
        assert local.search("fractions").hits
        assert local.stats().model == "https://host.example/v1/embeddings#m"


def test_facets_and_stats_tell_what_there_is(
    opened: LocalStore, folder: Path, small_catalog: list[StandardRecord], record: MakeRecord
) -> None:
    opened.upsert(small_catalog)
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


def test_stats_tell_when_the_records_last_changed(
    folder: Path, small_catalog: list[StandardRecord], record: MakeRecord
) -> None:
    def changed() -> str:
        reopened = LocalStore(folder)
        try:
            return str(reopened.stats().details["changed"])
        finally:
            reopened.close()

    local = LocalStore(folder)
    local.upsert(small_catalog)
    assert changed().startswith(f"{datetime.now(UTC):%Y-}")
    # As if years had gone by.
    with sqlite3.connect(folder / "catalog.sqlite3") as database:
        long_ago = "2001-02-03T04:05:06+00:00"
        database.execute("UPDATE state SET value = ? WHERE key = 'changed'", (long_ago,))
    database.close()
    local.upsert(small_catalog)
    local.search("fractions")
    assert changed() == "2001-02-03 04:05 UTC"
    local.upsert([record(99, "One more.")])
    local.close()
    assert changed() > "2001-02-03 04:05 UTC"


class TestASeed:
    def seed(self, records: list[StandardRecord]) -> Seed:
        texts = sorted({record.description for record in records})
        vectors = CountingEncoder().encode(texts).astype(np.float16)
        hashes = [text_hash(text) for text in texts]
        return Seed(records=records, model="letters", hashes=hashes, vectors=vectors)

    def source(self, records: list[StandardRecord], edition: str = "1") -> SeedSource:
        return SeedSource(name="letters", edition=lambda: edition, load=lambda: self.seed(records))

    def test_fills_a_new_catalog_once_without_embedding(
        self, folder: Path, encoder: CountingEncoder, small_catalog: list[StandardRecord]
    ) -> None:
        local = LocalStore(folder, seed=self.source(small_catalog))
        assert local.search("compare fractions", 1).hits
        assert encoder.seen == ["compare fractions"]
        local.delete([each.id for each in small_catalog])
        local.close()
        again = LocalStore(folder, seed=self.source(small_catalog))
        assert again.search("fractions").hits == ()
        again.close()

    def test_comes_before_the_first_import(
        self, folder: Path, small_catalog: list[StandardRecord],
        record: MakeRecord,
    ) -> None:  # fmt: skip
        local = LocalStore(folder, seed=self.source(small_catalog))
        assert local.upsert([record(0, "Official text.")]) == 1
        assert local.stats().records == 8
        assert local.fetch(["R000"])[0].description == "Official text."
        local.close()

    def test_is_not_added_to_a_catalog_that_exists(
        self, opened: LocalStore, folder: Path, small_catalog: list[StandardRecord],
        record: MakeRecord,
    ) -> None:  # fmt: skip
        opened.upsert([record(50, "My own.")])
        local = LocalStore(folder, seed=self.source(small_catalog))
        assert local.stats().records == 1
        local.close()

    def test_of_a_newer_edition_replaces_what_is_as_it_was(
        self, folder: Path, encoder: CountingEncoder, small_catalog: list[StandardRecord],
        record: MakeRecord,
    ) -> None:  # fmt: skip
        local = LocalStore(folder, seed=self.source(small_catalog[:7]))
        assert local.search("fractions", 20).hits
        local.delete(["R001"])
        local.upsert([record(2, "Official text.")])
        local.close()
        newer = [record(n, f"Rewritten, {n} words.") for n in (0, 1, 2, 3, 4, 5)]
        added = record(9, "New in this edition.")
        again = LocalStore(folder, seed=self.source([*newer, added], "2"))
        assert again.fetch(["R000", "R003"]) == [newer[0], newer[3]]
        assert again.fetch(["R001", "R006"]) == []
        assert again.fetch(["R002", "R009"]) == [record(2, "Official text."), added]
        assert ids(again.search("new in this edition", 1)) == ["R009"]
        assert again.stats().details["index"] == "current"
        assert encoder.seen == ["fractions", "Official text.", "new in this edition"]
        again.close()

    def test_of_a_newer_edition_waits_for_a_write_where_there_is_more_than_a_seed(
        self, folder: Path, small_catalog: list[StandardRecord], record: MakeRecord
    ) -> None:
        local = LocalStore(folder, seed=self.source(small_catalog))
        local.upsert([record(50, "My own.")])
        local.close()
        again = LocalStore(folder, seed=self.source([record(0, "Rewritten.")], "2"))
        assert again.fetch(["R000"]) == [small_catalog[0]]
        again.upsert([record(51, "My own too.")])
        assert again.fetch(["R000"]) == [record(0, "Rewritten.")]
        assert again.stats().records == 3
        again.close()

    def test_that_was_removed_stays_removed_and_so_does_a_set_of_it(
        self, folder: Path, small_catalog: list[StandardRecord], record: MakeRecord
    ) -> None:
        other = [record(n, f"Other {n}.", standard_set_id="set-other") for n in (20, 21)]
        local = LocalStore(folder, seed=self.source([*small_catalog, *other]))
        local.delete(["R020", "R021"])
        local.close()
        more = [record(22, "Late.", standard_set_id="set-other"), record(30, "Fresh.")]
        again = LocalStore(folder, seed=self.source([*small_catalog, *other, *more], "2"))
        assert [each.id for each in again.fetch(["R020", "R022", "R030"])] == ["R030"]
        again.delete([each.id for each in again.records()])
        again.close()
        third = LocalStore(folder, seed=self.source([record(40, "Later still.")], "3"))
        assert third.stats().records == 0
        assert "data import starter" in third.search("later").notes[0]
        third.close()

    def test_is_taken_up_once_in_each_edition_when_two_versions_share_a_catalog(
        self, folder: Path, record: MakeRecord
    ) -> None:
        for edition in ("1", "2", "1", "2"):
            text = f"Edition {edition}."
            local = LocalStore(folder, seed=self.source([record(1, text)], edition))
            local.search("edition")
            revision = (folder / "index" / "current").read_text()
            local.close()
        assert revision.startswith("g2-")

    def test_is_offered_again_to_a_catalog_that_lost_it_or_never_had_it(
        self, folder: Path, encoder: CountingEncoder, small_catalog: list[StandardRecord],
        record: MakeRecord,
    ) -> None:  # fmt: skip
        without = LocalStore(folder)
        without.upsert([record(50, "My own.")])
        without.close()
        local = LocalStore(folder, seed=self.source(small_catalog))
        assert local.stats().records == 1
        assert local.upsert(local.load_seed()) == 8
        assert encoder.seen == ["My own."]
        local.close()
        again = LocalStore(folder, seed=self.source([record(0, "Rewritten.")], "2"))
        again.delete(["R050"])
        assert again.fetch(["R000"]) == [record(0, "Rewritten.")]
        again.close()

    def test_is_safe_when_two_start_at_once(
        self, folder: Path, small_catalog: list[StandardRecord]
    ) -> None:
        seeded: list[int] = []

        def seed() -> Seed:
            seeded.append(1)
            time.sleep(0.1)
            return self.seed(small_catalog)

        source = SeedSource(name="letters", edition=lambda: "1", load=seed)
        stores = [LocalStore(folder, seed=source) for _ in range(3)]
        found: list[int] = []
        threads = [
            Thread(target=lambda each=each: found.append(len(each.search("time", 8).hits)))
            for each in stores
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert found == [8, 8, 8]
        assert seeded == [1]
        for each in stores:
            each.close()


class TestSeveralUsers:
    def test_readers_see_a_new_index_with_their_next_search(
        self, opened: LocalStore, folder: Path, small_catalog: list[StandardRecord],
        record: MakeRecord,
    ) -> None:  # fmt: skip
        opened.upsert(small_catalog)
        reader = LocalStore(folder)
        assert len(reader.search("fractions", 20).hits) == 8
        opened.upsert([record(90, "Simplify fractions.")])
        assert len(reader.search("fractions", 20).hits) == 9
        reader.close()

    @pytest.mark.slow
    def test_searches_run_in_many_threads_while_one_writes(
        self, opened: LocalStore, small_catalog: list[StandardRecord], record: MakeRecord
    ) -> None:
        opened.upsert(small_catalog)
        stop, failures = Event(), list[BaseException]()

        def read() -> None:
            try:
                while not stop.is_set():
                    assert len(opened.search("fractions and time", 20).hits) >= 8
                    opened.find("XQ.1")
                    opened.facets()
            except BaseException as error:  # noqa: BLE001  reported below
                failures.append(error)

        threads = [Thread(target=read) for _ in range(4)]
        for thread in threads:
            thread.start()
        for number in range(5):
            opened.upsert([record(100 + number, f"Extra {number}.")])
        stop.set()
        for thread in threads:
            thread.join()
        assert failures == []

    def test_a_second_writer_is_refused_when_the_first_does_not_end(
        self, folder: Path, small_catalog: list[StandardRecord]
    ) -> None:
        folder.mkdir()
        local = LocalStore(folder, lock_timeout=0.1)
        with (
            filelock.FileLock(folder / "catalog.lock"),
            pytest.raises(CatalogUnavailableError, match=r"another process .* try again"),
        ):
            local.upsert(small_catalog)
        assert local.upsert(small_catalog) == 8
        local.close()

    def test_two_builders_at_once_both_end_well(
        self, opened: LocalStore, folder: Path, small_catalog: list[StandardRecord]
    ) -> None:
        opened.upsert(small_catalog)
        other = LocalStore(folder)
        threads = [Thread(target=each.build) for each in (opened, other, opened, other)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(opened.search("fractions", 20).hits) == 8
        assert len([path for path in (folder / "index").iterdir() if path.is_dir()]) == 2
        other.close()


_KILLED_BUILD = """
import os, sys
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
def test_a_build_that_is_killed_leaves_the_old_index_serving(
    folder: Path, small_catalog: list[StandardRecord]
) -> None:
    local = LocalStore(folder, "none")
    local.upsert(small_catalog)
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


class TestAForeignDatabase:
    def test_that_is_no_database_is_named(self, folder: Path) -> None:
        folder.mkdir()
        (folder / "catalog.sqlite3").write_bytes(b"not a database at all, " * 100)
        with pytest.raises(CatalogUnavailableError, match=r"catalog\.sqlite3"):
            LocalStore(folder).search("x")

    def test_of_another_program_is_left_alone(self, folder: Path) -> None:
        folder.mkdir()
        connection = sqlite3.connect(folder / "catalog.sqlite3")
        connection.execute("CREATE TABLE recipes (name)")
        connection.close()
        with pytest.raises(CatalogUnavailableError, match="is not a catalog of standards"):
            LocalStore(folder).search("x")

    def test_of_a_newer_version_asks_for_an_upgrade(
        self, opened: LocalStore, folder: Path, small_catalog: list[StandardRecord]
    ) -> None:
        opened.upsert(small_catalog)
        opened.close()
        connection = sqlite3.connect(folder / "catalog.sqlite3")
        connection.execute("PRAGMA user_version = 99")
        connection.close()
        with pytest.raises(CatalogUnavailableError, match="newer standards-mcp"):
            opened.search("x")


class TestTheAsynchronousCatalog:
    def test_imports_nothing_heavy_before_the_first_call(self) -> None:
        code = (
            "import sys, standards_mcp_catalog.local.catalog as local, pathlib\n"
            "local.LocalCatalog(pathlib.Path('nowhere'))\n"
            "heavy = {'numpy', 'onnxruntime', 'tantivy', 'tokenizers'}\n"
            "print(sorted(heavy & set(sys.modules)))"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
        assert done.stdout.strip() == b"[]"

    def test_imports_nothing_heavy_to_be_closed_without_a_search(self, folder: Path) -> None:
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


def test_a_database_that_was_moved_away_leaves_nothing_to_the_new_one(
    folder: Path, small_catalog: list[StandardRecord]
) -> None:
    old = folder / "catalog.sqlite3"
    folder.mkdir(parents=True, exist_ok=True)
    old.with_name("catalog.sqlite3-wal").write_bytes(b"what another database left behind")
    local = LocalStore(folder)
    assert local.upsert(small_catalog) == len(small_catalog)
    assert local.stats().records == len(small_catalog)
    local.close()
