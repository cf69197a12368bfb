"""Find secret values, and mask them in texts."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import is_dataclass
from functools import lru_cache
from typing import Any, Final, cast, get_args, get_origin, get_type_hints
from urllib.parse import quote

from pydantic import AliasChoices, AliasPath, BaseModel, Secret, SecretBytes, SecretStr
from typing_extensions import is_typeddict

MASK: Final = "***"
SHORTEST_SECRET: Final = 6
"""The least length of a secret: shorter texts occur inside other words, and would mask them."""
_WORDS: Final = "token|secret|password|passwd|passphrase|credentials?|authorization"

# `env` and `headers` are the tables of servers in the configuration files of clients.
_SECRET_KEY: Final = re.compile(
    rf"({_WORDS}|(api|access|private|secret|signing)[_-]?key)$|^(envs?|headers)$", re.IGNORECASE
)
_VALUE_CHARACTER: Final = r"[^\s&#'\"<>\\]"

# Names in a query are shorter: ?key=, &sig=. A ${VARIABLE} stays, because it is not a value yet.
_QUERY_SECRET: Final = re.compile(
    rf"(?P<name>[?&;#][\w.%-]*?(?:{_WORDS}|auth|jwt|key|pwd|sig|signature)=)"
    rf"(?!\$\{{\w+\}}(?!{_VALUE_CHARACTER}))(?P<value>{_VALUE_CHARACTER}+)",
    re.IGNORECASE,
)
_USER_INFO: Final = re.compile(r"://[^\s/?#@'\"]+@")


def mask(text: str, secrets: Iterable[str]) -> str:
    """Return *text* with the secrets masked, also if they are escaped or joined to one line.

    Escapes are those of JSON, Python and URLs. User names and passwords in URLs are always masked,
    and so are query values whose names look secret.
    """
    if pattern := _pattern(frozenset(secrets)):
        text = pattern.sub(MASK, text)
    if "://" in text:
        text = _USER_INFO.sub(f"://{MASK}@", text)
    return _QUERY_SECRET.sub(rf"\g<name>{MASK}", text) if "=" in text else text


def query_secrets(address: str) -> frozenset[str]:
    """Return the query values of a URL whose names look secret, still URL-encoded."""
    return frozenset(match["value"] for match in _QUERY_SECRET.finditer(address))


def masked_data(value: object, secrets: Iterable[str]) -> Any:
    """Return *value* as JSON data, with the secrets masked everywhere."""
    if isinstance(value, str):
        return mask(value, secrets)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int | float):
        text = str(value)
        return value if mask(text, secrets) == text else MASK
    if isinstance(value, Mapping):
        items = cast("Mapping[object, object]", value).items()
        return {mask(str(key), secrets): masked_data(item, secrets) for key, item in items}
    if isinstance(value, list | tuple | set | frozenset):
        return [masked_data(item, secrets) for item in cast("Iterable[object]", value)]
    return mask(str(value), secrets)


def looks_secret(key: str) -> bool:
    """Return True if the name of *key* suggests that its value is secret."""
    return bool(_SECRET_KEY.search(key))


def long_texts(value: object) -> frozenset[str]:
    """Return the texts in *value* that are long enough to be secrets."""
    return frozenset(text for text in _texts(value) if len(text) >= SHORTEST_SECRET)


def secrets_of(value: object) -> frozenset[str]:
    """Return every secret in a validated settings model."""
    if isinstance(value, Secret | SecretStr | SecretBytes):
        return frozenset(_texts(cast("Secret[object]", value).get_secret_value()))
    if isinstance(value, BaseModel):
        value = {name: getattr(value, name) for name in type(value).model_fields}
    return frozenset[str]().union(*map(secrets_of, _elements(value).values()))


def revealed(value: object) -> Any:
    """Return *value* as JSON data with its secrets in plain text, for another process."""
    if isinstance(value, Secret | SecretStr | SecretBytes):
        return revealed(cast("Secret[object]", value).get_secret_value())
    if isinstance(value, BaseModel):
        value = {name: getattr(value, name) for name in type(value).model_fields}
    if isinstance(value, Mapping):
        items = cast("Mapping[object, object]", value).items()
        return {str(key): revealed(item) for key, item in items}
    if isinstance(value, list | tuple | set | frozenset):
        return [revealed(item) for item in cast("Iterable[object]", value)]
    return value if isinstance(value, str | int | float | None) else str(value)


def declared_secrets(annotation: Any, value: object) -> frozenset[str]:
    """Return the texts in an unvalidated *value* that *annotation* declares to be secret.

    Collect them before the validation, because its errors may quote them.
    """
    kind: Any = get_origin(annotation) or annotation
    if isinstance(kind, type) and issubclass(kind, Secret | SecretStr | SecretBytes):
        return frozenset(_texts(value))
    elements = _elements(value)
    members = [(member, item) for member in get_args(annotation) for item in elements.values()]
    members += [(member, value) for member in get_args(annotation)]
    members += [(member, elements[name]) for name, member in _members(kind) if name in elements]
    return frozenset[str]().union(*(declared_secrets(*member) for member in members))


def declares_secret(annotation: Any, path: Sequence[str], value: object = "any text") -> bool:
    """Return True if a value at *path* in this type is, or contains, a declared secret."""
    for key in reversed(path):
        value = {key: value}
    return bool(declared_secrets(annotation, value))


@lru_cache(8)  # each line of the log is masked, mostly with the same secrets
def _pattern(secrets: frozenset[str]) -> re.Pattern[str] | None:
    """Return a pattern for all spellings of the secrets, longest first, or None without secrets."""
    spellings = {spelling for secret in secrets if secret for spelling in _spellings(secret)}
    pattern = "|".join(map(re.escape, sorted(spellings, key=len, reverse=True)))
    return re.compile(pattern, re.IGNORECASE) if pattern else None


def _spellings(secret: str) -> Iterable[str]:
    yield secret
    yield json.dumps(secret)[1:-1]
    yield repr(secret)[1:-1]
    yield quote(secret, safe="", errors="replace")
    yield " ".join(secret.split()) or secret


def _texts(value: object) -> Iterator[str]:
    """Yield all texts in a value, and its numbers as texts."""
    if isinstance(value, bytes):
        value = value.decode(errors="replace")
    elif isinstance(value, int | float) and not isinstance(value, bool):
        value = str(value)
    if isinstance(value, str):
        yield from {value, value.strip()} - {""}
    for element in _elements(value).values():
        yield from _texts(element)


def _elements(value: object) -> Mapping[object, object]:
    if isinstance(value, Mapping):
        return cast("Mapping[object, object]", value)
    if isinstance(value, list | tuple | set | frozenset):
        return dict(enumerate(cast("Iterable[object]", value)))
    return {}


def _members(kind: Any) -> Iterator[tuple[str, Any]]:
    """Yield the names and aliases of the fields of a class, with their annotations."""
    if not isinstance(kind, type):
        return
    if issubclass(kind, BaseModel):
        for name, field in kind.model_fields.items():
            for alias in (name, field.alias, *_aliases(field.validation_alias)):
                if alias:
                    yield alias, field.annotation
        return
    structure = cast("Any", kind)
    if is_dataclass(structure) or is_typeddict(structure):
        yield from get_type_hints(structure).items()


def _aliases(alias: str | AliasPath | AliasChoices | None) -> list[str]:
    choices = alias if isinstance(alias, AliasChoices) else AliasChoices(alias or "")
    return [str(path[0]) for path in choices.convert_to_aliases()]
