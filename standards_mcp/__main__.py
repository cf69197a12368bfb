"""The program: ``standards-mcp`` and ``python -m standards_mcp``."""

import gc
import sys
from typing import NoReturn

from ._utils.signals import ignore_hangup


def main() -> NoReturn:
    """Run the command line and end the process; Ctrl-C is quiet from the first import on."""
    ignore_hangup()
    # Nearly all that a start allocates stays; looking for garbage in it is a thirtieth of its time.
    gc.disable()
    try:
        from .cli import main as run  # noqa: PLC0415  - see above

        run()
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
