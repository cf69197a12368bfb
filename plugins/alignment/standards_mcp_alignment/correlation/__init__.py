"""Correlate lessons and items with standards, each pair with a calibrated probability."""

from .command import align_command

__all__ = ["align_command"]
