"""The process that reads documents: requests on stdin, answers as lines of JSON on stdout.

A request is a line with the suffix and the size, then the bytes of the file. A bad file may exhaust
the memory, run forever or crash a library, but only in this process.
"""

from __future__ import annotations

import json
import os
import sys
import time
from dataclasses import asdict
from typing import Any

from .document import KINDS, Document, DocumentError
from .reader import Limits


def main() -> None:
    """Answer requests until stdin ends. The argument has the limits, as JSON."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # prints of libraries are not answers
    limits = Limits(**json.loads(sys.argv[1]))
    _limit("RLIMIT_AS", limits.memory)
    requests = sys.stdin.buffer
    while line := requests.readline():
        suffix, size = json.loads(line)
        # If the host has been killed, nobody else ends this process.
        _limit("RLIMIT_CPU", int(time.process_time() + limits.seconds) + 1)
        answer = answer_to(requests.read(size), suffix, limits)
        answers.write(json.dumps(answer).encode() + b"\n")
        answers.flush()


def answer_to(data: bytes, suffix: str, limits: Limits) -> dict[str, Any]:
    """Return the fields of the document, or an ``error``, with ``is_last`` if memory is short."""
    try:
        document = _read(data, suffix, limits)
        if document.sections:
            return asdict(document)
        reason = "it has no text"
        if suffix == ".pdf":
            reason += "; if it is a scan, run text recognition (OCR) first"
    except DocumentError as error:
        reason = str(error)
    except MemoryError:
        limit = f"{limits.memory / 10**9:g} GB of memory"
        return {"error": f"reading it takes more than {limit}", "is_last": True}
    except ModuleNotFoundError as error:
        reason = f"reading it needs the Python package {error.name}"
    except RecursionError:
        reason = "its elements are nested too deep"
    except Exception:  # noqa: BLE001  - damaged files make the libraries raise nearly anything
        reason = f"it is damaged, or not {KINDS[suffix]}"
    return {"error": reason}


def _read(data: bytes, suffix: str, limits: Limits) -> Document:
    if suffix == ".pdf":
        from .pdf import read_pdf  # noqa: PLC0415  - each file needs one parser

        return read_pdf(data)
    if suffix == ".docx":
        from .word import read_docx  # noqa: PLC0415

        return read_docx(data, limits.unpacked)
    from .markup import READERS  # noqa: PLC0415

    return READERS[suffix](data)


def _limit(name: str, most: int) -> None:
    if sys.platform == "linux":
        import resource  # noqa: PLC0415  - it is missing on Windows

        kind = getattr(resource, name)
        _, hard = resource.getrlimit(kind)
        resource.setrlimit(
            kind, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard)
        )


if __name__ == "__main__":
    main()
