"""Which text encoder made the vectors of a dataset, by the name of its model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from pydantic import SecretStr

from standards_mcp_encoders import SPECS, UnknownModelError, check_model

from .errors import DatasetError

BUILT_IN: Final = "minilm"
DEFAULT_MODEL: Final = "sentence-transformers/all-MiniLM-L6-v2"
_NONE: Final = "none"
_LONGEST: Final = 200


@dataclass(frozen=True, slots=True)
class Encoders:
    """What the settings say of encoders.

    Attributes:
        specs: Names of models with the specs of their encoders.
        key: What an encoder at an address asks for.
        timeout: Seconds that an address has for an answer.
    """

    specs: Mapping[str, str] = field(default_factory=dict[str, str])
    key: SecretStr | None = None
    timeout: float = 60


def spec_of(model: str, specs: Mapping[str, str]) -> str:
    """Return the spec of the encoder for a model, as the catalog's encoders have it.

    Args:
        model: As metadata names it.
        specs: What the settings say of models; it counts more than the rules.

    Raises:
        DatasetError: There is none.
    """
    spec = specs.get(model, model)
    if model not in specs and _is_minilm(model):
        return BUILT_IN
    try:
        check_model(spec)
    except UnknownModelError:
        spec = _NONE
    if spec == _NONE:
        raise no_encoder(model, f"Set plugins.knowledge.encoders to one of {', '.join(SPECS)}")
    return spec


def no_encoder(model: str, remedy: str, *, is_passing: bool = False) -> DatasetError:
    """Return the error of a dataset whose texts nobody can encode."""
    return DatasetError(
        "encoder", f"No encoder for model '{model[:_LONGEST]}'. {remedy}", is_passing=is_passing
    )


def _is_minilm(model: str) -> bool:
    name = model.casefold().replace("\\", "/").rpartition("/")[2].rpartition(":")[2]
    return name.removesuffix("-int8") == "all-minilm-l6-v2"
