"""Write the address of the project into everything that is published.

usage: python scripts/set_home.py https://github.com/OWNER/REPOSITORY [--name NAME]

NAME is the server's name in the MCP registry, by default io.github.OWNER/standards-mcp. For an
address elsewhere it is needed: a domain of yours in reverse order, org.example/standards-mcp. It
runs in the development environment, and can be run again with another address.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from pathlib import Path
from typing import Any

import tomlkit

ROOT = Path(__file__).resolve().parent.parent
ADDRESS = re.compile(r"https://(?P<site>[\w-]+(?:\.[\w-]+)+)/(?P<owner>[\w.-]+)/[\w./-]*[\w-]")
NAME = re.compile(r"[a-zA-Z0-9-]+(\.[a-zA-Z0-9-]+)+/[a-zA-Z0-9._-]+")
IN_IMAGE = re.compile(r'(?<=io\.modelcontextprotocol\.server\.name=")[^"]+')
IN_README = re.compile(r"(?<=<!-- mcp-name: )\S+")
PRIVACY = "#privacy-policy"
"""The section of the README."""
GITHUB = "github.com"
FORGES = {GITHUB: "github", "gitlab.com": "gitlab"}
"""The sources of repositories that the registry knows."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("address")
    parser.add_argument("--name")
    given = parser.parse_args()
    home = given.address.removesuffix("/").removesuffix(".git")
    found = ADDRESS.fullmatch(home)
    if not found:
        parser.error(f"{given.address} is not like https://github.com/OWNER/REPOSITORY")
    site, owner = found["site"], found["owner"]
    name = given.name or (f"io.github.{owner}/standards-mcp" if site == GITHUB else "")
    if not NAME.fullmatch(name):
        parser.error("give the name in the MCP registry, such as --name org.example/standards-mcp")
    for file in (ROOT / "pyproject.toml", *sorted(ROOT.glob("plugins/*/pyproject.toml"))):
        project = tomlkit.parse(file.read_text(encoding="utf-8"))
        table = tomlkit.table()
        table.update(urls(home, site))
        table.add(tomlkit.nl())
        project["project"]["urls"] = table  # type: ignore[index]
        write(file, tomlkit.dumps(project))
    known = {"repository": {"url": home, "source": FORGES[site]}} if site in FORGES else {}
    edit_json(ROOT / "server.json", {"name": name, **known})
    manifest = ROOT / "packaging" / "mcpb" / "manifest.json"
    policies = json.loads(manifest.read_text(encoding="utf-8"))["privacy_policies"]
    others = [policy for policy in policies if not policy.endswith(PRIVACY)]
    links = {
        "repository": {"type": "git", "url": home},
        "homepage": home,
        "support": f"{home}/issues",
        "privacy_policies": [home + PRIVACY, *others],
    }
    edit_json(manifest, links)
    for place, pattern in ((ROOT / "README.md", IN_README), (ROOT / "Dockerfile", IN_IMAGE)):
        write(place, pattern.sub(name, place.read_text(encoding="utf-8")))
    print(f"{home} is the home of {name}; look at the changes with `git diff`")
    return 0


def urls(home: str, site: str) -> dict[str, str]:
    """Return the links on the page of a package index; only of GitHub are the paths known."""
    if site != GITHUB:
        return {"Source": home}
    return {
        "Source": home,
        "Documentation": f"{home}/tree/HEAD/docs",
        "Changelog": f"{home}/blob/HEAD/CHANGELOG.md",
        "Issues": f"{home}/issues",
    }


def edit_json(file: Path, values: dict[str, Any]) -> None:
    data = json.loads(file.read_text(encoding="utf-8")) | values
    write(file, json.dumps(data, indent=2, ensure_ascii=False) + "\n")


def write(file: Path, text: str) -> None:
    file.write_text(text, encoding="utf-8", newline="\n")


if __name__ == "__main__":
    sys.exit(main())
