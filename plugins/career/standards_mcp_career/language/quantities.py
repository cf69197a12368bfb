"""Find quantities, such as "five years" or "at least 10 people", and compare them.

    number:    [bound] values [bound]
    values:    5 | 1,000 | .5 | 2.5 | five | twenty-five | 3-5 | 3 to 5 | two million | five (5)
               | two and a half | half a dozen | a year | half a year | several years
    bound:     at least, over, under, up to, <, <=, >, >=, +, -plus, or more, or later, ...
    measured:  number [-] unit [a unit]       five years, five-year, $5 million, 30 hours a week
    counted:   number [-] noun                ten nurses, 12-person team
    held:      noun of number [noun]          a team of ten, a team of ten nurses
    version:   Name number                    Angular 15, Angular 12+

"A year" is 1, and "several years" is at least 2. A team of ten is not the same as ten teams. Other
numbers are names, such as ISO 9001, or ambiguous, such as 3/4 and "5 of 10".
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from .tokens import MULTIPLES, NUMBERS, UNITS, WORDS, Token, stem, texts


def _any(*kinds: str) -> str:
    """Return a pattern for the words of some kinds in ``words.txt``."""
    return "|".join(re.escape(word) for kind in kinds for word in sorted(WORDS[kind]))


_MARK: Final = _any("above", "below", "least", "most", "about") + "|no|not|up|bis"
# Patterns of words that are joined by spaces.
_BOUND_BEFORE: Final = re.compile(
    rf"(?<!\S)(?:(?:(?:a|an|at|the) )*(?:{_MARK}) "
    rf"(?:(?:{_MARK}|a|an|at|of|than|the|to|zu) ){{0,4}})?(?:[%$€£<>≤≥]=? )?$"
)
_BOUND_AFTER: Final = re.compile(
    rf"(?:(?P<more>\+|plus|(?:-|or) (?:{_any('above')}|higher|later|newer|plus))"
    rf"|(?P<less>or (?:{_any('below')}))|at (?P<at>{_any('least', 'most')})"
    r"|(?P<short>max|maximum|min|minimum))(?!\S)"
)
# Age, point in time, delay, or the amount of something else; after a hyphen, too: 5-year-old.
_AGE_AFTER: Final = re.compile(rf"(?:- )?(?:{_any('age')})(?!\S)")
# "Kept for ten years" and "used by clients for ten years" measure something else.
_SPAN_BEFORE: Final = re.compile(
    rf"(?<!\S)(?:used by (?:.* )?for|(?:{_any('span')})(?: for| in)?)$"
)
_PART_BEFORE: Final = re.compile(r"(?:^| )(?P<whole>\S+) (?:/|of)$")
_CALENDAR_YEAR: Final = re.compile(r"(?:19|20)\d\d")
_THOUSANDS: Final = re.compile(r"\d{1,3}(?:[.,]\d{3})+")
_BEFORE_A_UNIT: Final = re.compile(
    rf"{_MARK}|and|for|had|has|have|of|or|spent|than|with|\W"  # an amount, and no rate
)
_RANGE: Final = frozenset(("-", "\u2013", "to", "bis"))
_PER: Final = frozenset(("/", "a", "an", "each", "every", "per", "pro"))
_NOT_NAMES: Final = WORDS["label"] | WORDS["generic"] | UNITS.keys()
_MAX_WORDS: Final = 6
"""The most words of a bound, and before a span."""
_MAX_NUMBER_PARTS: Final = 3  # as in "two hundred thousand"; longer chains would take too long
_MAX_NOUN_WORDS: Final = 3
TIME_DIMENSIONS: Final = frozenset(("second", "month"))
_MONEY: Final = frozenset(("dollar", "euro", "pound"))
# "Up to ten years" proves no minimum. "Teams of up to ten" does: the largest team had ten people.
_UP_TO_LIMITS: Final = TIME_DIMENSIONS | {"percent"}


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number with its noun, as a range of possible values.

    Attributes:
        low: The smallest value: 0 after "under" or "at most".
        high: The greatest value: infinite after "at least".
        nouns: The stems of all nouns that are counted, or the dimension of the unit. The noun
            of a group begins with "of:", as in "a team of ten".
        wanted: The nouns of which a claim must count one to meet the requirement.
        rate: The unit in "a week" or "per minute".
        text: The words of the quantity in lower case.
    """

    low: float
    high: float
    nouns: tuple[str, ...]
    wanted: tuple[str, ...]
    rate: tuple[str, int] | None
    text: str

    def is_met_by(self, other: Quantity) -> bool:
        """Return True if a quantity of a claim meets this one of a requirement.

        "At most ten" proves no minimum, and "at least three" no maximum.
        """
        if self.rate not in (None, other.rate) or not set(self.wanted).intersection(other.nouns):
            return False
        return other.low >= self.low if self.low else other.high <= self.high


class Mention(NamedTuple):
    """A quantity, and where it is in a clause.

    Attributes:
        start: The place of the first token, such as "at" in "at least five years".
        end: The place after the number and unit, before the noun.
        holder: The place of the noun that has it, such as "team" in "a team of five".
        is_attribute: True for "five-year", which describes the noun that follows.
        is_version: True for "Angular 15", whose number is a name, too.
    """

    quantity: Quantity
    start: int
    end: int
    holder: int | None = None
    is_attribute: bool = False
    is_version: bool = False


class _Number(NamedTuple):
    """A number, or a range such as "3 to 5".

    Attributes:
        place: The place of the first digits or word, such as "half" in "half a year".
        start: The place of the first token with the bound, such as "at" in "at least five".
        end: The place after the last token with the bound, such as "more" in "five or more".
        marks: The words of the bound, such as "least" or "under".
    """

    low: float
    high: float
    place: int
    start: int
    end: int
    marks: frozenset[str]


def number_value(token: Token) -> float | None:
    """Return the value of a number, None for other tokens."""
    if token.kind == "number":
        digits = token.text
        if _THOUSANDS.fullmatch(digits):
            return float(re.sub("[.,]", "", digits))
        whole, *rest = re.split("[.,\u00b7]", digits)
        return float(f"{whole}.{''.join(rest) or 0}")
    return float(NUMBERS[token.text]) if token.text in NUMBERS else None


def is_number(tokens: Sequence[Token], place: int) -> bool:
    """Return True for a number, and for a unit that implies one, such as "a year"."""
    return number_value(tokens[place]) is not None or _implied_number(tokens, place) is not None


def quantity_at(tokens: Sequence[Token], place: int) -> tuple[Mention | None, int]:
    """Return the quantity whose number is at a place, and the place after its number and unit.

    The quantity is None for a number that is a name, as in "ISO 9001" or "level 3", for a number
    without a noun, for an age, and for a span, such as "the past 30 years".
    """
    number = _number_at(tokens, place)
    start = number.end
    while start < len(tokens) and tokens[start].text in ("-", "full"):
        start += 1
    words, end = _nouns(tokens, start)
    sign = tokens[place - 1].text if place else ""
    # A unit that implies its number, as in "a decade", has no sign.
    if sign in UNITS and sign != "%" and number.end > place:
        words, end = [sign], number.end
    part = _PART_BEFORE.search(_joined(tokens, number.place - 2, number.place))
    whole = tokens[number.place - 2] if part else None
    is_part = whole is not None and (number_value(whole) is not None or whole.is_a("fraction"))
    if len(words) == 1 and words[0] in UNITS:
        is_time = UNITS[words[0]][0] in TIME_DIMENSIONS
        earlier = _joined(tokens, number.start - _MAX_WORDS + 1, number.start)
        is_age = _AGE_AFTER.match(_joined(tokens, end, end + 2)) is not None
        if is_part or (is_time and (is_age or _SPAN_BEFORE.search(earlier))):
            return None, end
        measured = _measured(tokens, number, words[0], end)
        return measured, measured.end
    if not words and (version := _version(tokens, number)):
        return version, number.end
    if is_part or tokens[place].text == "one" or _is_name(tokens, place):
        return None, place + 1
    return _counted(tokens, number, words, start), start


def _number_at(tokens: Sequence[Token], place: int) -> _Number:
    """Return the number whose first digit or word is at a place, or that a unit there implies."""
    implied = _implied_number(tokens, place)
    low, high, end = (*implied[:2], place) if implied else _values(tokens, place)
    first = implied[2] if implied else place
    if first == place and texts(tokens, place - 2, place) in (["half", "a"], ["half", "an"]):
        low, high, first = low / 2, high / 2, place - 2
    bound = _BOUND_BEFORE.search(_joined(tokens, first - _MAX_WORDS, first) + " ")
    start = first - (bound.group().count(" ") if bound and first else 0)
    marks = frozenset(texts(tokens, start, first))
    return _with_bound_after(_Number(low, high, first, start, end, marks), tokens, end)


def _with_bound_after(number: _Number, tokens: Sequence[Token], place: int) -> _Number:
    """Return a number with the bound at a place after it or its unit, such as "or more", if any."""
    bound = _BOUND_AFTER.match(_joined(tokens, place, place + 2))
    if bound is None:
        return number._replace(end=place)
    kinds = {"more": WORDS["least"], "less": WORDS["most"]}
    marks = kinds.get(bound.lastgroup or "", frozenset([bound[bound.lastgroup or 0]]))
    return number._replace(end=place + 1 + bound.group().count(" "), marks=number.marks | marks)


def _range_of(number: _Number, *, up_to_is_limit: bool) -> tuple[float, float]:
    """Return the smallest and the greatest possible value.

    Args:
        up_to_is_limit: True to read "up to" as "at most": "up to ten years" may be no year, but of
            "teams of up to ten", one had ten.
    """
    low, high, marks = number.low, number.high, number.marks
    is_negated = not marks.isdisjoint(("no", "not"))
    is_up_to = up_to_is_limit and (marks >= {"up", "to"} or "bis" in marks)
    if marks & WORDS["above"]:  # not above: at most
        return (0, high) if is_negated else (math.nextafter(low, math.inf), math.inf)
    if marks & WORDS["below"]:  # not below: at least
        return (low, math.inf) if is_negated else (0, math.nextafter(high, 0))
    if marks & WORDS["most"] or is_up_to:
        return 0, high
    return low, math.inf if marks & WORDS["least"] else high


def _implied_number(tokens: Sequence[Token], place: int) -> tuple[float, float, int] | None:
    """Return low and high of "a year" or "several years", and the place of the first word."""
    unit = tokens[place].text
    if UNITS.get(unit, ("", 0))[0] != "month":
        return None
    match texts(tokens, place - 2, place):
        case [*_, several] if several in WORDS["several"]:
            return 2, math.inf, place - 1
        case [several, "of"] if several in WORDS["several"]:
            return 2, math.inf, place - 2
        case ["half", "a" | "an"]:
            return 0.5, 0.5, place - 2
        case [*_, "a" | "an"] if _is_amount(tokens, place):
            return 1, 1, place - 1
        case _:
            return (1, 1, place) if unit in ("decade", "decades") else None


def _is_amount(tokens: Sequence[Token], unit: int) -> bool:
    """Return True for "a year" as an amount, False for a rate as in "ten visits a year"."""
    if unit < 2:  # noqa: PLR2004
        return True
    before = tokens[unit - 2]
    if texts(tokens, unit + 1, unit + 2) == ["of"]:  # finished a year of nursing
        return before.kind == "word" and before.text not in MULTIPLES.keys() | UNITS.keys()
    return before.kind == "break" or _BEFORE_A_UNIT.fullmatch(before.text) is not None


def _values(tokens: Sequence[Token], start: int) -> tuple[float, float, int]:
    """Return low and high of a number or range, and the place after its last token."""
    value = number_value(tokens[start])
    if value is None:
        return 0, math.inf, start
    low, high, place = value, value, start + 1
    brackets = texts(tokens, place, place + 3)[::2]
    if brackets == ["(", ")"] and number_value(tokens[place + 1]) == value:
        place += 3  # two (2)
    joins = _RANGE | {"and"} if start and tokens[start - 1].text == "between" else _RANGE
    for _ in range(_MAX_NUMBER_PARTS):
        joint, *more_texts = texts(tokens, place, place + 3) or [""]
        more = number_value(tokens[place + 1]) if more_texts else None
        if [joint, *more_texts] == ["and", "a", "half"]:
            low, high, place = low + 0.5, high + 0.5, place + 3
        elif joint in MULTIPLES:
            low, high, place = low * MULTIPLES[joint], high * MULTIPLES[joint], place + 1
        elif more is None or joint not in joins:
            break
        elif tokens[start].kind == "word" and value % 10 == 0 and more < 10:  # noqa: PLR2004
            low, high, place = value + more, value + more, place + 2  # twenty-five
        else:
            high, place = max(high, more), place + 2
    return low, high, place


def _measured(tokens: Sequence[Token], number: _Number, unit: str, end: int) -> Mention:
    """Return a quantity with a unit that ends before the place *end*."""
    dimension, factor = UNITS[unit]
    is_singular = f"{unit}s" in UNITS
    is_attribute = is_singular and (tokens[end - 2].text == "-" or number.low != 1)
    rate, number = _rate(tokens, end), _with_bound_after(number, tokens, end)
    low, high = _range_of(number, up_to_is_limit=dimension in _UP_TO_LIMITS)
    nouns, text = (dimension,), _text(tokens[number.place : number.end])
    quantity = Quantity(low * factor, high * factor, nouns, nouns, rate, text)
    holder, first = _holder(tokens, number.start), tokens[number.start]
    if holder is None and dimension in _MONEY and (first.is_a("above") or first.is_a("below")):
        holder = _noun(tokens, number.start - 1)  # budgets over $1 million
    return Mention(quantity, number.start, number.end, holder, is_attribute)


def _version(tokens: Sequence[Token], number: _Number) -> Mention | None:
    """Return the number of a name as a quantity: 15 in "Angular 15"."""
    name, digits = _noun(tokens, number.place - 1), tokens[number.place].text
    is_whole = digits.isdecimal() and number.low == number.high
    if name is None or not is_whole or _CALENDAR_YEAR.fullmatch(digits):
        return None
    noun = tokens[name]
    if noun.written.islower() or noun.text in _NOT_NAMES:
        return None
    low, high = _range_of(number, up_to_is_limit=True)
    nouns, text = (f"version:{stem(noun.text)}",), _text(tokens[number.place : number.end])
    quantity = Quantity(low, high, nouns, nouns, None, text)
    return Mention(quantity, number.start, number.end, is_version=True)


def _counted(
    tokens: Sequence[Token], number: _Number, words: Sequence[str], start: int
) -> Mention | None:
    """Return a quantity of things, whose noun starts at a place; None without a noun.

    In "ten shop windows", windows are counted, not shops. "A team of ten" counts its members, and
    so does "a team of ten people" and "a ten-person team".
    """
    holder = _holder(tokens, number.start)
    if not words and holder is None:
        return None
    held = [] if holder is None else [tokens[holder].text]
    if len(words) > 1 and tokens[number.end].text == "-":
        words, held = words[:1], [words[1]]
    counted = [word for word in words if word.endswith("s")] or list(words)
    nouns = (*map(stem, counted), *(f"of:{stem(word)}" for word in held))
    is_any = not words or counted[-1] in WORDS["anybody"]
    low, high = _range_of(number, up_to_is_limit=False)
    first, last = (number.place, start + 1) if words else (holder or 0, start)
    wanted, text = nouns if is_any else (stem(counted[-1]),), _text(tokens[first:last])
    quantity = Quantity(low, high, nouns, wanted, _rate(tokens, start + len(words)), text)
    return Mention(quantity, number.start, start, holder)


def _joined(tokens: Sequence[Token], start: int, end: int) -> str:
    return " ".join(texts(tokens, start, end))


def _text(tokens: Sequence[Token]) -> str:
    return " ".join(token.text for token in tokens).replace(" - ", "-").replace(" +", "+")


def _nouns(tokens: Sequence[Token], start: int) -> tuple[list[str], int]:
    """Return the words of a noun at a place, or a unit alone, and the place after the words."""
    words = list[str]()
    for place, token in enumerate(tokens[start : start + _MAX_NOUN_WORDS], start):
        if token.text in UNITS:
            return [token.text], place + 1
        if not token.is_noun or number_value(token) is not None:
            break
        words.append(token.text)
    return words, start + len(words)


def _holder(tokens: Sequence[Token], start: int) -> int | None:
    """Return the place of the noun before "of" and a quantity."""
    return _noun(tokens, start - 2) if start and tokens[start - 1].is_a("tie") else None


def _noun(tokens: Sequence[Token], place: int) -> int | None:
    """Return the place if it may have a noun, else None."""
    return place if place >= 0 and tokens[place].is_noun else None


def _rate(tokens: Sequence[Token], place: int) -> tuple[str, int] | None:
    match texts(tokens, place, place + 2):
        case [per, unit] if per in _PER:
            return UNITS.get(unit)
        case _:
            return None


def _is_name(tokens: Sequence[Token], place: int) -> bool:
    """Return True for a calendar year, and after a label or a capital: phase three, Windows 11."""
    token, before = tokens[place], tokens[place - 1] if place else None
    if _CALENDAR_YEAR.fullmatch(token.text):
        return True
    if before is None or before.kind != "word":
        return False
    is_capital = before.written[0].isupper() and (place > 1 or before.written.isupper())
    return before.is_a("label") or (is_capital and token.kind == "number")
