"""Errors of Chroma, as callers read them: without the query, and with the next step."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from standards_mcp import ApiError, ServiceError, ToolError

from .client import Place


class NotBuiltError(ApiError):
    """There are no products under this name yet."""

    def __init__(self, name: str, place: Place) -> None:
        super().__init__(
            f"There are no products '{name}' in {place.shown}. Run `standards-mcp products build "
            "FILE`, or set [plugins.products] path, url or collection."
        )


@contextmanager
def translated(place: Place, name: str) -> Generator[None]:
    """Turn what Chroma raises into errors for callers.

    Args:
        name: What the settings call the products.

    Raises:
        NotBuiltError: They are not there.
        ApiError: The store fails in another way.
    """
    try:
        yield
    except (ToolError, ServiceError):
        raise
    except Exception as error:  # noqa: BLE001  - Chroma raises plain ones, too
        kind = type(error).__name__
        if kind == "NotFoundError":
            raise NotBuiltError(name, place) from None
        if "dimension" in str(error):
            raise ApiError(
                f"The products in {place.shown} have vectors of another model. Set "
                "[plugins.products] model, or run `standards-mcp products build FILE`."
            ) from None
        raise ApiError(
            f"The products in {place.shown} cannot be reached or read ({kind}). {place.remedy}"
        ) from None
