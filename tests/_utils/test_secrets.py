from __future__ import annotations

import dataclasses
from typing import Annotated, Any

import pytest
from pydantic import AliasChoices, AliasPath, BaseModel, Field, Secret, SecretBytes, SecretStr
from typing_extensions import TypedDict

from standards_mcp._utils.secrets import declared_secrets, mask, secrets_of
from standards_mcp.config.models.settings import Settings


def test_the_longer_of_two_secrets_is_masked_whole():
    assert mask("abcdef", ["abc", "abcdef"]) == "***"


def test_an_empty_secret_masks_nothing():
    assert mask("text", [""]) == "text"


def test_a_secret_is_masked_in_any_case():
    assert mask("hush is wrong", ["Hush"]) == "*** is wrong"


@pytest.mark.parametrize(
    "text", ["a  b\nc/d", "a b c/d", "a%20%20b%0Ac%2Fd", r"a  b\nc/d"], ids=repr
)
def test_a_secret_is_masked_as_one_line_or_as_an_address_spells_it(text: str):
    assert mask(f"<{text}>", ["a  b\nc/d"]) == "<***>"


def test_the_password_in_an_address_is_masked_whatever_the_secrets():
    assert mask("at https://ann:pw@host/x?y=a@b", ()) == "at https://***@host/x?y=a@b"


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("https://host/mcp?api_key=hush", "https://host/mcp?api_key=***"),
        ("https://host/?a=b&Access_Token=hu%2Csh&c=d", "https://host/?a=b&Access_Token=***&c=d"),
        ("for 'https://host?key=hush' of", "for 'https://host?key=***' of"),
        ('{"url": "https://host?x-sig=hush#top"}', '{"url": "https://host?x-sig=***#top"}'),
        ("https://host/#auth=hush", "https://host/#auth=***"),
        ("https://host?key=${KEY}", "https://host?key=${KEY}"),
        ("https://host?key=${KEY}hush", "https://host?key=***"),
        ("https://host?keyword=fractions&page=2", "https://host?keyword=fractions&page=2"),
        ("is the key = 3? key=4", "is the key = 3? key=4"),
    ],
)
def test_what_a_query_names_like_a_secret_is_masked_whatever_the_secrets(address: str, shown: str):
    assert mask(address, ()) == shown
    assert mask(shown, ()) == shown


class Inner(BaseModel):
    password: SecretStr = SecretStr("inner")


class Outer(BaseModel):
    key: SecretStr = SecretStr("outer")
    raw: SecretBytes = SecretBytes(b"raw")
    number: Secret[int] = Secret(12)
    empty: SecretStr = SecretStr("")
    nothing: SecretStr | None = None
    inner: Inner = Inner()
    many: list[SecretStr] = [SecretStr("one"), SecretStr("two")]
    table: dict[str, Inner] = {"a": Inner(password=SecretStr("deep"))}
    plain: str = "plain"


def test_every_secret_is_found_wherever_it_is():
    assert secrets_of(Outer()) == {"outer", "raw", "12", "inner", "one", "two", "deep"}
    assert secrets_of([Outer(), "x", None, 5]) == secrets_of(Outer())
    assert secrets_of(Settings()) == frozenset()


class Login(TypedDict):
    user: str
    word: SecretStr


@dataclasses.dataclass
class Door:
    lock: SecretStr


@pytest.mark.parametrize(
    ("annotation", "value", "found"),
    [
        (SecretStr, "hush", {"hush"}),
        (SecretStr, " hush ", {" hush ", "hush"}),
        (SecretBytes, b"hush", {"hush"}),
        (SecretStr, 1234, {"1234"}),
        (SecretStr, ["not", "a text"], {"not", "a text"}),
        (SecretStr, True, set()),
        (SecretStr | None, "hush", {"hush"}),
        (Secret[int], "x1", {"x1"}),
        (list[Annotated[SecretStr, Field(min_length=9)]], ["one", "two"], {"one", "two"}),
        (dict[str, SecretStr], {"a": "one"}, {"one"}),
        (dict[str, list[Inner] | None], {"a": [{"password": "deep"}]}, {"deep"}),
        (Inner, {"password": "hush", "other": "x"}, {"hush"}),
        (Inner, "not a table", set()),
        (Login, {"user": "ann", "word": "hush"}, {"hush"}),
        (Door, {"lock": "hush"}, {"hush"}),
        (str, "plain", set()),
        (Any, {"a": "plain"}, set()),
    ],
)
def test_a_declared_secret_is_known_before_it_is_validated(
    annotation: Any, value: object, found: set[str]
):
    assert declared_secrets(annotation, value) == found


@pytest.mark.parametrize(
    "field",
    [
        Field(alias="key"),
        Field(validation_alias="key"),
        Field(validation_alias=AliasPath("key", "below")),
        Field(validation_alias=AliasChoices("other", AliasPath("key", 0))),
    ],
)
def test_a_declared_secret_is_known_under_every_name(field: Any):
    class Aliased(BaseModel):
        word: SecretStr = field

    for value in ("hush", {"below": "hush"}, ["hush"]):
        assert declared_secrets(Aliased, {"key": value, "x": "plain"}) == {"hush"}
