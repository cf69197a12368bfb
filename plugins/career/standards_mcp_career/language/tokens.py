"""Word lists, tokens (words, numbers, signs and breaks of a text), and stems."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Final, Literal, NamedTuple, TypeAlias, cast


def _read_word_lists() -> dict[str, dict[str, str]]:
    """Return the words in ``words.txt`` by kind, each with the value of its line, if any."""
    kinds = dict[str, dict[str, str]]()
    for line in Path(__file__).with_name("words.txt").read_text("utf-8").splitlines():
        kind, colon, words = line.partition(": ")
        if colon and not line.startswith("#"):
            name, _, value = kind.partition(" ")
            kinds.setdefault(name, {}).update(dict.fromkeys(words.split(), value))
    return kinds


_KINDS: Final = _read_word_lists()
WORDS: Final[Mapping[str, frozenset[str]]] = {
    kind: frozenset(words) for kind, words in _KINDS.items()
}
"""The words of each kind in ``words.txt``, which explains the kinds."""
NUMBERS: Final = {word: int(value) for word, value in _KINDS["number"].items()}
MULTIPLES: Final = {word: int(value) for word, value in _KINDS["multiple"].items()}
UNITS: Final[Mapping[str, tuple[str, int]]] = {
    word: (value.split()[0], int(value.split()[1])) for word, value in _KINDS["unit"].items()
}
"""For each unit, its dimension, and its size in the smallest unit of the dimension."""
EMPTY: Final = WORDS["stop"] | WORDS["generic"]
"""Words that do not count as evidence."""
DENIALS: Final = re.compile(
    rf"\b(?:{'|'.join(_KINDS['denial'])})\b".replace("_", " "), re.IGNORECASE
)
"""Phrases that mark a part of a claim as an intention or a loss."""


Kind: TypeAlias = Literal["word", "number", "sign", "break", "stop"]
# Accents are removed, because people write names with and without accents.
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
_PARTS: Final = re.compile("|".join(sorted(WORDS["part"])))


class Token(NamedTuple):
    """A piece of a text.

    Attributes:
        kind: A "stop" ends a sentence, a "break" a part of one.
        text: The token in lower case, without accents.
        written: The original spelling.
    """

    kind: Kind
    text: str
    written: str

    def is_a(self, kind: str) -> bool:
        """Return True if ``words.txt`` has the word under this kind."""
        return self.text in WORDS[kind]

    @property
    def is_noun(self) -> bool:
        """True for a word that may be a noun."""
        return self.kind == "word" and not self.is_a("stop")


def texts(tokens: Sequence[Token], start: int, end: int) -> list[str]:
    """Return the texts from *start* to *end*; either place may be outside of the tokens."""
    return [token.text for token in tokens[max(0, start) : max(0, end)]]


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
    """Yield the tokens of a text in order.

    In scripts without spaces between words, each pair of adjacent characters is a token. Hiragana
    is mostly grammar and only separates tokens.
    """
    if not text.isascii():
        text = _FRACTION.sub(_decimal, text)
        text = _ACCENTS.sub("", unicodedata.normalize("NFKD", text))
        text = unicodedata.normalize("NFC", text)
    for match in _pattern().finditer(text):
        written, kind = match.group(), match.lastgroup
        if kind == "plain":
            if written.isascii():
                yield _word_token(written)
            else:
                yield from _plain_tokens(written)
        elif kind == "word":
            yield from _technical_tokens(written)
        else:
            yield Token(cast("Kind", kind), written, written)


def _decimal(match: re.Match[str]) -> str:
    """Return 2.5 for "2\u00bd"."""
    return f"{int(match[1] or 0) + unicodedata.numeric(match[2]):.12g}"


def _technical_tokens(written: str) -> Iterator[Token]:
    text = written.casefold()
    if _ABBREVIATION.fullmatch(written) and not text.endswith((".js", ".net", ".io", ".ai")):
        text = text.replace(".", "")
    elif "-" in text:
        text = text.replace("-", "")
    yield Token("word", text, written)
    if text.endswith(".net") and text != ".net":
        yield Token("word", ".net", written)


def _plain_tokens(written: str) -> Iterator[Token]:
    place = 0
    for run in _BIGRAMS.finditer(written):
        yield from _spaced_tokens(written[place : run.start()])
        yield from _unspaced_tokens(run.group())
        place = run.end()
    yield from _spaced_tokens(written[place:])


def _spaced_tokens(written: str) -> Iterator[Token]:
    for part in _HIRAGANA.split(written):
        if part := part.strip("'\u2019"):
            yield _word_token(part)


def _word_token(written: str) -> Token:
    text = written.casefold()
    return Token("word", text if text.isalnum() else _POSSESSIVE.sub("", text), written)


def _unspaced_tokens(run: str) -> Iterator[Token]:
    place = 0
    for quantity in _HAN_QUANTITY.finditer(run):
        digits, unit = quantity.groups()
        if not digits and quantity.start():
            continue  # a character of a word
        yield from _pair_tokens(run[place : quantity.start()])
        if digits:
            yield Token("number", str(_han_number(digits)), digits)
        yield Token("word", unit, unit)
        place = quantity.end()
    yield from _pair_tokens(run[place:])


def _pair_tokens(run: str) -> Iterator[Token]:
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


_MAX_STEMMED_LENGTH: Final = 40
_SHORT_STEM: Final = re.compile(r"[^aeiou][aeiouy][^aeiouwxy]")
_RULES: Final = {
    kind: [(re.compile(pattern), end) for pattern, end in _KINDS[kind].items()]
    for kind in ("plural", "suffix", "ending")
}
"""For each pattern of endings of words, the text in its place."""


def stem(word: str) -> str:
    """Return the common form of all inflections of a lowercase word."""
    return word if len(word) > _MAX_STEMMED_LENGTH else _stem(word)


@lru_cache(maxsize=50_000)
def _stem(word: str) -> str:
    if word in _KINDS["stem"]:
        return _KINDS["stem"][word]
    if word in WORDS["whole"]:  # the end only looks like a suffix
        return word.removesuffix("s")
    if len(word) < 4 or not (word.isascii() and word.isalpha()):  # noqa: PLR2004
        return word
    singular = _apply_first(word, "plural")
    if singular in WORDS["whole"]:
        return singular
    bare = _apply_first(singular, "suffix")
    if bare != singular and _SHORT_STEM.fullmatch(bare):
        bare += "e"  # "caring" becomes "care", not "car"
    for pattern, end in _RULES["ending"]:
        bare = pattern.sub(end, bare)
    return bare


def _apply_first(word: str, kind: str) -> str:
    """Return a word after the first rule of a kind that changes it."""
    changed = (pattern.sub(end, word) for pattern, end in _RULES[kind])
    return next((form for form in changed if form != word), word)
