"""Train the model that tells the school subject of a text from its vector.

usage: python scripts/train_subjects.py

It is a multinomial logistic regression over vectors of the built-in encoder. It learns from own
descriptions of each subject, in `scripts/answers/subjects.txt`, from the texts of the starter set,
and from its phrases in teachers' words. The weights go into the catalog's package, where a search
reads them.
"""

import argparse
from pathlib import Path

import numpy as np
import numpy.typing as npt

from standards_mcp_catalog.starter import starter_records, starter_vectors, starter_wordings
from standards_mcp_catalog.vocabulary import subject_model
from standards_mcp_encoders.encoders import open_encoder

DESCRIPTIONS = Path(__file__).parent / "answers" / "subjects.txt"
STARTER_SUBJECTS = {
    "Mathematics": "mathematics",
    "English Language Arts": "english language arts",
    "Science": "science",
    "Social Studies": "social studies",
    "Computer Science": "computer science",
}
STARTER_WEIGHT, LOADED_WEIGHT = 0.06, 2.0
"""A description weighs 1, one of a subject in the starter set 2, and each text of the set 0.06."""
STEPS, RATE = 80, 0.1

Array = npt.NDArray[np.float32]


def main() -> None:
    argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0]).parse_args()
    described, encoder = descriptions(), open_encoder("minilm")
    records = starter_records()
    of_code = {record.statement_notation: STARTER_SUBJECTS[record.subject] for record in records}
    phrases = [
        (of_code[wording.notation], phrase)
        for wording in starter_wordings()
        for phrase in wording.phrases
    ]
    names = [subject for subject, _ in described]
    starter_names = [subject for subject, _ in phrases] + list(of_code.values())
    subjects, in_starter = sorted(set(names)), set(of_code.values())
    weights = [
        *(LOADED_WEIGHT if name in in_starter else 1.0 for name in names),
        *(STARTER_WEIGHT for _ in starter_names),
    ]
    texts = [text for _, text in (*described, *phrases)]
    vectors = np.vstack([encoder.encode(texts), starter_vectors()]).astype(np.float32)
    labels = np.array([subjects.index(name) for name in (*names, *starter_names)])
    coefficients, offsets = fit(vectors, labels, np.array(weights, np.float32), len(subjects))
    np.savez_compressed(
        subject_model.FILE,
        subjects=np.array(subjects),
        coefficients=coefficients.astype(np.float16),
        offsets=offsets.astype(np.float16),
    )
    print(f"{len(labels)} texts, {len(subjects)} subjects: {subject_model.FILE}")


def descriptions() -> list[tuple[str, str]]:
    """Return the descriptions as pairs of a subject and a text."""
    pairs, subject = list[tuple[str, str]](), ""
    for line in DESCRIPTIONS.read_text(encoding="utf-8").splitlines():
        if line.startswith("# "):
            subject = line.removeprefix("# ")
        elif line:
            pairs.append((subject, line))
    return pairs


def fit(
    vectors: Array, labels: npt.NDArray[np.int64], weights: Array, count: int
) -> tuple[Array, Array]:
    """Return coefficients, shape (dimensions, subjects), and offsets, by Adam.

    Few steps from zero keep the coefficients small, which serves as regularisation. Adam:
    https://arxiv.org/abs/1412.6980, algorithm 1, with its decay of the second moment at .99.
    """
    inputs = np.hstack([vectors, np.ones((len(vectors), 1), np.float32)])
    targets = np.eye(count, dtype=np.float32)[labels]
    weights = weights / weights.sum()
    solution = np.zeros((inputs.shape[1], count), np.float32)
    mean, square = np.zeros_like(solution), np.zeros_like(solution)
    for step in range(1, STEPS + 1):
        errors = subject_model.softmax(inputs @ solution) - targets
        gradient = inputs.T @ (errors * weights[:, None])
        mean = 0.9 * mean + 0.1 * gradient
        square = 0.99 * square + 0.01 * gradient**2
        scale = np.sqrt(square / (1 - 0.99**step)) + 1e-8
        solution -= RATE * (mean / (1 - 0.9**step)) / scale
    return solution[:-1], solution[-1]


if __name__ == "__main__":
    main()
