"""The program: ``standards-mcp`` and ``python -m standards_mcp``."""

import gc
import os
import sys
from typing import NoReturn


def main() -> NoReturn:
    """Run the command line and end the process; Ctrl-C is quiet from the first import on."""
    # Nearly all that a start allocates stays; looking for garbage in it is a thirtieth of its time.
    gc.disable()
    # To look for its plugins, pydantic reads the metadata of all distributions, and one of them
    # that is broken would end the start. Who wants them sets the variable to an empty text.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    try:
        from .cli import main as run  # noqa: PLC0415  - see above

        run()
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
