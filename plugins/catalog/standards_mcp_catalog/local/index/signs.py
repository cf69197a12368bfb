r"""Signs of mathematics as the words that they are read as.

A task says ``\frac{1}{4}`` or ``25%`` where a standard says "fraction" or "percent". The full-text
index has the words; the text encoder is given the text as it is.
"""

from __future__ import annotations

import re
from typing import Final

_SIGN: Final = re.compile(r"[\\$%^°√∛∠△∆π≤≥<>\u00d7÷²³½⅓⅔¼¾⅛]|\d[./]\d|\bf\(x\)")
_WORDS: Final = tuple(
    (re.compile(pattern), f" {word} ")
    for pattern, word in (
        (r"\\[dt]?frac(?![a-z])|\\over(?![a-z])|[½⅓⅔¼¾⅛]", "fraction"),
        (r"(?<![\d/])(\d+/\d+)(?![\d/])", r"\1 fraction"),
        (r"\\?%", "percent"),
        (r"\\?\$(?=\s?\d)", "dollars"),
        (r"(?<![\d.])(\d*\.\d+)(?![\d.])", r"\1 decimal"),
        (r"\\sqrt\[3\]|∛", "cube root"),
        (r"\\sqrt(?![a-z])|√", "square root"),
        (r"\^\{?2\}?(?!\d)|²", "squared"),
        (r"\^\{?3\}?(?!\d)|³", "cubed"),
        (r"\^\{?\\circ\}?|\\(?:circ|degree)(?![a-z])|°", "degrees"),
        (r"\^", "exponent"),
        (r"\\(?:leq?|geq?|lt|gt)(?![a-z])|[≤≥]|(?<![-<=])[<>](?![-=>])", "inequality"),
        (r"\\times(?![a-z])|\u00d7", "times"),
        (r"\\div(?![a-z])|÷", "divided by"),
        (r"\\angle(?![a-z])|∠", "angle"),
        (r"\\(?:big)?triangle(?:up)?(?![a-z])|[△∆]", "triangle"),
        (r"\\overline(?![a-z])", "segment"),
        (r"\bf\(x\)", "function f(x)"),
        (r"\\(?:sin|cos|tan)(?![a-z])", "trigonometric"),
        (r"\\pi(?![a-z])|π", "pi"),
        (r"\\boxed(?![a-z])", "unknown"),
        (r"\\[A-Za-z]+", ""),
    )
)


def with_words(text: str) -> str:
    """Return *text* with words in place of signs, or beside numbers that are written with them."""
    if _SIGN.search(text):
        for pattern, word in _WORDS:
            text = pattern.sub(word, text)
    return text
