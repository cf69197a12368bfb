"""Select the environment variables that a process of a plugin inherits.

It is an allow-list, because no list knows the names of all secrets.
"""

from __future__ import annotations

import os
import re
from typing import Final

_NAMES: Final = frozenset({
    *("HOME", "LOGNAME", "PATH", "PWD", "SHELL", "TERM", "USER", "VIRTUAL_ENV"),
    *("LANG", "LANGUAGE", "TZ", "TMPDIR", "TEMP", "TMP", "NO_COLOR", "FORCE_COLOR"),
    *("LD_LIBRARY_PATH", "LD_PRELOAD", "DYLD_LIBRARY_PATH", "DYLD_FALLBACK_LIBRARY_PATH"),
    *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"),
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"),
    *("APPDATA", "COMSPEC", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA", "NUMBER_OF_PROCESSORS"),
    *("PATHEXT", "PROCESSOR_ARCHITECTURE", "PROGRAMDATA", "PROGRAMFILES", "SYSTEMDRIVE"),
    *("SYSTEMROOT", "USERNAME", "USERPROFILE", "WINDIR"),
    # Pydantic's own switch, the control plane of the catalog, and the measuring of coverage.
    *("PYDANTIC_DISABLE_PLUGINS", "PINECONE_CONTROLLER_HOST"),
    *("COVERAGE_PROCESS_CONFIG", "COVERAGE_PROCESS_START"),
})  # fmt: skip
_PATTERN: Final = re.compile("LC_[A-Z]+|PYTHON[A-Z]+|XDG_[A-Z_]+")


def basic_environment() -> dict[str, str]:
    """Return the variables of this process that every program may need."""
    return {
        name: value
        for name, value in os.environ.items()
        if (upper := name.upper()) in _NAMES or _PATTERN.fullmatch(upper)
    }
