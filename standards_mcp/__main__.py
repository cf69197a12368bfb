"""The program: ``standards-mcp`` and ``python -m standards_mcp``."""

import gc
import os
import sys
from contextlib import suppress

from .start.launch import Launch


def main() -> None:
    """Run the command line and end the process; Ctrl-C is quiet from the first import on."""
    # Nearly all that a start allocates stays; looking for garbage in it is a thirtieth of its time.
    gc.disable()
    # To look for its plugins, pydantic reads the metadata of all distributions, and one of them
    # that is broken would end the start. Users who want them set the variable to an empty text.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    try:
        launch = Launch(sys.argv[1:])
        if sys.argv[1:] == ["--version"] and launch.version and sys.stdout:
            with suppress(OSError):  # click reports it
                sys.stdout.write(f"standards-mcp, version {launch.version}\n")
                sys.stdout.flush()
                return
        launch.answer_client()
        from .cli import main as run  # noqa: PLC0415  - the client is answered first

        run(launch=launch)
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
