"""Texts in other languages than English, the language of the standards.

A text in a language with a folder here is translated word by word for the search, and its answer
is in that language. The files of the folder:

    words.csv       spanish,english: words and phrases in lower case, sorted; see `translation`
    sentences.csv   english,spanish: the sentences of an answer, see `sentences`
    english.txt     words that are English, too, and names: ignored in the detection of the language

A text in any other language is answered with the advice to ask in English.
"""

from __future__ import annotations

from dataclasses import dataclass

from .detection import ENGLISH, detect_language
from .sentences import message_in
from .translation import TABLES, table_of

__all__ = ["Reading", "message_in", "read_text"]


@dataclass(frozen=True, slots=True)
class Reading:
    """The text to search for, and the language of the original.

    Attributes:
        text: The text, in English if its language can be translated.
        language: The language of a text that was translated, or an empty string.
        foreign: The language of a text that cannot be translated, or an empty string.
    """

    text: str
    language: str = ""
    foreign: str = ""


def read_text(text: str) -> Reading:
    """Detect the language of a text, and translate it into English if there is a table.

    If common words do not show the language, the words of the tables decide.
    """
    language = detect_language(text)
    if not language:
        language = next((each for each in TABLES if table_of(each).has_most_words(text)), "")
    if language in TABLES:
        return Reading(table_of(language).translate(text), language=language)
    return Reading(text, foreign="" if language == ENGLISH else language)
