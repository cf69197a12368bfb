"""Train the matrix that turns the vector of a query towards the standards that it is about.

usage: python scripts/train_queries.py

A phrase in a teacher's words is a query whose standard is known. The matrix starts as the identity,
and learns to bring each phrase nearer to its own standard than to the others of the framework. The
phrases are those of the starter set, and those in ``scripts/answers/phrases.csv``, which serve only
here. A tenth of them is left out, and tells whether the matrix serves others. What is written to
``queries.npy`` of the starter set is the mean of the last steps, with a share of the identity. Run
it after ``embed_starter.py``.
"""

import csv
from importlib.resources import files
from pathlib import Path

import numpy as np
import numpy.typing as npt

from standards_mcp_catalog.starter import (
    phrase_vectors,
    starter_records,
    starter_vectors,
    starter_wordings,
)
from standards_mcp_encoders.minilm import MiniLmEncoder, normalised

Floats = npt.NDArray[np.float32]
PHRASES = Path(__file__).parent / "answers" / "phrases.csv"
PARENT_SHARE = 0.1  # as in the index
TEMPERATURE, RATE, BATCH = 0.05, 3e-4, 1024
STEPS, AVERAGED = 150, 50
LEFT_OUT = 0.1
LEARNED_SHARE = 0.75  # see docs/benchmarks.md


def main() -> None:
    phrases, owners = read_phrases()
    task = Task(phrases, owners)
    random = np.random.default_rng(0)
    is_left_out = random.random(len(owners)) < LEFT_OUT
    left_out, used = np.flatnonzero(is_left_out), np.flatnonzero(~is_left_out)
    identity: Floats = np.eye(phrases.shape[1], dtype=np.float32)
    matrix, total = identity.copy(), np.zeros_like(identity)
    first, second = np.zeros_like(identity), np.zeros_like(identity)
    for step in range(1, STEPS + 1):
        slope = task.try_out(matrix, random.choice(used, BATCH, replace=False))[2]
        first, second = 0.9 * first + 0.1 * slope, 0.999 * second + 0.001 * slope**2
        scale = np.sqrt(second / (1 - 0.999**step)) + 1e-8  # Adam
        matrix = (matrix - RATE * (first / (1 - 0.9**step)) / scale).astype(np.float32)
        if step > STEPS - AVERAGED:
            total += matrix
    learned: Floats = (total / AVERAGED).astype(np.float32)
    matrix = identity + np.float32(LEARNED_SHARE) * (learned - identity)
    for name, tried in (("without a matrix", identity), ("with the matrix", matrix)):
        loss, share, _ = task.try_out(tried, left_out)
        print(f"{name}: {share:.1%} of {len(left_out)} phrases first, loss {loss:.3f}")
    path = str(files("standards_mcp_catalog.starter") / "queries.npy")
    np.save(path, matrix.astype(np.float16), allow_pickle=False)


def read_phrases() -> tuple[Floats, npt.NDArray[np.int64]]:
    """Return the vectors of all phrases, and the number of the standard of each."""
    wordings = starter_wordings()
    numbers = {wording.notation: number for number, wording in enumerate(wordings)}
    owners = np.repeat(np.arange(len(wordings)), [len(each.phrases) for each in wordings])
    rows = list(csv.DictReader(PHRASES.read_text(encoding="utf-8").splitlines()))
    further = MiniLmEncoder().encode([row["phrase"] for row in rows])
    return (
        np.vstack([normalised(phrase_vectors()), further]),
        np.concatenate([owners, [numbers[row["notation"]] for row in rows]]),
    )


class Task:
    """Find the standard of each phrase among those of its framework.

    Args:
        phrases: Vectors of length 1, shape (phrases, dimensions).
        owners: The number of the standard of each phrase.
    """

    def __init__(self, phrases: Floats, owners: npt.NDArray[np.int64]) -> None:
        self._phrases, self._owners = phrases, owners
        records, vectors = starter_records(), normalised(starter_vectors())
        numbers = {record.id: number for number, record in enumerate(records)}
        parents = [numbers.get(record.parent_id or "", n) for n, record in enumerate(records)]
        self._standards = (1 - PARENT_SHARE) * vectors + PARENT_SHARE * vectors[parents]
        frameworks = np.array([f"{each.jurisdiction_title} {each.subject}" for each in records])
        self._rivals = frameworks[:, None] == frameworks
        for number, record in enumerate(records):  # what is above a standard fits its phrases, too
            above = [numbers[id_] for id_ in record.ancestor_ids]
            self._rivals[number, above] = self._rivals[above, number] = False

    def try_out(self, matrix: Floats, chosen: npt.NDArray[np.int64]) -> tuple[float, float, Floats]:
        """Return the loss of these phrases, the share found first, and the gradient."""
        phrases, owners, lines = self._phrases[chosen], self._owners[chosen], np.arange(len(chosen))
        turned = phrases @ matrix
        lengths = np.linalg.norm(turned, axis=1, keepdims=True)
        turned /= lengths
        scores = turned @ self._standards.T / np.float32(TEMPERATURE)
        scores[~self._rivals[owners]] = -np.inf
        scores -= scores.max(axis=1, keepdims=True)
        chances = np.exp(scores)
        chances /= chances.sum(axis=1, keepdims=True)
        loss = -np.log(chances[lines, owners]).mean()
        share = (chances.argmax(axis=1) == owners).mean()
        chances[lines, owners] -= 1
        slopes = chances @ self._standards / np.float32(TEMPERATURE * len(chosen))
        slopes -= (slopes * turned).sum(axis=1, keepdims=True) * turned
        return float(loss), float(share), phrases.T @ (slopes / lengths)


if __name__ == "__main__":
    main()
