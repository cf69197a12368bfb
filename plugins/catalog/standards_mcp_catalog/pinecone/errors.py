"""What went wrong with Pinecone, in words that say what to do next.

The causes are told apart by what the SDK raises:
https://docs.pinecone.io/reference/api/errors lists the statuses.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, Literal, TypeAlias

from standards_mcp.commands import printable
from standards_mcp_catalog.errors import CatalogUnavailableError

Cause: TypeAlias = Literal[
    "key", "index", "minute_quota", "month_quota", "unreachable", "timeout", "malformed", "server",
    "refused", "client",
]  # fmt: skip

_KEY_ADVICE: Final = "check PINECONE_API_KEY, and that the key belongs to the project of the index"
_LONGEST_QUOTE: Final = 300
_LATER: Final = frozenset(
    {"minute_quota", "month_quota", "unreachable", "timeout", "malformed", "server"}
)
_TOO_MANY, _SERVER = 429, 500
_NO_INDEX: Final = (
    "Pinecone has no index {index!r} under this API key ({text}). Check PINECONE_INDEX_NAME and "
    "PINECONE_HOST, or create it with `standards-mcp data upload --create`."
)
_BY_STATUS: Final[Mapping[int, tuple[Cause, str]]] = {
    401: ("key", f"Pinecone does not accept the API key ({{text}}); {_KEY_ADVICE}."),
    402: ("refused", "Pinecone wants a payment ({text}). See the billing page of its console."),
    403: ("key", f"The API key may not do this in Pinecone ({{text}}); {_KEY_ADVICE}."),
    404: ("index", _NO_INDEX),
}


class PineconeUnavailableError(CatalogUnavailableError):
    """Pinecone did not answer, or did not answer what was asked.

    Attributes:
        cause: What kind of failure it was.
        retry_after: Seconds to wait, where the service said so.
    """

    def __init__(self, cause: Cause, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.cause: Cause = cause
        self.retry_after = retry_after

    @property
    def is_temporary(self) -> bool:
        """Whether the same request may succeed later without a change of the configuration."""
        return self.cause in _LATER


def translated(
    error: Exception, *, index: str, host: str, deadline: float, secrets: Iterable[str]
) -> PineconeUnavailableError:
    """Return the error to raise in place of one that the SDK raised.

    Args:
        index: The name of the index, for the message.
        host: The name of the host that was asked, for the message.
        deadline: The seconds that the call had.
        secrets: Texts that the message may not contain, whatever a server or a proxy sends back.
    """
    from pinecone import (  # noqa: PLC0415  loaded already by whoever raised it
        ApiError,
        PineconeConnectionError,
        PineconeTimeoutError,
        ResponseParsingError,
    )

    if isinstance(error, ApiError):
        text = _quoted(str(error.message), secrets)
        return _of_status(error.status_code, text, index, getattr(error, "retry_after", None))
    if isinstance(error, PineconeTimeoutError | TimeoutError):
        return timed_out(host, deadline)
    if isinstance(error, ResponseParsingError):
        return PineconeUnavailableError(
            "malformed",
            "Pinecone's answer could not be read. Something between here and Pinecone may "
            "have changed it, such as a proxy; try again, and check PINECONE_HOST.",
        )
    if isinstance(error, PineconeConnectionError | OSError):
        reason = str(error).partition("; request to ")[0]
        return PineconeUnavailableError(
            "unreachable",
            f"Pinecone cannot be reached at {host} ({_quoted(reason, secrets)}). Check the "
            "network, HTTPS_PROXY and PINECONE_HOST, and try again.",
        )
    return PineconeUnavailableError(
        "client",
        f"The request to Pinecone could not be made ({type(error).__name__}: "
        f"{_quoted(str(error), secrets)}). Check the PINECONE_ settings and the proxy settings.",
    )


def _of_status(
    status: int, text: str, index: str, retry_after: float | None
) -> PineconeUnavailableError:
    if status == _TOO_MANY:
        return _quota(text, retry_after)
    if status in _BY_STATUS:
        cause, message = _BY_STATUS[status]
        return PineconeUnavailableError(cause, message.format(index=index, text=text))
    if status >= _SERVER:
        return PineconeUnavailableError(
            "server",
            f"Pinecone failed with status {status} ({text}). Try again in a "
            "minute; https://status.pinecone.io shows known incidents.",
        )
    return PineconeUnavailableError(
        "refused", f"Pinecone refused the request with status {status}: {text}"
    )


def _quoted(text: str, secrets: Iterable[str]) -> str:
    for secret in filter(None, secrets):
        text = text.replace(secret, "***")
    return printable(" ".join(text.split()))[:_LONGEST_QUOTE].rstrip(".") or "no reason given"


def timed_out(host: str, deadline: float) -> PineconeUnavailableError:
    """Return the error of a call to *host* that had *deadline* seconds and did not end."""
    return PineconeUnavailableError(
        "timeout",
        f"Pinecone did not answer at {host} within {deadline:g} seconds: it is slow, out of "
        "reach, or holding requests back because the quota of the minute is used up. Try again "
        "in a minute, or raise [plugins.catalog.pinecone] deadline.",
    )


def _quota(text: str, retry_after: float | None) -> PineconeUnavailableError:
    # The text is all that tells the two apart, see the rate limits' page:
    # https://docs.pinecone.io/reference/api/database-limits
    if "month" in text.casefold():
        return PineconeUnavailableError(
            "month_quota",
            f"Pinecone's quota of this month is used up ({text}). Trying again will not help "
            'before next month: upgrade the plan, or set [plugins.catalog] backend = "local".',
            retry_after,
        )
    unit = "second" if retry_after == 1 else "seconds"
    wait = f"in {retry_after:g} {unit}" if retry_after else "in a minute"
    return PineconeUnavailableError(
        "minute_quota",
        f"Pinecone's quota of this minute is used up ({text}). Try again {wait}.",
        retry_after,
    )
