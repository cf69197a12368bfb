"""Filters of products: what callers may ask for, and how Chroma is told."""

from .matching import fulfils
from .reading import Conditions, read_filters

__all__ = ["Conditions", "fulfils", "read_filters"]
