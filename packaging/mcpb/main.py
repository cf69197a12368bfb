"""Start the server of the bundle."""

from standards_mcp.cli import main

if __name__ == "__main__":
    main()
