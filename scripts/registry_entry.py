"""Complete server.json for the MCP registry: add the bundle, with its address and its hash.

usage: python scripts/registry_entry.py DIST SERVER_JSON ADDRESS

The release job runs it; DIST has the bundle, and ADDRESS is where the release page serves it. It
needs Python alone, and can be run again.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from pathlib import Path


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("dist", type=Path)
    parser.add_argument("server_json", type=Path)
    parser.add_argument("address")
    options = parser.parse_args()
    bundles = list(options.dist.glob("*.mcpb"))
    if len(bundles) != 1:
        parser.error(f"{options.dist} has {len(bundles)} bundles; run scripts/build_mcpb.py")
    server = json.loads(options.server_json.read_text(encoding="utf-8"))
    others = [package for package in server["packages"] if package["registryType"] != "mcpb"]
    bundle = {
        "registryType": "mcpb",
        "identifier": f"{options.address.rstrip('/')}/{bundles[0].name}",
        "version": server["version"],
        "fileSha256": hashlib.sha256(bundles[0].read_bytes()).hexdigest(),
        "transport": {"type": "stdio"},
    }
    server["packages"] = [*others, bundle]
    text = json.dumps(server, indent=2, ensure_ascii=False) + "\n"
    options.server_json.write_text(text, encoding="utf-8", newline="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
