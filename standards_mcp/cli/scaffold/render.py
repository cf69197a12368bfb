"""Renders a new plugin's project from the templates that ship with the host."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path, PurePosixPath
from string import Template
from typing import Final, Literal, TypeAlias

from packaging.version import Version

from standards_mcp._utils.full_disk import reason_of
from standards_mcp._utils.installation import HOST
from standards_mcp.errors import StandardsMcpError

Kind: TypeAlias = Literal["tools", "filters", "prompts", "resources", "routes"]


MAX_NAME: Final = 30
"""So that names built from it stay within what every client takes."""
_FILES: Final = {
    ".github/workflows/test.yml": "workflow.yml",
    ".gitignore": "gitignore",
    "README.md": "README.md",
    "pyproject.toml": "pyproject.toml",
    "$package/__init__.py": "package.py",
    "$package/plugin.py": "$kind/plugin.py",
    "tests/test_$name.py": "$kind/tests.py",
}
_EXAMPLE: Final = '{"activity": "halves", "${name}_kind": "cluster"}'

# What it adds, the command that lists it, and one that uses it.
_ABOUT: Final[Mapping[Kind, tuple[str, str, str]]] = {
    "tools": (
        "the tool `$name.outline`",
        "tools",
        """call $name.outline --args '{"code": "3.NF.A.1"}'""",
    ),
    "filters": (
        "the argument `${name}_kind` to every tool that accepts filters",
        "plugins info $name",
        f"call find_relevant_standards --args '{_EXAMPLE}'",
    ),
    "prompts": ("the prompt `$name.plan_lesson`", "prompts", "plugins info $name"),
    "resources": (
        "the resource `$scheme://standards/{code}`",
        "resources",
        "plugins info $name",
    ),
    "routes": (
        "the route `/plugins/$name/standards/{code}` of the service over HTTP",
        "plugins info $name",
        "serve --transport http",
    ),
}


def distribution_of(name: str) -> str:
    """Return the name of the distribution, and of the folder, of a new plugin."""
    return f"standards-mcp-{name.replace('_', '-')}"


def package_of(name: str) -> str:
    """Return the name of the package of a new plugin."""
    return f"standards_mcp_{name}"


def render_plugin(
    name: str, kind: Kind, host_version: str, host_source: str
) -> dict[PurePosixPath, str]:
    """Return the files of a plugin's project by their paths in it.

    Args:
        name: lower_snake_case, at most `MAX_NAME` characters.
        host_version: The version of the host that it is written for.
        host_source: What an installer takes to install the host: a path, an address or its name.
    """
    stem = "".join(word.capitalize() for word in name.split("_"))
    words = {
        "name": name,
        "kind": kind,
        "scheme": name.replace("_", "-"),
        "distribution": distribution_of(name),
        "package": package_of(name),
        "plugin_class": f"{stem}Plugin",
        "settings_class": f"{stem}Settings",
        "versions": compatible_versions(host_version),
        **_host_words(host_source),
        "imports": '\n  "starlette>=0.48,<2",' if kind == "routes" else "",
    }
    about = [_fill(text, words) for text in _ABOUT[kind]]
    words |= dict(zip(("adds", "shown_by", "try_it"), about, strict=True))
    rendered = {
        PurePosixPath(_fill(path, words)): _fill(_template(_fill(source, words)), words)
        for path, source in _FILES.items()
    }
    return rendered | {PurePosixPath(package_of(name), "py.typed"): ""}


def _host_words(source: str) -> dict[str, str]:
    """Return the parts of the texts that depend on where the host comes from."""
    host = shlex.quote(source)
    if source == HOST or source.startswith(("http", "git+http", "git+ssh")):
        line = f"      - run: python -m pip install {host}"
        return {"host": host, "elsewhere": "", "in_workflow": "", "install_host": line}
    return {
        "host": host,
        "elsewhere": (
            "\nOn other machines, that is a clone of its repository, or the repository's "
            "`git+https://` address."
        ),
        "in_workflow": " Say there where\nthe host comes from: one line is prepared.",
        "install_host": (
            "      # The host was installed from this machine; give its repository's address:\n"
            "      # - run: python -m pip install git+https://ADDRESS_OF_ITS_REPOSITORY"
        ),
    }


def compatible_versions(version: str) -> str:
    """Return the versions of the host with the plugin API of this one, as a requirement says it.

    Before 1.0 a minor version may change the API.
    """
    parsed = Version(version)
    least = parsed.public if parsed.is_prerelease else f"{parsed.major}.{parsed.minor}"
    bound = f"{parsed.major + 1}" if parsed.major else f"0.{parsed.minor + 1}"
    return f">={least},<{bound}"


def write_project(folder: Path, rendered: Mapping[PurePosixPath, str]) -> None:
    """Write a project into a folder that is made for it.

    Raises:
        StandardsMcpError: The folder is there already, or cannot be written.
    """
    try:
        folder.mkdir()
        for path, text in rendered.items():
            file = folder / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8", newline="\n")
    except FileExistsError:
        advice = "choose another name, or another folder with --into"
        raise StandardsMcpError(f"{folder} is there already; {advice}") from None
    except OSError as exc:
        raise StandardsMcpError(f"{folder} cannot be written: {reason_of(exc)}") from exc


def _fill(text: str, words: Mapping[str, str]) -> str:
    return Template(text).substitute(words)


def _template(path: str) -> str:
    source = files("standards_mcp.cli.scaffold").joinpath("template", *f"{path}.tmpl".split("/"))
    return source.read_text(encoding="utf-8")
