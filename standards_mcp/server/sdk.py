"""Import the SDK in less time."""

from __future__ import annotations

import sys
from contextlib import suppress
from importlib import import_module
from typing import Any

from pydantic import BaseModel


def import_sdk() -> None:
    """Import the SDK for a server over stdio.

    It has 500 models, and a client of one protocol version needs a few dozen. To build all of them
    takes a tenth of a start, so most are built when they are first used. uvicorn takes a fiftieth:
    a library of the SDK imports it, if it is there, to hear of the end of a server over HTTP.
    """
    import_module("mcp_types")  # unions of these models are built while it is imported

    BaseModel.model_config["defer_build"] = True  # inherited by the models that are defined now
    modules: dict[str, Any] = sys.modules
    modules.setdefault("uvicorn", None)
    try:
        with suppress(ImportError):  # of a version that needs uvicorn
            import_module("mcp.server")
    finally:
        del BaseModel.model_config["defer_build"]
        if modules["uvicorn"] is None:
            del modules["uvicorn"]
    import_module("mcp.server")
