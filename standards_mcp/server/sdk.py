"""Import the SDK in less time."""

from __future__ import annotations

from importlib import import_module

from pydantic import BaseModel


def import_sdk() -> None:
    """Import the SDK such that it builds most of its models when they are first used.

    It has 500, and a client of one protocol version needs a few dozen. To build all of them takes a
    tenth of a start.
    """
    import_module("mcp_types")  # unions of these models are built while it is imported

    BaseModel.model_config["defer_build"] = True  # inherited by the models that are defined now
    try:
        import_module("mcp.server")
    finally:
        del BaseModel.model_config["defer_build"]
