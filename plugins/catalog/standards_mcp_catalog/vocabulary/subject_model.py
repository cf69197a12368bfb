"""Estimate the school subject of a text from its vector, to warn if the subject is not loaded.

A search always finds something, and its scores do not say enough: a question about beats in music
finds fractions. The model is a logistic regression that ``scripts/train_subjects.py`` trains on
vectors of the built-in encoder.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

FILE: Final = Path(str(files(__package__ or __name__))) / "subject_model.npz"

_Array = npt.NDArray[np.float32]


class _Model(NamedTuple):
    """Subjects, coefficients of shape (dimensions, subjects), and one offset for each subject."""

    subjects: tuple[str, ...]
    coefficients: _Array
    offsets: _Array


def subject_probabilities(vector: npt.ArrayLike) -> dict[str, float]:
    """Return the probability of each subject for the vector of a text, shape (dimensions,).

    Subjects are in lower case, such as ``music``; ``none`` means that the text has no subject.
    """
    model = _model()
    probabilities = softmax(np.asarray(vector, np.float32) @ model.coefficients + model.offsets)
    return dict(zip(model.subjects, probabilities.tolist(), strict=True))


def softmax(values: _Array) -> _Array:
    """Return the softmax over the last axis."""
    exponentials = np.exp(values - values.max(axis=-1, keepdims=True))
    probabilities: _Array = exponentials / exponentials.sum(axis=-1, keepdims=True)
    return probabilities


@cache
def _model() -> _Model:
    with np.load(FILE, allow_pickle=False) as file:
        return _Model(
            tuple(file["subjects"].tolist()),
            file["coefficients"].astype(np.float32),
            file["offsets"].astype(np.float32),
        )
