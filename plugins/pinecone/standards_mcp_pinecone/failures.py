"""Translate errors of the Pinecone SDK to messages with a remedy.

The causes follow from the exceptions of the SDK and from the HTTP statuses in
https://docs.pinecone.io/reference/api/errors.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, Literal, TypeAlias

from standards_mcp.commands import printable
from standards_mcp_catalog.errors import CatalogUnavailableError

Cause: TypeAlias = Literal[
    "key", "forbidden", "payment", "index", "minute_quota", "month_quota", "unreachable",
    "timeout", "malformed", "server", "refused", "client",
]  # fmt: skip

_TEMPORARY: Final = frozenset(
    {"minute_quota", "month_quota", "unreachable", "timeout", "malformed", "server"}
)
_LONGEST_QUOTE: Final = 300
_TOO_MANY_REQUESTS, _SERVER_ERROR = 429, 500
_BY_STATUS: Final[Mapping[int, Cause]] = {
    401: "key",
    402: "payment",
    403: "forbidden",
    404: "index",
}
_KEY_ADVICE: Final = "check PINECONE_API_KEY, and that the key belongs to the project of the index"
_MESSAGES: Final[Mapping[Cause, str]] = {
    "key": f"Pinecone does not accept the API key ({{text}}); {_KEY_ADVICE}.",
    "forbidden": f"The API key may not do this in Pinecone ({{text}}); {_KEY_ADVICE}.",
    "payment": "Pinecone wants a payment ({text}). See the billing page of its console.",
    "index": "Pinecone has no index {index!r} under this API key ({text}). Check "
    "PINECONE_INDEX_NAME and PINECONE_HOST, or create it with `standards-mcp data upload "
    "--create`.",
    "minute_quota": "Pinecone's quota of this minute is used up ({text}). Try again {wait}.",
    "month_quota": "Pinecone's quota of this month is used up ({text}). Trying again will not "
    'help before next month: upgrade the plan, or set [plugins.catalog] backend = "local".',
    "unreachable": "Pinecone cannot be reached at {host} ({text}). Check the network, HTTPS_PROXY "
    "and PINECONE_HOST, and try again.",
    "timeout": "Pinecone did not answer at {host} within {deadline:g} seconds: it is slow, out of "
    "reach, or holding requests back because the quota of the minute is used up. Try again in a "
    "minute, or raise [plugins.catalog.pinecone] deadline.",
    "malformed": "Pinecone's answer could not be read. Something between here and Pinecone may "
    "have changed it, such as a proxy; try again, and check PINECONE_HOST.",
    "server": "Pinecone failed with status {status} ({text}). Try again in a minute; "
    "https://status.pinecone.io shows known incidents.",
    "refused": "Pinecone refused the request with status {status}: {text}",
    "client": "The request to Pinecone could not be made ({text}). Check the PINECONE_ settings "
    "and the proxy settings.",
}


class PineconeUnavailableError(CatalogUnavailableError):
    """Pinecone did not answer, or refused the request.

    Attributes:
        cause: The kind of failure.
        retry_after: Seconds to wait, if the service said so.
    """

    def __init__(self, cause: Cause, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.cause: Cause = cause
        self.retry_after = retry_after

    @property
    def is_temporary(self) -> bool:
        """True if the same request may succeed later without a change of the configuration."""
        return self.cause in _TEMPORARY


def translated(
    error: Exception, *, index: str, host: str, deadline: float, secrets: Iterable[str]
) -> PineconeUnavailableError:
    """Return the error to raise in place of one that the SDK raised.

    Args:
        secrets: Texts to keep out of the message, even if a server or a proxy sends them back.
    """
    from pinecone import (  # noqa: PLC0415  loaded, since it raised the error
        ApiError,
        PineconeConnectionError,
        PineconeTimeoutError,
        ResponseParsingError,
    )

    cause: Cause = "client"
    status, text = 0, str(error)
    if isinstance(error, ApiError):
        status, text = error.status_code, str(error.message)
        cause = _cause_of(status, text)
    elif isinstance(error, PineconeTimeoutError | TimeoutError):
        cause = "timeout"
    elif isinstance(error, ResponseParsingError):
        cause = "malformed"
    elif isinstance(error, PineconeConnectionError | OSError):
        cause, text = "unreachable", text.partition("; request to ")[0]
    else:
        text = f"{type(error).__name__}: {text}"
    retry_after: float | None = getattr(error, "retry_after", None)
    seconds = "second" if retry_after == 1 else "seconds"
    wait = f"in {retry_after:g} {seconds}" if retry_after else "in a minute"
    facts = {"index": index, "host": host, "deadline": deadline, "status": status, "wait": wait}
    message = _MESSAGES[cause].format(text=_quoted(text, secrets), **facts)
    return PineconeUnavailableError(cause, message, retry_after)


def _cause_of(status: int, text: str) -> Cause:
    if status == _TOO_MANY_REQUESTS:
        # Only the text distinguishes the two quotas, see
        # https://docs.pinecone.io/reference/api/database-limits
        return "month_quota" if "month" in text.casefold() else "minute_quota"
    return _BY_STATUS.get(status, "server" if status >= _SERVER_ERROR else "refused")


def _quoted(text: str, secrets: Iterable[str]) -> str:
    for secret in filter(None, secrets):
        text = text.replace(secret, "***")
    return printable(" ".join(text.split()))[:_LONGEST_QUOTE].rstrip(".") or "no reason given"
