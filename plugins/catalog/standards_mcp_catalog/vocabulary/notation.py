"""Canonical keys of codes and identifiers: equal for all spellings of one code.

A key begins with its kind, so that keys of different kinds are never equal: ``guid:``, ``asn:``,
``code:``, and ``id:`` for an identifier of no known form. A store keeps each record under its
`record_keys` and looks up user input by its `lookup_keys`.
"""

from __future__ import annotations

import bisect
import re
import unicodedata
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, Final

from standards_mcp_catalog.records import StandardRecord

PREFIXES_FIELD: Final = "notation_prefixes"
"""The field that every store adds to a record: its `prefix_keys`, for filters."""

_UNUSUAL_DASHES = re.compile(r"[\u2010-\u2015\u2212]")
_SEPARATORS = re.compile(r"[\W_]+")
_NUMBER_AND_LETTER = re.compile(r"(\d+)([A-Z])")

# The last number of each cluster of a Common Core domain: 3.MD has A 1-2, B 3-4, C 5-7, D 8.
# Other states restart numbers in each cluster, so only a letter that agrees with this is dropped.
_CLUSTER_ENDS: Mapping[str, Mapping[str, tuple[int, ...]]] = {
    "K": {"CC": (3, 5, 7), "OA": (5,), "NBT": (1,), "MD": (2, 3), "G": (3, 6)},
    "1": {"OA": (2, 4, 6, 8), "NBT": (1, 3, 6), "MD": (2, 3, 4), "G": (3,)},
    "2": {"OA": (1, 2, 4), "NBT": (4, 9), "MD": (4, 6, 8, 10), "G": (3,)},
    "3": {"OA": (4, 6, 7, 9), "NBT": (3,), "NF": (3,), "MD": (2, 4, 7, 8), "G": (2,)},
    "4": {"OA": (3, 4, 5), "NBT": (3, 6), "NF": (2, 4, 7), "MD": (3, 4, 7), "G": (3,)},
    "5": {"OA": (2, 3), "NBT": (4, 7), "NF": (2, 7), "MD": (1, 2, 5), "G": (2, 4)},
    "6": {"RP": (3,), "NS": (1, 4, 8), "EE": (4, 8, 9), "G": (4,), "SP": (3, 5)},
    "7": {"RP": (3,), "NS": (3,), "EE": (2, 4), "G": (3, 6), "SP": (2, 4, 8)},
    "8": {"NS": (2,), "EE": (4, 6, 8), "F": (3, 5), "G": (5, 8, 9), "SP": (4,)},
    "N": {"RN": (2, 3), "Q": (3,), "CN": (3, 6, 9), "VM": (3, 5, 12)},
    "A": {"SSE": (2, 4), "APR": (1, 3, 5, 7), "CED": (4,), "REI": (2, 4, 9, 12)},
    "F": {"IF": (3, 6, 9), "BF": (2, 5), "LE": (4, 5), "TF": (4, 7, 9)},
    "G": {"CO": (5, 8, 11, 13), "SRT": (3, 5, 8, 11), "C": (4, 5), "GPE": (3, 7),
          "GMD": (3, 4), "MG": (3,)},
    "S": {"ID": (4, 6, 9), "IC": (2, 6), "CP": (5, 9), "MD": (4, 7)},
}  # fmt: skip
# Patterns of Common Core codes in the form of `_plain_code`. Only full matches count, so that the
# codes of other frameworks keep all their letters.
_PREFIX = r"(?:(?:CCSS(?:[.-]?M)?|COMMON[.-]CORE|CC)[.-])?"
_IN_MATH = r"MATH(?:EMATIC(?:S|AL))?[.-](?:CONTENT[.-]|PRACTICES?[.-])?"
_IN_ELA = r"ELA[.-](?:LITERACY[.-])?"
_MATH_PREFIX = rf"{_PREFIX}(?:{_IN_MATH})?"
_ELA_PREFIX = rf"{_PREFIX}(?:{_IN_ELA})?"
_NUMBER = r"0*(?P<number>[1-9]\d?)(?:[.-]?(?P<part>[A-Z]))?"
_MATH = re.compile(
    rf"{_MATH_PREFIX}(?:HS[.-]?(?=[NAFGS]))?0?(?P<first>[1-8]|[KNAFGS](?=[.-]))"
    rf"[.-]?(?P<second>[A-Z]{{1,3}})(?:[.-](?P<cluster>[A-D]))?(?:[.-]?{_NUMBER})?"
)
# Compiled at their first use, as most starts need none of these.
_PRACTICE = rf"{_MATH_PREFIX}(?:S?MP[.-]?|(?<=PRACTICE[.-])|(?<=PRACTICES[.-]))0?(?P<number>[1-8])"
_ANCHOR = rf"{_ELA_PREFIX}(?P<first>CCR)A?[.-](?P<second>R|W|SL|L)(?:[.-]?{_NUMBER})?"
_STRAND = r"(?P<first>RL|RI|RF|RH|RST|WHST|W|SL|L)"
_GRADE = r"0?(?P<second>1[0-2]|[1-9]|(?<=[.-])K)"
# Grades 6-8 are a band in RH, RST and WHST alone. Without a number after it "9.10" is not a band.
_BAND = r"(?P<second>0?9[.-]10|11[.-]12|(?<=[HT][.-])0?6[.-]0?8)(?:(?<=-..)|(?<=-.)|(?=[.-]\d))"
_ELA = rf"{_ELA_PREFIX}{_STRAND}[.-]?{_GRADE}(?:[.-]{_NUMBER})?"
_ELA_BAND = rf"{_ELA_PREFIX}{_STRAND}[.-]?{_BAND}(?:[.-]{_NUMBER})?"
_GRADE_FIRST = rf"CCSS[.-](?:ELA[.-])?{_GRADE}[.-]{_STRAND}[.-]{_NUMBER}"

_ANY_PREFIX = re.compile(rf"^{_PREFIX}(?:{_IN_MATH}|{_IN_ELA})?")
_SEPARATOR = re.compile(r"[.-]")

_GUID = re.compile(
    r"(?:urn:(?:uuid|guid):)?\{?"
    r"([0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12})"
    r"\}?(?:\.json)?",
    re.IGNORECASE,
)
_ASN_ID = re.compile(r"(?:https?://\S+/)?(S[0-9A-F]{6,8})(?:\.(?:json|xml|rdf))?/?", re.IGNORECASE)
_CORE_STANDARDS_PAGE = re.compile(
    r"(?:https?://)?(?:www\.)?(?:the)?corestandards\.org/(.+)", re.IGNORECASE
)
# Letters, a digit and two separators at least: "3.NF.A" is one, "e.g." and "3.5" are not.
_CODE_IN_TEXT = re.compile(
    r"(?<![\w.-])(?=[\w.-]*\d)(?=[\w.-]*[a-z])\w+(?:[.-]\w+){2,}|\bS?MP\.?[1-8]\b", re.IGNORECASE
)


def plain_text(text: str) -> str:
    """Return *text* in Unicode's form NFKC, without invisible characters, all dashes as "-"."""
    if text.isascii():
        return text
    compatible = unicodedata.normalize("NFKC", text)
    visible = "".join(char for char in compatible if unicodedata.category(char) != "Cf")
    return _UNUSUAL_DASHES.sub("-", visible)


def canonical_key(notation: str) -> str:
    """Return the key of a code: equal for all spellings of the code.

    Case, the kind of separators and punctuation around the code do not matter, and ``2A`` is
    ``2.A`` after the first segment. Common Core codes lose their prefix, the ``HS`` of high school
    and, before a number, the letter of the cluster, because short codes omit it:
    ``CCSS.Math.Content.3.NF.A.1`` and ``3.nf.1`` are both ``3.NF.1``. Bands keep their dash:
    ``RST.9-10.1``. A text without a letter or digit has the key "".
    """
    return _key_of(_plain_code(notation))


def is_common_core(code: str) -> bool:
    """Return True if *code* has the form of a Common Core code, in any spelling.

    A domain or a strand is enough: ``3.NF``, ``RL.4``. The code need not exist.
    """
    return _common_core_key(_plain_code(code)) is not None


def prefix_keys(codes: Iterable[str]) -> frozenset[str]:
    """Return the `canonical_key` of each of *codes* and of everything that it begins with.

    Each code is cut at its separators, Common Core codes with and without their prefix.
    ``CCSS.Math.Content.3.NF.A.1`` and ``3.NF.1`` both have the keys ``3``, ``3.NF``, ``3.NF.A`` and
    ``3.NF.1``; the first also has ``CCSS``, ``CCSS.MATH`` and longer beginnings.
    """
    found: set[str] = set()
    for code in filter(None, map(_plain_code, codes)):
        common = _common_core_key(code)
        key = common or _segmented(code)
        found |= {key, *_beginnings(key)}
        found.update(map(_key_of_beginning, _beginnings(code)))
        if common:
            found.update(map(_key_of_beginning, _beginnings(_ANY_PREFIX.sub("", code))))
            found.update(_cluster_keys(key))
    return frozenset(found)


def with_prefixes(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a record, and `PREFIXES_FIELD` for filters."""
    codes = (data.get("statement_notation") or "", *data.get("alt_statement_notations", ()))
    return {**data, PREFIXES_FIELD: sorted(prefix_keys(codes))}


def guid_of(text: str) -> str | None:
    """Return the GUID that *text* is, or the last one in the path of a URI; None without a GUID.

    The result has 32 upper-case hex digits. Dashes, braces, ``urn:uuid:`` and ``urn:guid:`` are
    accepted. URIs of CASE items end in a GUID: https://www.imsglobal.org/spec/case/v1p0.
    """
    path = re.split(r"[?#]", plain_text(text).strip(" \t\r\n<>\"'"), maxsplit=1)[0]
    for segment in reversed(path.split("/")):
        if match := _GUID.fullmatch(segment):
            return match[1].replace("-", "").upper()
    return None


def asn_id_of(text: str) -> str | None:
    """Return the ASN statement id, such as ``S11437E2``, that *text* is or ends in as a URI."""
    match = _ASN_ID.fullmatch(plain_text(text).strip())
    return match[1].upper() if match else None


def lookup_keys(text: str) -> tuple[str, ...]:
    """Return every key that the record named by *text* may have, best first.

    *text* is user input: a code, a GUID, an ASN id, a URI of either, the address of a page of the
    Common Core site, or any other identifier. Blank text has no keys.
    """
    keys = (*spelled_keys(text), _grade_first_key(text))
    return tuple(dict.fromkeys(key for key in keys if key))


def spelled_keys(text: str) -> tuple[str, ...]:
    """Return the `lookup_keys` of *text*, but for ``3.RL.1`` not the key of ``RL.3.1``."""
    if guid := guid_of(text):
        return (f"guid:{guid}",)
    keys = (identifier_key(text), _other_id_key(text), _code_key(text))
    return tuple(dict.fromkeys(key for key in keys if key))


def codes_in(text: str) -> tuple[str, ...]:
    """Return the parts of *text* that look like codes, such as ``RL.3.1``, each once."""
    return tuple(dict.fromkeys(match[0] for match in _CODE_IN_TEXT.finditer(plain_text(text))))


def record_keys(record: StandardRecord) -> frozenset[str]:
    """Return the keys of all identifiers and codes of *record*.

    The fields are ``id``, ``asn_identifier``, ``statement_notation``, ``alt_statement_notations``
    and, if a source added them, ``case_uuid`` and ``case_uri``.
    """
    codes = (record.statement_notation, *record.alt_statement_notations)
    found = (_code_key(code or "") for code in codes)
    return identifier_keys(record) | {key for key in found if key}


def identifier_keys(record: StandardRecord) -> frozenset[str]:
    """Return the `record_keys` of the identifiers, without the keys of codes."""
    extra = record.model_extra or {}
    identifiers = (record.id, record.asn_identifier, extra.get("case_uuid"), extra.get("case_uri"))
    found = (identifier_key(text) for text in identifiers if isinstance(text, str))
    return frozenset(key for key in found if key)


def identifier_key(text: str) -> str | None:
    """Return the key of a GUID, an ASN id, a URI of either or any other identifier."""
    if guid := guid_of(text):
        return f"guid:{guid}"
    if asn_id := asn_id_of(text):
        return f"asn:{asn_id}"
    return _other_id_key(text)


def _plain_code(notation: str) -> str:
    """Return a code in upper case, with "." or "-" as its only separators."""
    text = plain_text(notation).casefold().upper()
    separated = _SEPARATORS.sub(lambda run: "-" if run[0].strip() == "-" else ".", text)
    return separated.strip(".-")


def _key_of(code: str) -> str:
    return _common_core_key(code) or _segmented(code)


@lru_cache(maxsize=4096)
def _key_of_beginning(beginning: str) -> str:
    return _key_of(beginning)  # cached, because thousands of codes begin alike


def _beginnings(code: str) -> Iterable[str]:
    return [code[: match.start()] for match in _SEPARATOR.finditer(code)]


def _cluster_keys(key: str) -> Iterable[str]:
    """Return the key of the cluster of a Common Core code without a cluster, or an empty list."""
    first, _, rest = key.partition(".")
    second, _, rest = rest.partition(".")
    number = rest.partition(".")[0]
    ends = _CLUSTER_ENDS.get(first, {}).get(second)
    cluster = _cluster_of(int(number), ends) if ends and number.isdecimal() else None
    return [f"{first}.{second}.{cluster}"] if cluster else []


def _segmented(code: str) -> str:
    first, *rest = re.split(r"[.-]", code)
    # Only after the first segment: a leading "3A" is a level and "2A" a course, Algebra II.
    return ".".join([first, *(_NUMBER_AND_LETTER.sub(r"\1.\2", segment) for segment in rest)])


def _common_core_key(code: str) -> str | None:
    if match := re.fullmatch(_PRACTICE, code):
        return f"MP.{match['number']}"
    if (match := _MATH.fullmatch(code)) and (key := _math_key(**match.groupdict())):
        return key
    for pattern in (_ANCHOR, _ELA_BAND, _ELA, _GRADE_FIRST):
        if match := re.fullmatch(pattern, code):
            second = re.sub(r"\b0", "", match["second"].replace(".", "-"))
            return _joined(match["first"], second, match["number"], match["part"])
    return None


def _math_key(
    first: str, second: str, cluster: str | None, number: str | None, part: str | None
) -> str | None:
    ends = _CLUSTER_ENDS[first].get(second)
    if ends is None:
        return None
    if number and cluster == _cluster_of(int(number), ends):
        cluster = None
    return _joined(first, second, cluster, number, part)


def _cluster_of(number: int, ends: tuple[int, ...]) -> str | None:
    return "ABCD"[bisect.bisect_left(ends, number)] if number <= ends[-1] else None


def _joined(*parts: str | None) -> str:
    return ".".join(part for part in parts if part)


def _code_key(text: str) -> str | None:
    if page := _CORE_STANDARDS_PAGE.fullmatch(text.strip()):
        text = f"CCSS.{re.split(r'[?#]', page[1], maxsplit=1)[0]}"
    key = "" if "://" in text else canonical_key(text)
    return f"code:{key}" if key else None


def _grade_first_key(text: str) -> str | None:
    """Return the key of ``RL.3.1`` for ``3.RL.1``. Some states have codes like the latter."""
    code = f"CCSS.{canonical_key(text)}"
    return f"code:{canonical_key(code)}" if re.fullmatch(_GRADE_FIRST, code) else None


def _other_id_key(text: str) -> str | None:
    return f"id:{text.strip()}" if text.strip() else None
