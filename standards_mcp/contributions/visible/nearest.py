"""Finds the tool that a name means which no tool has."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from difflib import SequenceMatcher
from typing import Final

from standards_mcp._utils.text import nearest
from standards_mcp.contributions.tools import RegisteredTool

_WORDS: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")
_MISSPELT: Final = 0.85
"""How like a name must be, from 0 to 1, to count as the same name with a slip."""
_SHORTEST: Final = 4
_LONGEST: Final = 100


def nearest_tool(name: str, tools: Iterable[RegisteredTool]) -> str:
    """Return the published name of the tool that *name* may mean, or an empty string.

    A slip of spelling comes first, then the tool that shares most words with it, then the name most
    like it. The words of a tool are those of its name, of its plugin's name, of its title and of
    the first sentence of its description: the rest often tells of other tools. A word that several
    tools have counts less. A tool that shares half of the words, or fewer, is not meant.
    """
    name = name[:_LONGEST]  # it is a client's, of any length
    known = {item.published: item for item in tools}
    close = nearest(name, known)
    if close and SequenceMatcher(None, name.lower(), close.lower()).ratio() >= _MISSPELT:
        return close
    names = {each: _words(f"{each} {item.plugin}") for each, item in known.items()}
    texts = {each: _words(_about(item)) for each, item in known.items()}
    scores, shared = defaultdict[str, float](float), Counter[str]()
    asked = sorted(_words(name))
    for word in asked:
        named = [each for each in known if _has(names[each], word)]
        told = [each for each in known if _has(texts[each], word)]
        shared.update({*named, *told})
        for each in {*named, *told}:
            # What a tool is called says more of it than a word of its description.
            scores[each] += (2 if each in named else 1) / len({*named, *told})
    enough = {each: score for each, score in scores.items() if 2 * shared[each] > len(asked)}
    found = [each for each, score in enough.items() if score == max(enough.values())]
    return found[0] if len(found) == 1 else nearest(name, found or known) or close


def _about(item: RegisteredTool) -> str:
    return f"{item.title or ''} {item.description.partition('. ')[0]}"


def _words(text: str) -> set[str]:
    return {word.lower() for word in _WORDS.findall(text)}


def _has(words: Iterable[str], word: str) -> bool:
    """Tell whether *word* is among *words* in any form: search, searches, searched."""
    return any(_same(each, word) for each in words)


def _same(first: str, second: str) -> bool:
    short, long = sorted((first, second), key=len)
    return long == short or (len(short) >= _SHORTEST and long.startswith(short))
