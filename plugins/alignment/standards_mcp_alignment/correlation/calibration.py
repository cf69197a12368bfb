"""The probability of a pair, and the least probability that a precision is supported for.

`benchmarks/align.py` fits ``calibration.json`` on labelled texts, and measures it on texts of
sources that the fit has not seen. A probability estimates how often a publisher or teacher who
labels such a text names exactly this standard. About a tenth of the labels are doubtful, and a
standard that fits may be missing from them, so it is a lower bound of "the standard fits".
"""

from __future__ import annotations

import json
import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Final

from standards_mcp_alignment.provenance import digest_of

_FILE: Final = "calibration.json"


@dataclass(frozen=True, slots=True)
class Calibration:
    """A logistic regression on `features.FEATURES`, corrected by what held-out sources showed.

    Attributes:
        model: The text encoder that it was measured with.
        bias: Weight of the constant.
        weights: Weight of each feature.
        reliability: Results of the regression, rising, and the share of right pairs for each.
        supported: Pairs of a precision and the threshold above which the lower 95 % bound of the
            held-out precision reaches it. Other precisions are not supported.
        sha256: Digest of the file.
    """

    model: str
    bias: float
    weights: tuple[float, ...]
    reliability: tuple[tuple[float, ...], tuple[float, ...]]
    supported: tuple[tuple[float, float], ...]
    sha256: str

    def probability(self, features: Sequence[float]) -> float:
        """Return the probability of a pair, from 0 to 1, with four digits."""
        pairs = zip(self.weights, features, strict=True)
        value = self.bias + sum(weight * feature for weight, feature in pairs)
        return round(self._corrected(1 / (1 + math.exp(-max(-30.0, min(30.0, value))))), 4)

    def _corrected(self, result: float) -> float:
        """Return the share of right pairs for a result, on the line between the nearest two."""
        results, shares = self.reliability
        above = bisect_right(results, result)
        if above in {0, len(results)}:
            return shares[min(above, len(results) - 1)]
        part = (result - results[above - 1]) / (results[above] - results[above - 1])
        return shares[above - 1] + part * (shares[above] - shares[above - 1])

    def least_probability(self, precision: float) -> float | None:
        """Return the least probability for a precision, or None if no held-out pairs support it."""
        return min(
            (least for reached, least in self.supported if reached >= precision), default=None
        )


@cache
def load_calibration() -> Calibration:
    """Return the calibration of this version."""
    text = (resources.files("standards_mcp_alignment.correlation") / _FILE).read_text("utf-8")
    data = json.loads(text)
    return Calibration(
        model=data["model"],
        bias=data["bias"],
        weights=tuple(data["weights"].values()),
        reliability=(tuple(data["reliability"][0]), tuple(data["reliability"][1])),
        supported=tuple((row["precision"], row["probability"]) for row in data["supported"]),
        sha256=digest_of(text),
    )
