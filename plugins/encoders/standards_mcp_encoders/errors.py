"""Errors of text encoders. For clients, the host treats them as errors of a service.

* ServiceError
  + EncoderError
    + UnknownModelError (in `spec`)
    + EncoderUnavailableError
"""

from __future__ import annotations

from standards_mcp import ServiceError


class EncoderError(ServiceError):
    """Base class for errors of text encoders; the message says what to do next."""


class EncoderUnavailableError(EncoderError):
    """A text encoder is not installed or not wanted; search can go on by words alone."""
