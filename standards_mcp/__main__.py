"""The program: ``standards-mcp`` and ``python -m standards_mcp``."""

import sys
from typing import NoReturn


def main() -> NoReturn:
    """Run the command line and end the process; Ctrl-C is quiet from the first import on."""
    try:
        from .cli import main as run  # noqa: PLC0415  - see above

        run()
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
