"""``python -m standards_mcp``."""

from .cli import main

main()
