"""Career: matches of 10,000 atoms beside a plain loop, runs of the index, events and the audit log.

usage: .venv-career/bin/python benchmarks/career.py [--atoms 10000] [--calls 100] [--postgres URL]

Atoms and opportunities of ten requirements are made of 5,000 made-up words, the frequent ones more
often. The plain loop scores every verified atom for every requirement, with sets that are made
once. Everything is in one SQLite file, and the stub makes the vectors, which are in memory and then
in a folder of LanceDB. Then also a Redis coordinates the interactions, if `redis-server` is there.
With --postgres, calls alternate between SQLite and that empty database, and nothing else is done.
"""

from __future__ import annotations

import argparse
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

from pydantic import SecretStr

from standards_mcp_career.audit import Entry
from standards_mcp_career.interactions import apply_event
from standards_mcp_career.primitives import tokens
from standards_mcp_career.records import (
    Atom,
    Interaction,
    Opportunity,
    Requirement,
)
from standards_mcp_career.scoring import Options, words_of
from standards_mcp_career.service import Career, open_career
from standards_mcp_career.settings import CareerSettings, Strategy
from standards_mcp_career.tables import upsert

WORDS = [f"word{number}" for number in range(5000)]
WEIGHTS = [1 / rank for rank in range(1, len(WORDS) + 1)]
EMPTY = """
import re, sys
from standards_mcp_career.plugin import CareerPlugin
if sys.argv[1:]:
    from standards_mcp_career.scoring import Options
    from standards_mcp_career.service import open_career
    from standards_mcp_career.settings import CareerSettings
    career = open_career(CareerSettings.model_validate_json(sys.argv[1]))
    career.indexing.build("atoms")
    career.matching.match_opportunity(options=Options("hybrid", 25, 25), opportunity_id="o-0")
print(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1])
"""


def text(chance: random.Random, count: int) -> str:
    return " ".join(chance.choices(WORDS, WEIGHTS, k=count))


def fill(career: Career, count: int) -> tuple[list[Atom], list[Opportunity]]:
    chance = random.Random(7)  # noqa: S311  - the same words in each run
    records = [
        Atom(f"a-{number:05}", title=text(chance, 4), claim=text(chance, 14), verified=True)
        for number in range(count)
    ]
    wanted = [
        Opportunity(
            f"o-{number}",
            "A company",
            text(chance, 3),
            requirements=tuple(Requirement(text(chance, 7)) for _ in range(10)),
        )
        for number in range(50)
    ]
    with career.store.writing() as connection:
        upsert(connection, records)
        upsert(connection, wanted)
        started = [Interaction(f"i-{number}", "o-0") for number in range(1000)]
        upsert(connection, started)
    return records, wanted


def timed(calls: int, call: Callable[[int], object]) -> list[float]:
    times = list[float]()
    for number in range(calls):
        began = time.perf_counter()
        call(number)
        times.append((time.perf_counter() - began) * 1000)
    return times


def shown(times: Sequence[float]) -> str:
    p95 = statistics.quantiles(times, n=20)[18]
    return f"p50 {statistics.median(times):7.2f} ms, p95 {p95:7.2f} ms"


def plain_loop(words: dict[str, frozenset[str]], wanted: Opportunity) -> list[tuple[float, str]]:
    best = list[tuple[float, str]]()
    for requirement in wanted.requirements:
        asked = set(tokens(requirement.text))
        scores = ((-len(asked & has) / len(asked), atom_id) for atom_id, has in words.items())
        best.append(min(scores))
    return best


def measure(count: int, calls: int, settings: CareerSettings) -> None:
    print(f"tokens: {settings.tokens}, vectors: {settings.vector_backend}")
    with closing(open_career(settings)) as career:
        records, wanted = fill(career, count)
        words = {each.atom_id: words_of(each) for each in records}
        loop = timed(calls, lambda number: plain_loop(words, wanted[number % len(wanted)]))
        print(f"a plain loop                {shown(loop)}")
        for name in ("first", "unchanged"):
            (took,) = timed(1, lambda _: career.indexing.build("atoms"))
            print(f"the {name} index  {took / 1000:.2f} s")
        strategies: tuple[Strategy, ...] = ("lexical", "hybrid", "semantic")
        for strategy in strategies:

            def match(number: int, strategy: Strategy = strategy) -> object:
                return career.matching.match_opportunity(
                    options=Options(strategy, 25, 25), opportunity_id=f"o-{number % len(wanted)}"
                )

            (first,) = timed(1, match)
            times = timed(calls, match)
            ratio = statistics.median(loop) / statistics.median(times)
            print(
                f"{strategy:10} with its log  {shown(times)}, {ratio:.1f} times the loop's speed, "
                f"the first in {first / 1000:.2f} s"
            )
        events = timed(
            calls,
            lambda number: apply_event(
                career.coordinator, career.audit, f"i-{number}", "Prepare", "key"
            ),
        )
        name = "Redis" if settings.redis else "SQLite"
        print(f"an event, {name:6}            {shown(events)}")
        entry = Entry("IndexedArtifact", {"artifact_id": "a", "stale": False})
        with career.store.writing() as connection:
            career.audit.write(connection, "long", [entry] * 100_000)
        (took,) = timed(1, lambda _: career.audit.verify("long"))
        print(f"100,000 events verified     {took / 1000:.2f} s")
    given = settings.model_dump_json(include={"db", "tokens", "vector_backend", "lancedb_path"})
    alone, filled = (peak_kilobytes(*more) for more in ((), (given,)))
    print(f"memory above the plugin alone  {(filled - alone) / 1024:.0f} MiB")


def compare(count: int, calls: int, *stores: CareerSettings) -> None:
    """Measure a lexical match and an event in two databases, in turns."""
    with ExitStack() as stack:
        careers = [stack.enter_context(closing(open_career(settings))) for settings in stores]
        for career in careers:
            fill(career, count)

        def match(career: Career, number: int) -> object:
            return career.matching.match_opportunity(
                options=Options("lexical", 25, 25), opportunity_id=f"o-{number % 50}"
            )

        def apply(career: Career, number: int) -> object:
            return apply_event(career.coordinator, career.audit, f"i-{number}", "Prepare", "key")

        for name, call in (("a match", match), ("an event", apply)):
            times: list[list[float]] = [[], []]
            for number in range(calls):
                for career, taken in zip(careers, times, strict=True):
                    began = time.perf_counter()
                    call(career, number)
                    taken.append((time.perf_counter() - began) * 1000)
            ratio = statistics.median(times[1]) / statistics.median(times[0])
            lines = map(shown, times)
            print(f"{name}: SQLite {next(lines)}; PostgreSQL {next(lines)}; ratio {ratio:.2f}")


def peak_kilobytes(*arguments: str) -> int:
    command = [sys.executable, "-c", EMPTY, *arguments]
    return int(subprocess.run(command, capture_output=True, check=True).stdout)


@contextmanager
def redis_of(folder: Path) -> Generator[SecretStr | None]:
    """Run a Redis that writes down each change before it answers, if there is one."""
    program = shutil.which("redis-server")
    if program is None:
        yield None
        return
    socket = folder / "redis.sock"
    options = ("--port", "0", "--unixsocket", str(socket), "--dir", str(folder))
    kept = ("--appendonly", "yes", "--appendfsync", "always")
    with subprocess.Popen([program, *options, *kept], stdout=subprocess.DEVNULL) as process:
        while not socket.exists():
            time.sleep(0.05)
        try:
            yield SecretStr(f"unix://{socket}")
        finally:
            process.terminate()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--atoms", type=int, default=10_000)
    parser.add_argument("--calls", type=int, default=100)
    parser.add_argument("--postgres", type=SecretStr, metavar="URL")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, redis_of(Path(name)) as redis:
        folder = Path(name)
        if given.postgres:
            file = CareerSettings(db=folder / "career.db")
            compare(given.atoms, given.calls, file, CareerSettings(postgres=given.postgres))
            return
        for settings in (
            CareerSettings(db=folder / "career.db", tokens="original"),
            CareerSettings(db=folder / "meaningful.db"),
            CareerSettings(
                db=folder / "beside.db",
                tokens="original",
                redis=redis,
                vector_backend="lancedb",
                lancedb_path=folder / "vectors",
            ),
        ):
            measure(given.atoms, given.calls, settings)


if __name__ == "__main__":
    main()
