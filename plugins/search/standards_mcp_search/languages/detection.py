"""Detect the language of a text by its script and by common words of several languages."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Collection
from typing import Final

ENGLISH: Final = "English"
_LANGUAGES: Final = {
    ENGLISH: """the of and to with for is are their they how what students student by from that
        this it an read write using use number numbers word words add between two each which when
        story poem lesson class""",
    "Spanish": """el los las del que y una para con por se como más número números fracciones
        fracción sumar restar suma resta multiplicar dividir leer escribir lectura escritura cuento
        texto alumnos alumno estudiantes estudiante niños niñas grado clase problemas""",
    "French": """les des une est dans avec pour sur que qui au aux du ou par nombres nombre
        élèves élève lire écrire lecture écriture texte additionner soustraire multiplier diviser
        classe problèmes""",
    "Portuguese": """os das dos uma com para por que não mais número números frações fração somar
        subtrair multiplicar dividir ler escrever leitura escrita texto alunos aluno crianças""",
    "German": """der die das und mit für ein eine den dem im ist sind von zu auf wie zahlen zahl
        brüche brüchen schüler schülerinnen lesen schreiben addieren subtrahieren rechnen klasse""",
    "Italian": """il gli della delle con per una che nel nella sono numeri numero frazioni leggere
        scrivere lettura testo alunni studenti bambini classe sommare""",
    "Vietnamese": "và của các cho với một những học sinh phân số đọc viết cộng trừ nhân chia",
}
_LANGUAGES_OF_WORD: Final = {
    word: [name for name, words in _LANGUAGES.items() if word in words.split()]
    for words in _LANGUAGES.values()
    for word in words.split()
}
_SCRIPTS: Final = {
    "CJK": "Chinese",
    "HIRAGANA": "Japanese",
    "KATAKANA": "Japanese",
    "HANGUL": "Korean",
    "CYRILLIC": "Russian or Ukrainian",
    "ARABIC": "Arabic",
    "HEBREW": "Hebrew",
    "DEVANAGARI": "Hindi",
    "THAI": "Thai",
    "GREEK": "Greek",
}
_MIN_COMMON_WORDS: Final = 2


def detect_language(text: str) -> str:
    """Return the language of a text by its script or its common words, or an empty string."""
    words = set(re.findall(r"[^\W\d_]+", unicodedata.normalize("NFC", text[:2000]).casefold()))
    return _by_script(words) or _by_words(words)


def _by_script(words: Collection[str]) -> str:
    scripts = Counter(unicodedata.name(word[0], "").partition(" ")[0] for word in words)
    foreign = {name: count for name, count in scripts.items() if name in _SCRIPTS}
    if not foreign or sum(foreign.values()) * 2 < len(words):
        return ""
    # Japanese is written with Chinese characters, too.
    kana = next((name for name in ("HIRAGANA", "KATAKANA") if name in foreign), "")
    return _SCRIPTS[kana or max(foreign, key=lambda name: foreign[name])]


def _by_words(words: Collection[str]) -> str:
    counts = Counter(name for word in words for name in _LANGUAGES_OF_WORD.get(word, ()))
    english = counts.pop(ENGLISH, 0)
    language, count = counts.most_common(1)[0] if counts else ("", 0)
    if count >= _MIN_COMMON_WORDS and count > english:
        return language
    return ENGLISH if english else ""
