"""The errors of text encoders, which the host translates for clients as errors of a service.

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
    """A text encoder is not installed; search can go on without it, by words alone."""
