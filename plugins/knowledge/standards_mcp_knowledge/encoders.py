"""Choose the text encoder of a dataset by the name of its model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from standards_mcp_encoders import SPECS, UnknownModelError, check_model, is_minilm

from .manifests import DatasetError, ErrorKind

BUILT_IN_SPEC: Final = "minilm"
DEFAULT_MODEL: Final = "sentence-transformers/all-MiniLM-L6-v2"
_LONGEST_NAME: Final = 200


def spec_of(model: str, specs: Mapping[str, str]) -> str:
    """Return the spec of the encoder for a model, as `standards_mcp_encoders` defines it.

    Args:
        model: The name of the model in the metadata.
        specs: Specs by model name from the settings. They take precedence over the built-in rule.

    Raises:
        DatasetError: No encoder is known for the model.
    """
    if model not in specs and is_minilm(model):
        return BUILT_IN_SPEC
    spec = specs.get(model, model)
    try:
        check_model(spec)
    except UnknownModelError:
        spec = "none"
    if spec == "none":
        raise no_encoder(model, f"Set plugins.knowledge.encoders to one of {', '.join(SPECS)}")
    return spec


def no_encoder(model: str, remedy: str, kind: ErrorKind = "encoder") -> DatasetError:
    """Return the error for a dataset without a usable encoder."""
    return DatasetError(kind, f"No encoder for model '{model[:_LONGEST_NAME]}'. {remedy}")
