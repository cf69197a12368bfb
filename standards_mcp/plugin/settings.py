"""Models for the settings of plugins, and types for the addresses and keys of services.

The models take the descriptions of their fields from their docstrings.
"""

import inspect
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Any, Final, TypeAlias
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, GetJsonSchemaHandler, SecretStr
from pydantic_core import CoreSchema

_ATTRIBUTE: Final = re.compile(r"^ {4}(\w+): (.*(?:\n {8}.*)*)", re.MULTILINE)


class Documented(BaseModel):
    """A model whose JSON Schema has the descriptions of its docstring's ``Attributes:``."""

    # Most models are validated only as a part of another model, which builds them, too.
    model_config = ConfigDict(defer_build=True)

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler, /
    ) -> dict[str, Any]:
        """Return the schema with a description of the table and of each key."""
        schema = handler(core_schema)
        model = handler.resolve_ref_schema(schema)
        model["description"] = _one_line(inspect.cleandoc(cls.__doc__ or "").split("\n\n")[0])
        for name, text in _attributes(cls):
            if name in model.get("properties", {}):
                model["properties"][name]["description"] = text
        return schema


def _attributes(model: type[BaseModel]) -> Iterator[tuple[str, str]]:
    """Yield the names and descriptions of attributes in the docstrings of a model and its bases."""
    for base in reversed(model.__mro__):
        _, _, section = inspect.cleandoc(base.__doc__ or "").partition("\n\nAttributes:\n")
        for name, text in _ATTRIBUTE.findall(section):
            yield name, _one_line(text)


def _one_line(text: str) -> str:
    return " ".join(text.replace("``", "`").split())


class PluginSettings(Documented):
    """Base class for the model of a plugin's own keys in its table ``[plugins.<name>]``.

    The host reserves ``enabled``, ``required``, ``isolate``, ``python``, ``memory``,
    ``processes`` and ``env``.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    def folders_to_make(self) -> Mapping[str, Path]:
        """Return the folders that the plugin makes at their first use, by their settings keys.

        ``config check`` reports a folder whose parent does not exist, which usually is a typing
        error.
        """
        return {}


@dataclass(frozen=True, slots=True)
class Variable:
    """Metadata of a settings field: the name of an environment variable that sets it.

    ``api_key: Annotated[SecretStr | None, Variable("SEARCH_API_KEY")] = None`` is set by that
    variable of the environment or of ``.env``, which wins over the configuration file.

    Attributes:
        only: True if only the variable may set the key. Other users may be able to read the
            configuration file and the command line.
    """

    name: str
    only: bool = False


def is_loopback(name: str) -> bool:
    """Return True if the host *name* is a loopback address."""
    try:
        return ip_address(name).is_loopback
    except ValueError:
        return name.casefold() == "localhost"


def is_unencrypted(address: str) -> bool:
    """Return True if others could read a request to *address*: plain HTTP, except to loopback.

    Raises:
        ValueError: *address* is not a URL.
    """
    parts = urlsplit(address)
    return parts.scheme == "http" and not is_loopback(parts.hostname or "")


def may_use_proxy(address: str) -> bool:
    """Return True if requests to *address* may use a proxy from the environment.

    Plain HTTP to loopback may not: such a request may have a key, and the proxy would read it.
    """
    return is_unencrypted(address) or not address.casefold().startswith("http:")


def _service_url(url: str) -> str:
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        raise ValueError("this is not a valid address: check its host and its port") from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("an address begins with https:// or http:// and has a host")
    if " " in url or not url.isprintable():
        raise ValueError("an address has no white space and no control characters")
    if parts.query or parts.fragment or "@" in parts.netloc:
        raise ValueError("the address of a service has no query, user name and password")
    return url.rstrip("/")


def _api_key(key: SecretStr) -> SecretStr:
    text = key.get_secret_value().strip()
    if not all("!" <= character <= "~" for character in text):
        raise ValueError(
            "the key has an invalid character, such as a space or a line break; copy it again from "
            "its source"
        )
    return SecretStr(text)


ServiceUrl: TypeAlias = Annotated[str, AfterValidator(_service_url)]
"""An HTTP address with a host and without a slash at its end.

A query, a user name and a password are refused, so that it holds no secret.
"""
ApiKey: TypeAlias = Annotated[SecretStr, AfterValidator(_api_key)]
"""A key that a header can carry, without the white space around it."""
