"""How far a probability of `alignment align` can be trusted, and how many lessons an hour takes.

    python benchmarks/align.py --queries Q.jsonl.gz --corpus C.jsonl.gz --index DIR [--write]

Each query searches its own framework, with its grade and without. For each of the sources of the
queries, a logistic regression and a correction of its probabilities are fitted on all other sources
and predict this one. ``--write`` writes the fit on all sources to the plugin, with the precisions
that the held-out predictions support, and the reliability curve to ``docs/images``. The index holds
the corpus, see `retrieval.py --index`. A hit counts as right if it, or a standard of its framework
with the same text, is a label. This takes three minutes.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from retrieval import lines

from standards_mcp_alignment.correlation.calibration import load_calibration
from standards_mcp_alignment.correlation.correlator import Correlator
from standards_mcp_alignment.correlation.features import DEPTH, FEATURES, features_of
from standards_mcp_alignment.correlation.scope import open_scope
from standards_mcp_alignment.inputs import Item
from standards_mcp_catalog import Catalog, open_local
from standards_mcp_catalog.vocabulary.grades import parse_grades

Array = npt.NDArray[np.float64]
ROOT = Path(__file__).parents[1]
CALIBRATION = ROOT / "plugins/alignment/standards_mcp_alignment/correlation/calibration.json"
CURVE = ROOT / "docs/images/align-reliability.svg"
PAIRS = 5  # pairs of a query, as in a report with --top 5
BINS = 10
PRECISIONS = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
LEAST_PAIRS = 50  # held-out pairs that a supported precision rests on
STEPS = 40  # parts of the pairs that the second step corrects
SOURCE_PAIRS = 500  # a source with more pairs weighs no more than this


@dataclass
class Pairs:
    """Pairs of a query and a hit: features, labels (1 or 0), sources and ranks, each one a row."""

    features: Array
    labels: Array
    sources: npt.NDArray[np.str_]
    ranks: npt.NDArray[np.int64]
    tiers: npt.NDArray[np.str_]

    def part(self, rows: npt.NDArray[np.bool_]) -> Pairs:
        return Pairs(*(values[rows] for values in vars(self).values()))

    @property
    def weights(self) -> Array:
        sizes = Counter(self.sources.tolist())
        return np.array([min(1, SOURCE_PAIRS / sizes[source]) for source in self.sources.tolist()])


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--queries", type=Path, required=True)
    parser.add_argument("--corpus", type=Path, required=True)
    parser.add_argument("--index", type=Path, required=True)
    parser.add_argument("--write", action="store_true", help="write the calibration and the curve")
    arguments = parser.parse_args()
    queries = list(lines(arguments.queries))
    asyncio.run(_measure(arguments, queries))


async def _measure(arguments: argparse.Namespace, queries: list[dict[str, Any]]) -> None:
    catalog = open_local(arguments.index)
    try:
        pairs = await _collected(catalog, queries, _same_texts(arguments.corpus))
        held_out = held_out_probabilities(pairs)
        supported = supported_precisions(held_out, pairs.labels)
        _print(pairs, held_out, supported)
        if arguments.write:
            model = (await catalog.stats()).model or ""
            _write(pairs, held_out, supported, model)
        await _print_rate(catalog, queries)
    finally:
        await catalog.aclose()


def _same_texts(corpus: Path) -> dict[str, set[str]]:
    """Return the ids of the records with the same text in the same framework, by id."""
    groups = defaultdict[tuple[str, str], set[str]](set)
    for record in lines(corpus):
        groups[record.get("text_group") or record["_id"], record["standard_set_id"]].add(
            record["_id"]
        )
    return {id_: group for group in groups.values() for id_ in group}


async def _collected(
    catalog: Catalog, queries: list[dict[str, Any]], same_texts: dict[str, set[str]]
) -> Pairs:
    features, labels, sources, ranks, tiers = [], [], [], [], []
    for query in queries:
        gold = set[str]().union(*(same_texts.get(id_, {id_}) for id_ in query["gold_ids"]))
        for grade in dict.fromkeys((None, query["grade"])):
            expression: dict[str, Any] = {"standard_set_id": query["framework"]}
            if grade:
                expression["education_levels"] = {"$in": list(parse_grades(grade))}
            hits = (await catalog.search(query["text"][:8000], DEPTH, expression)).hits
            rows = features_of(query["text"], hits, is_graded=bool(grade))
            for rank, (hit, row) in enumerate(zip(hits[:PAIRS], rows, strict=False)):
                ids = {hit.record.id, *(other.id for other in hit.also_in)}
                features.append(row)
                labels.append(float(bool(ids & gold)))
                sources.append(query["source"])
                ranks.append(rank)
                tiers.append(query["tier"])
    return Pairs(
        np.array(features), np.array(labels), np.array(sources), np.array(ranks), np.array(tiers)
    )


def fitted(features: Array, labels: Array, weights: Array) -> Array:
    """Return bias and weights of a logistic regression, by Newton's method with a small penalty."""
    means = np.average(features, axis=0, weights=weights)
    deviations = np.sqrt(np.average((features - means) ** 2, axis=0, weights=weights)) + 1e-9
    rows = np.column_stack([np.ones(len(features)), (features - means) / deviations])
    penalty = np.eye(rows.shape[1])
    penalty[0, 0] = 0
    found = np.zeros(rows.shape[1])
    for _ in range(30):
        probabilities = 1 / (1 + np.exp(-rows @ found))
        slope = rows.T @ (weights * (probabilities - labels)) + penalty @ found
        spread = weights * probabilities * (1 - probabilities)
        found -= np.linalg.solve((rows.T * spread) @ rows + penalty, slope)
    plain = found[1:] / deviations
    return np.concatenate([[found[0] - plain @ means], plain])


def predicted(model: Array, features: Array) -> Array:
    """Return the probability of each row."""
    return np.asarray(1 / (1 + np.exp(-(model[0] + features @ model[1:]))))


def held_out_predictions(pairs: Pairs) -> Array:
    """Return the regression's probability of each pair, fitted without the pair's source."""
    found, weights = np.zeros(len(pairs.labels)), pairs.weights
    for source in np.unique(pairs.sources):
        own = pairs.sources == source
        model = fitted(pairs.features[~own], pairs.labels[~own], weights[~own])
        found[own] = predicted(model, pairs.features[own])
    return found


def held_out_probabilities(pairs: Pairs) -> Array:
    """Return the final probability of each pair: neither of the two steps has seen its source."""
    found = np.zeros(len(pairs.labels))
    for source in np.unique(pairs.sources):
        own = pairs.sources == source
        others = pairs.part(~own)
        knots = reliability_knots(held_out_predictions(others), others.labels, others.weights)
        model = fitted(others.features, others.labels, others.weights)
        found[own] = np.interp(predicted(model, pairs.features[own]), *knots)
    return found


def reliability_knots(
    probabilities: Array, labels: Array, weights: Array
) -> tuple[list[float], list[float]]:
    """Return predicted probabilities and the rising shares of right pairs that belong to them.

    The pairs are cut into `STEPS` parts of equal size, and neighbours that fall are joined (pool
    adjacent violators). On unknown sources, high predictions of the regression are too high.
    """
    order = np.argsort(probabilities, kind="stable")
    blocks: list[tuple[float, float, float]] = []  # weight, mean prediction, share of right pairs
    for rows in np.array_split(order, STEPS):
        weight = float(weights[rows].sum())
        means = (
            np.average(values[rows], weights=weights[rows]) for values in (probabilities, labels)
        )
        blocks.append((weight, *map(float, means)))
        while len(blocks) > 1 and blocks[-2][2] >= blocks[-1][2]:
            (left, *before), (right, *after) = blocks[-2:]
            joined = [
                (left * a + right * b) / (left + right) for a, b in zip(before, after, strict=True)
            ]
            blocks[-2:] = [(left + right, *joined)]
    return [round(x, 4) for _, x, _ in blocks], [round(y, 4) for _, _, y in blocks]


def calibration_error(probabilities: Array, labels: Array) -> float:
    """Return the expected calibration error with `BINS` bins of equal width."""
    bins = np.minimum((probabilities * BINS).astype(int), BINS - 1)
    gaps = [
        (bins == number).mean() * abs((probabilities - labels)[bins == number].mean())
        for number in np.unique(bins)
    ]
    return float(sum(gaps))


def supported_precisions(probabilities: Array, labels: Array) -> list[dict[str, float]]:
    """Return, for each precision that is reached, the least probability and the share of pairs.

    The lower end of Wilson's 95 % interval of the held-out pairs above it has to reach it.
    """
    order = np.argsort(-probabilities, kind="stable")
    counts = np.arange(1, len(order) + 1)
    lower = wilson_lower(np.cumsum(labels[order]) / counts, counts)
    found = list[dict[str, float]]()
    for precision in PRECISIONS:
        reached = np.flatnonzero((lower >= precision) & (counts >= LEAST_PAIRS))
        if reached.size:
            last = int(reached[-1])
            least = float(np.ceil(probabilities[order][last] * 1e4) / 1e4)
            share = round((last + 1) / len(order), 4)
            found.append({"precision": precision, "probability": least, "share": share})
    return found


def wilson_lower(shares: Array, counts: npt.NDArray[np.int64]) -> Array:
    """Return the lower end of the 95 % interval of each share."""
    z = 1.96
    centre = shares + z**2 / (2 * counts)
    spread = z * np.sqrt(shares * (1 - shares) / counts + z**2 / (4 * counts**2))
    return np.asarray((centre - spread) / (1 + z**2 / counts))


def _print(pairs: Pairs, held_out: Array, supported: list[dict[str, float]]) -> None:
    print(f"{len(pairs.labels):,} pairs, right {pairs.labels.mean():.3f}")
    first, tier_a = pairs.ranks == 0, pairs.tiers == "A"
    for name, rows in {
        "all pairs": np.ones_like(first), "first pairs": first, "tier A": tier_a
    }.items():  # fmt: skip
        error = calibration_error(held_out[rows], pairs.labels[rows])
        print(f"expected calibration error, {name:12} {error:.3f} of {rows.sum():,}")
    for source in np.unique(pairs.sources):
        own = pairs.sources == source
        print(
            f"  {source:24}{own.sum():6,} pairs, right {pairs.labels[own].mean():.2f}, "
            f"predicted {held_out[own].mean():.2f}"
        )
    for low in range(BINS):
        rows = (held_out >= low / BINS) & (held_out < (low + 1) / BINS)
        if rows.any():
            print(
                f"  predicted {held_out[rows].mean():.2f}: right {pairs.labels[rows].mean():.2f} "
                f"of {rows.sum():,}"
            )
    for entry in supported:
        print(f"precision {entry['precision']}: p >= {entry['probability']}, {entry['share']:.2%}")
    reached = {entry["precision"] for entry in supported}
    for precision in set(PRECISIONS) - reached:
        print(f"precision {precision}: not supported, share 0")


def _write(pairs: Pairs, held_out: Array, supported: list[dict[str, float]], model: str) -> None:
    bias, *weights = fitted(pairs.features, pairs.labels, pairs.weights).round(5).tolist()
    data = {
        "model": model,
        "bias": bias,
        "weights": dict(zip(FEATURES, weights, strict=True)),
        "reliability": reliability_knots(held_out_predictions(pairs), pairs.labels, pairs.weights),
        "supported": supported,
    }
    CALIBRATION.write_text(json.dumps(data, indent=2) + "\n", "utf-8")
    CURVE.write_text(reliability_curve(held_out, pairs.labels), "utf-8")


def reliability_curve(probabilities: Array, labels: Array) -> str:
    """Return the curve as an SVG image: the share of right pairs by predicted probability."""
    bins = np.minimum((probabilities * BINS).astype(int), BINS - 1)
    parts = [bins == number for number in np.unique(bins)]
    points = [
        (float(probabilities[part].mean()), float(labels[part].mean()), int(part.sum()))
        for part in parts
    ]

    def x(value: float) -> float:
        return round(60 + 400 * value, 1)

    def y(value: float) -> float:
        return round(420 - 400 * value, 1)

    path = " ".join(f"{x(p)},{y(s)}" for p, s, _ in points)
    marks = [
        f'<circle cx="{x(p)}" cy="{y(s)}" r="4" fill="#1f6feb"/>'
        f'<text x="{x(p)}" y="{y(s) - 9}" text-anchor="middle">{count:,}</text>'
        for p, s, count in points
    ]
    ticks = [
        f'<text x="{x(t / 5)}" y="438" text-anchor="middle">{t / 5:.1f}</text>'
        f'<text x="52" y="{y(t / 5) + 4}" text-anchor="end">{t / 5:.1f}</text>'
        for t in range(6)
    ]
    lines = (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 480 470" width="480" height="470"',
        'font-family="sans-serif" font-size="12" role="img"',
        'aria-label="Reliability curve on held-out sources">',
        '<rect width="480" height="470" fill="#fff"/>',
        '<rect x="60" y="20" width="400" height="400" fill="none" stroke="#999"/>',
        '<line x1="60" y1="420" x2="460" y2="20" stroke="#999" stroke-dasharray="4"/>',
        f'<polyline points="{path}" fill="none" stroke="#1f6feb" stroke-width="2"/>',
        *marks,
        *ticks,
        '<text x="260" y="460" text-anchor="middle">predicted probability (numbers: pairs)</text>',
        '<text x="16" y="220" text-anchor="middle" transform="rotate(-90 16 220)">',
        "share of right pairs</text>",
        "</svg>",
    )
    return "\n".join(lines) + "\n"


async def _print_rate(catalog: Catalog, queries: Sequence[dict[str, Any]]) -> None:
    """Print how many lessons an hour takes, with all standards in scope and the grade known."""
    items = [
        Item(file="", title=query["text"][:80], text=query["text"], grade=query["grade"] or "")
        for query in queries[::5]
    ]
    scope = await open_scope(catalog, grade="", subject="", jurisdiction="", standard_set="")
    correlator = Correlator(catalog, scope, load_calibration(), PAIRS)
    await correlator.correlate(items[0])
    begin = time.perf_counter()
    for item in items:
        await correlator.correlate(item)
    rate = len(items) / (time.perf_counter() - begin) * 3600
    records = (await catalog.stats()).records
    print(f"{rate:,.0f} lessons an hour with {records:,} standards in scope")


if __name__ == "__main__":
    main()
