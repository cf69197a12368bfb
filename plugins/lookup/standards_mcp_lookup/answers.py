"""The answer of ``get_standard_details``."""

from typing import Any, NotRequired

from typing_extensions import TypedDict


class DetailsEnvelope(TypedDict):
    """The answer of ``get_standard_details``: all fields of each match, and its relatives.

    A standard that is no longer in force has ``retired``: its status and its successors. After a
    request for several codes, each result has ``asked_for``, the code that found it, and
    ``not_found`` lists the codes that found nothing. A standard of the NGSS has its ``core_idea``.
    Errors have the same shape, with ``error_type``.
    """

    success: bool
    results: list[dict[str, Any]]
    message: str
    not_found: NotRequired[list[str]]
    error_type: NotRequired[str]
