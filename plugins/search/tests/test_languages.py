"""Questions in Spanish, asked as a client asks them."""

from __future__ import annotations

import csv
import re
import unicodedata
from collections.abc import Callable
from functools import partial
from importlib.resources import files
from typing import Any

import pytest

from standards_mcp import ToolResult
from standards_mcp_search import SearchPlugin
from standards_mcp_search.languages import message_in, read_text

Search = Callable[..., ToolResult]
FOLDER = files("standards_mcp_search.languages") / "spanish"


@pytest.fixture
def search(ask: Callable[..., ToolResult]) -> Search:
    return partial(ask, SearchPlugin, "find_relevant_standards")


def message(result: ToolResult) -> str:
    assert result.structured is not None
    return str(result.structured["message"])


def codes(result: ToolResult) -> list[str | None]:
    assert result.structured is not None
    return [standard.get("statement_notation") for standard in result.structured["results"]]


def rows(name: str) -> list[list[str]]:
    return list(csv.reader((FOLDER / name).read_text("utf-8").splitlines()))[1:]


def test_a_spanish_question_is_searched_in_english_and_answered_in_spanish(search: Search):
    result = search(activity="los niños cortan una pizza en partes iguales", max_results=2)
    assert codes(result)[0] == "3.NF.A.1"
    assert result.structured["results"][0]["content"] == "Cut a pizza into equal slices"
    assert message(result).startswith("Se encontr")
    assert "Se buscó en inglés como: cut pizza part equal." in message(result)


@pytest.mark.parametrize(
    "text",
    [
        "fracciones",
        "fracciones equivalentes",
        "resolver ecuaciones",
        "volcanes y terremotos",
        "la suma",
        "ángulos",
        "Poemas de amor",
        "TEKS de fracciones",
        "¿cómo enseño las vocales?",
    ],
)
def test_a_short_text_is_recognised_without_accents_or_words_of_grammar(text: str):
    assert read_text(text).language == "Spanish"


@pytest.mark.parametrize(
    "text",
    [
        *("equivalent fractions", "pasta", "final exam", "animal", "plural", "area"),
        *("El Niño", "Rio Grande", "Los Angeles", "cinco de mayo", "Día de los Muertos"),
        *("Don Quixote", "Gabriela Mistral", "habeas corpus", "vice versa", "Tyrannosaurus rex"),
        *("3.NF.A.1", "MS-PS1-4", "D2.His.6.3-5", "", "???", "GCF and LCM", "Quizizz"),
        "students read El sol y la luna, and share a pizza with pi\u00f1a",
        "Spanish verbs ser and estar",
    ],
)
def test_english_texts_names_and_codes_are_never_taken_for_spanish(text: str):
    reading = read_text(text)
    assert (reading.text, reading.language) == (text, "")


@pytest.mark.parametrize(
    ("text", "grade"),
    [
        ("partes iguales de una pizza, cuarto grado", "4"),
        ("partes iguales de una pizza en 4º", "4"),
        ("partes iguales de una pizza para 4to grado", "4"),
        ("grado 4: partes iguales de una pizza", "4"),
        ("partes iguales de una pizza, 4.º de primaria", "4"),
        ("partes iguales de una pizza, grados 4 a 5", "4-5"),
    ],
)
def test_a_grade_in_spanish_counts_like_one_in_english(search: Search, text: str, grade: str):
    result = search(activity=text)
    assert set(codes(result)) <= {"4.NF.A.1", None}
    assert f"El texto nombra grado {grade}; por eso" in message(result)


def test_kindergarten_and_a_subject_are_read_too(search: Search):
    kindergarten = search(activity="kínder: contar pizzas")
    assert message(kindergarten).startswith("Aquí no hay estándares para grado K;")
    for text in ("matemáticas de 4º: una pizza", "clase de matemáticas de cuarto grado: una pizza"):
        assert "El texto nombra grado 4 y matemáticas;" in message(search(activity=text))


@pytest.mark.parametrize(
    ("text", "english"),
    [
        ("la recta numérica", "number line"),
        ("cuentos de animales", "story tale animal"),
        ("cuentas de animales", "bead account animal"),
        ("restando y dividiendo 25, 10 y 5", "subtract and divide 25, 10 and 5"),
        ("poemas de Gabriela Mistral sobre el mar", "poem Gabriela Mistral sea ocean"),
    ],
)
def test_the_longest_phrase_counts_and_forms_are_found_by_their_stem(text: str, english: str):
    assert read_text(text).text == english


def test_a_code_in_a_spanish_question_comes_first(search: Search):
    result = search(activity="¿qué pide el estándar 3.NF.A.2 a los alumnos de cuarto grado?")
    assert codes(result)[0] == "3.NF.A.2"


@pytest.mark.parametrize(
    ("arguments", "start"),
    [
        (
            {"activity": "clase de música con pizzas"},
            "Aquí no hay estándares de música; quien administra el servidor puede cargar los de un",
        ),
        (
            {"activity": "TEKS de fracciones"},
            "Texas Essential Knowledge y Skills (TEKS) no están cargados aquí;",
        ),
        (
            {"activity": "cortar una pizza", "grade": "12", "subject": "math"},
            "Ningún estándar coincide. Busque otra vez sin grado o materia. Sin grado hay",
        ),
        (
            {"activity": "el número de lados de un polígono"},
            "Se encontraron 5 estándares, pero solo con coincidencia débil",
        ),
    ],
)
def test_every_kind_of_answer_is_in_spanish(search: Search, arguments: dict[str, Any], start: str):
    assert message(search(**arguments)).startswith(start)


def test_a_command_stays_as_it_is(search: Search):
    text = message(search(activity="clase de música con pizzas"))
    assert "csp --jurisdiction STATE --subject 'music'`. Estos resultados son de otros" in text


def test_what_has_no_translation_stays_english():
    assert message_in("Spanish", "A new sentence. Found 2 matching standards.") == (
        "A new sentence. Se encontraron 2 estándares que coinciden."
    )


def plain(text: str) -> str:
    return "".join(
        letter for letter in unicodedata.normalize("NFD", text) if not unicodedata.combining(letter)
    )


def test_the_table_of_words_is_sorted_and_has_each_word_once():
    words = [word for word, _ in rows("words.csv")]
    assert words == sorted(words, key=plain)
    assert len({plain(word) for word in words}) == len(words) > 5000
    assert all(unicodedata.is_normalized("NFC", word) for word in words)
    assert all(word == " ".join(word.lower().split()) for word in words)


def test_the_table_of_words_has_plain_english():
    for word, english in rows("words.csv"):
        assert re.fullmatch(r"(?:[a-z#][a-z'#-]*(?: |$))*", english), word
        assert english.count("#") <= word.count("#"), word


def test_the_table_of_sentences_has_the_same_variables_on_both_sides():
    for english, spanish in rows("sentences.csv"):
        assert set(re.findall(r"{\w+}", spanish)) == set(re.findall(r"{\w+}", english)), english
