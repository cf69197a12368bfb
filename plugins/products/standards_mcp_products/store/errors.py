"""Errors of Chroma, as callers read them: without the query, and with the next step."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from standards_mcp import ApiError, ToolError

from .client import Place


class NotBuiltError(ApiError):
    """There are no products under this name yet."""

    def __init__(self, name: str, place: Place) -> None:
        super().__init__(
            f"There are no products '{name}' in {place.shown}. Run `standards-mcp products build "
            "FILE`, or set [plugins.products] path, url or collection."
        )


class GoneError(ApiError):
    """The collection that was open is not there any more."""


@contextmanager
def translated(place: Place) -> Generator[None]:
    """Turn what Chroma raises into errors for callers.

    Raises:
        GoneError: A collection is not there any more.
        ApiError: The store fails in another way.
    """
    try:
        yield
    except ToolError:
        raise
    except Exception as error:
        # Chroma and its parts raise errors of many unrelated types, also plain Exception.
        name = type(error).__name__
        if name == "NotFoundError":
            raise GoneError(f"The products are not in {place.shown} any more.") from None
        if "dimension" in str(error):
            raise ApiError(
                f"The products in {place.shown} have vectors of another model. Set "
                "[plugins.products] model, or run `standards-mcp products build FILE`."
            ) from None
        raise ApiError(
            f"The products in {place.shown} cannot be reached or read ({name}). {place.remedy}"
        ) from None
