"""The part of an answer that several tools share."""

from typing_extensions import TypedDict


class Digests(TypedDict):
    """The origin of a report; equal digests mean equal reports.

    ``catalog``, ``settings`` and ``input`` are the first 16 hexadecimal digits of a SHA-256: of the
    standards that were compared, of all arguments and thresholds, and of the texts. ``model`` is
    the name of the text encoder, or empty if none was used.
    """

    catalog: str
    model: str
    settings: str
    input: str
