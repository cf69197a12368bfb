"""Split a text of any script into words, numbers, signs and breaks."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import pairwise
from typing import Final, Literal, NamedTuple, TypeAlias

from .lexicon import GENERIC_PARTS

Kind: TypeAlias = Literal["word", "number", "sign", "break", "stop"]
# Accents of Latin, Greek and Cyrillic letters: people write names with and without them.
_ACCENTS: Final = re.compile("[\u0300-\u036f]")
_ABBREVIATION: Final = re.compile(r"(?:[A-Za-z]{1,3}\.)+[A-Za-z]{1,3}\.?")
_BIGRAMS: Final = re.compile(
    # Thai, Lao, Burmese, Khmer, katakana, Han: scripts without spaces between words.
    "[\u0e00-\u0eff]+|[\u1000-\u109f]+|[\u1780-\u17ff]+|[\u30a0-\u30ff]+"
    "|[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]+"
)
_HIRAGANA: Final = re.compile("[\u3040-\u309f]+")
_HAN_QUANTITY: Final = re.compile(r"([一二三四五六七八九十百千万两]*)([年月人名])")
_FRACTION: Final = re.compile("([0-9]{0,9})([\u00bc-\u00be\u2150-\u215e])")
_POSSESSIVE: Final = re.compile("(?:['\u2019]s)+$")
_HAN_DIGITS: Final = "零一二三四五六七八九"
_PARTS: Final = re.compile("|".join(sorted(GENERIC_PARTS)))


_KINDS: Final[Mapping[str, Kind]] = {
    "number": "number",
    "sign": "sign",
    "break": "break",
    "stop": "stop",
}


class Token(NamedTuple):
    """A piece of a text.

    Attributes:
        kind: A "stop" ends a sentence, a "break" a part of one.
        text: In lower case, without accents.
        written: The original spelling.
    """

    kind: Kind
    text: str
    written: str


@cache
def _pattern() -> re.Pattern[str]:
    marks = (chr(code) for code in range(0x300, 0x10000))
    inside = "".join(mark for mark in marks if unicodedata.category(mark).startswith("M"))
    letter = rf"(?:[^\W_]|[{inside}\u200c\u200d])"
    return re.compile(
        rf"""
          (?P<word>
              (?:[A-Za-z]+)?\.(?:net|NET|Net)\b
            | [A-Za-z]+(?:\+\+|\#)
            | (?<!\d)[A-Za-z]\+(?!\w)
            | [A-Za-z]+\.(?:js|JS|io|ai)\b
            | (?<![^\W_])[A-Za-z](?:&[A-Za-z])+\b
            | (?<![^\W_])(?:[A-Za-z]{{1,3}}\.)+[A-Za-z]{{1,3}}\b\.?
            | (?<![^\W_])(?:[A-Za-z]-[A-Za-z]{{2,}}|[A-Za-z]{{2,}}-[A-Z])\b
          )
        | (?P<number>
              (?<![^\W_])(?:(?<![^\W_]\.)\d++(?:[.,\u00b7]\d++)*+|(?<!\.)\.\d++)
              (?=[kKmM]\b|(?:yr|year|mo|month|week|day|hr|hour)s?\b|(?![A-Za-z0-9]))
          )
        | (?P<plain>{letter}+(?:['\u2019]{letter}+)*)
        | (?P<sign>[%$€£]|<=?(?!-)|(?<![-=])>=?|[\u2264\u2265])
        | (?P<stop>[.](?=\s|$)|[;!?\n。])
        | (?P<break>[,():|、/\u2013\u2014+-])
        """,
        re.VERBOSE,
    )


def tokens_of(text: str) -> Iterator[Token]:
    """Yield the pieces of a text in order.

    Scripts that put no space between words give pairs of characters. Hiragana, which is mostly
    grammar, only separates.
    """
    if not text.isascii():
        text = _FRACTION.sub(_decimal, text)
        text = _ACCENTS.sub("", unicodedata.normalize("NFKD", text))
        text = unicodedata.normalize("NFC", text)
    for found in _pattern().finditer(text):
        written, kind = found.group(), found.lastgroup
        if kind == "plain":
            if written.isascii():
                yield _word(written)
            else:
                yield from _words(written)
        elif kind == "word":
            yield from _technical(written)
        else:
            yield Token(_KINDS[kind or ""], written, written)


def _decimal(found: re.Match[str]) -> str:
    """Return 2.5 for "2\u00bd"."""
    return f"{int(found[1] or 0) + unicodedata.numeric(found[2]):.12g}"


def _technical(written: str) -> Iterator[Token]:
    text = written.casefold()
    if _ABBREVIATION.fullmatch(written) and not text.endswith((".js", ".net", ".io", ".ai")):
        text = text.replace(".", "")
    elif "-" in text:
        text = text.replace("-", "")
    yield Token("word", text, written)
    if text.endswith(".net") and text != ".net":
        yield Token("word", ".net", written)


def _words(written: str) -> Iterator[Token]:
    place = 0
    for found in _BIGRAMS.finditer(written):
        yield from _spaced(written[place : found.start()])
        yield from _unspaced(found.group())
        place = found.end()
    yield from _spaced(written[place:])


def _spaced(written: str) -> Iterator[Token]:
    for part in _HIRAGANA.split(written):
        if part := part.strip("'\u2019"):
            yield _word(part)


def _word(written: str) -> Token:
    text = written.casefold()
    return Token("word", text if text.isalnum() else _POSSESSIVE.sub("", text), written)


def _unspaced(run: str) -> Iterator[Token]:
    place = 0
    for found in _HAN_QUANTITY.finditer(run):
        if not found[1] and found.start():
            continue  # a character of a word
        yield from _pairs(run[place : found.start()])
        if found[1]:
            yield Token("number", str(_han_number(found[1])), found[1])
        yield Token("word", found[2], found[2])
        place = found.end()
    yield from _pairs(run[place:])


def _pairs(run: str) -> Iterator[Token]:
    for part in _PARTS.split(run):
        for pair in [part] if len(part) == 1 else map("".join, pairwise(part)):
            yield Token("word", pair, pair)


def _han_number(text: str) -> int:
    total, digit = 0, 0
    for character in text:
        if character in "十百千万":
            total += max(1, digit) * {"十": 10, "百": 100, "千": 1_000, "万": 10_000}[character]
            digit = 0
        else:
            digit = 2 if character == "两" else _HAN_DIGITS.index(character)
    return total + digit
