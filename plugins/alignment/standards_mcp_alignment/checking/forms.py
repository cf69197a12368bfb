"""Tell by its form alone how likely a text is the code of a standard."""

from __future__ import annotations

import re
from enum import Enum
from typing import Final

from standards_mcp_catalog.vocabulary.families import COMMON_CORE, LABELS, family_of
from standards_mcp_catalog.vocabulary.notation import (
    asn_id_of,
    canonical_key,
    guid_of,
    is_common_core,
)
from standards_mcp_catalog.vocabulary.readings import is_code

_LONGEST: Final = 60
_LEAST_SEPARATORS: Final = 2
_LEAST_RUNS: Final = 4
_RUN: Final = re.compile(r"[^\W\d_]+|\d+")
_SEPARATOR: Final = re.compile(r"[.:(-]+")
# In the spelling of `canonical_key`: 3.NF.A and 3.NF.1, RL.4.1, CCR.R.1, MP.1.
_NUMBERED: Final = re.compile(
    r"(?:[K1-8NAFGS]|CCR)\.[A-Z]{1,3}\.[A-Z0-9.]+|[A-Z]{1,4}\.[^.]+\.\d.*|MP\.."
)
_WITHOUT_DIGIT: Final = re.compile(
    r"(?:CCSS\.Math\.Content\.)?(?:K|(?:HS[.-]?)?[NAFGS])[.-][A-Z]{1,3}(?:\.[A-D])?", re.IGNORECASE
)
# The letter of a chess piece or an element: 3.Nf3. No one writes codes so.
_BROKEN_CASE: Final = re.compile(r"[A-Z][a-z]+\d")
_LOWER_LETTER: Final = re.compile(r"[lwnafgs][.-]")
# A component of a core idea of the NGSS, such as PS1.A, is not a standard.
_CORE_IDEA: Final = re.compile(r"(?:PS|LS|ESS|ETS)[1-4]\.[A-E]", re.IGNORECASE)
# Codes that no one has published, in the form of the Common Core and of the NGSS: 2.NF.A.1.
_INVENTED: Final = re.compile(
    r"(?:CCSS\.Math\.Content\.)?(?:[K1-8]|HS[NAFGS]|1[0-2]|9)[.-][A-Z]{2,3}\.[A-E]\.\d{1,2}[a-z]?"
    r"|(?:K|[1-9]|MS|HS)-(?:PS|LS|ESS|ETS)\d-\d{1,2}"
)


class Form(Enum):
    """The form of a text.

    Attributes:
        CERTAIN: Nothing but a code looks like this: ``3.NF.A.1``, ``MS-PS1-4``.
        COMPACT: A code of the Common Core without all of its separators: ``3NF1``, ``MP3``.
        HEADING: A domain or a strand of the Common Core: ``3.NF``, ``A-REI``, ``RL.4``.
        NAMED: A GUID, an ASN id, a core idea or a code such as ``S7L1.b``, which is a code only if
            it exists.
        SHAPED: Letters, digits and two separators, as codes of many states have: ``SS.3.4b``.
        SHORT: Digits and a separator: ``3.5``, ``4.7A``, ``2.4.1``.
    """

    CERTAIN = "certain"
    COMPACT = "compact"
    HEADING = "heading"
    NAMED = "named"
    SHAPED = "shaped"
    SHORT = "short"


def form_of(text: str) -> Form | None:
    """Return the form of *text*, or None if it cannot be a code."""
    has_digit, has_letter = any(map(str.isdigit, text)), any(map(str.isalpha, text))
    if len(text) > _LONGEST or not (has_digit or _WITHOUT_DIGIT.fullmatch(text)):
        return None
    separators = len(_SEPARATOR.findall(text))
    if not has_letter:
        is_time = ":" in text
        return Form.SHORT if separators and not is_time else None
    if guid_of(text) or asn_id_of(text) or _CORE_IDEA.fullmatch(text):
        return Form.NAMED
    return _form_of_code(text, separators) if has_digit or is_common_core(text) else None


def _form_of_code(text: str, separators: int) -> Form | None:
    family = family_of(text)
    if family is COMMON_CORE:
        is_numbered = _NUMBERED.fullmatch(canonical_key(text))
        return _certain_or_compact(text, separators) if is_numbered else Form.HEADING
    # Any number in the hundreds looks like a section of the TEKS: 110.5-mile.
    if family and (family is not LABELS["TEKS"] or "(" in text or "\u00a7" in text):
        return Form.CERTAIN
    if (is_code(text) and not family) or _INVENTED.fullmatch(text):
        return _certain_or_compact(text, separators)
    if separators >= _LEAST_SEPARATORS:
        return Form.SHAPED
    if len(_RUN.findall(text)) >= _LEAST_RUNS:
        return Form.NAMED
    return Form.SHORT if separators else None


def _certain_or_compact(text: str, separators: int) -> Form:
    is_plain = not _BROKEN_CASE.search(text) and not _LOWER_LETTER.match(text)
    return Form.CERTAIN if separators >= _LEAST_SEPARATORS and is_plain else Form.COMPACT
