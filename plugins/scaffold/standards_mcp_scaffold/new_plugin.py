"""``standards-mcp plugins new``: render a plugin's project from templates."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Mapping
from importlib import metadata
from importlib.resources import files
from pathlib import Path, PurePosixPath
from string import Template
from typing import Any, Final, Literal, TypeAlias, cast, get_args

import click
from packaging.requirements import Requirement
from packaging.version import Version

from standards_mcp.commands import ServerCommands, examples, host_source, print_text
from standards_mcp.errors import StandardsMcpError
from standards_mcp.files import full_disk

Kind: TypeAlias = Literal["tools", "filters", "prompts", "resources", "routes", "skills", "views"]

HOST: Final = "standards-mcp"
PLUGIN_NAME: Final = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
MAX_NAME: Final = 30
"""With longer names, the names of tools would be too long for some clients."""
_FILES: Final = {
    ".github/workflows/test.yml": "workflow.yml",
    ".gitignore": "gitignore",
    "README.md": "README.md",
    "pyproject.toml": "pyproject.toml",
    "$package/__init__.py": "package.py",
    "$package/plugin.py": "$kind/plugin.py",
    "tests/test_$name.py": "$kind/tests.py",
}
_MORE_FILES: Final[Mapping[Kind, dict[str, str]]] = {
    "skills": {"$package/skills/$scheme-plan-lesson/SKILL.md": "skills/SKILL.md"},
    "views": {"$package/outline.html": "views/outline.html"},
}
_FILTER_EXAMPLE: Final = '{"activity": "halves", "${name}_kind": "cluster"}'

# The contribution, the command that lists it, and a command that uses it.
_KIND_TEXTS: Final[Mapping[Kind, tuple[str, str, str]]] = {
    "tools": (
        "the tool `$name.outline`",
        "tools",
        """call $name.outline --args '{"code": "3.NF.A.1"}'""",
    ),
    "filters": (
        "the argument `${name}_kind` to every tool that accepts filters",
        "plugins info $name",
        f"call find_relevant_standards --args '{_FILTER_EXAMPLE}'",
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
    "skills": (
        "the skill `$scheme-plan-lesson`",
        "skills",
        "plugins info $name",
    ),
    "views": (
        "the tool `$name.outline`, and a page that clients show for its answers",
        "resources",
        """call $name.outline --args '{"code": "3.NF.A.1"}'""",
    ),
}
_KINDS: Final = get_args(Kind)
_PACKAGE_PREFIX: Final = "standards_mcp"


@click.command(epilog=examples("plugins new acme", "plugins new acme --kind prompts --into .."))
@click.argument("name")
@click.option(
    "--kind",
    type=click.Choice(_KINDS),
    default=_KINDS[0],
    help="Its first contribution: tools, filters, prompts, resources, routes, skills or views.",
)
@click.option(
    "--into",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    default=Path(),
    metavar="DIR",
    help="Make its folder in DIR, not in the working directory.",
)
@click.pass_obj
def new(commands: ServerCommands, name: str, *, kind: Kind, into: Path) -> None:
    """Create the plugin NAME: a project that installs, with tests that pass.

    NAME is lower_snake_case, such as acme. The folder is standards-mcp-NAME.
    """
    if reason := _refusal(name, commands.own_names):
        raise click.BadParameter(f"{reason}; choose another name", param_hint="NAME")
    folder = into / distribution_of(name)
    version = metadata.version(HOST)
    try:
        folder.mkdir()
        for path, text in render_plugin(name, kind, version, host_source()).items():
            file = folder / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8", newline="\n")
    except FileExistsError:
        advice = "choose another name, or another folder with --into"
        raise StandardsMcpError(f"{folder} already exists; {advice}") from None
    except OSError as exc:
        raise StandardsMcpError(f"{folder} cannot be written: {full_disk.reason_of(exc)}") from exc
    print_text(f"Wrote {folder}. Its README.md explains how to install, test and use it.")


def _refusal(name: str, commands: Collection[str]) -> str:
    """Return the reason why a name cannot be used, or an empty string."""
    points: Any = cast("Any", metadata).entry_points(group="standards_mcp.plugins")
    plugins = {point.name: point.dist.name for point in points}
    if not PLUGIN_NAME.fullmatch(name) or len(name) > MAX_NAME:
        return f"{name!r} is not lower_snake_case with at most {MAX_NAME} characters"
    if name == "plugin" or name.startswith(_PACKAGE_PREFIX):
        return f"{name!r} would give names like the ones of the host"
    if name in plugins:
        return f"{name!r} is a plugin of {plugins[name]}, which is installed"
    if name in commands:
        return f"`standards-mcp {name}` is a command"
    if distribution_of(name) in _extras_of_the_host():
        return f"{distribution_of(name)} is a plugin of standards-mcp itself"
    return ""


def _extras_of_the_host() -> set[str]:
    return {Requirement(line).name for line in metadata.requires(HOST) or ()}


def distribution_of(name: str) -> str:
    """Return the name of the distribution, and of the folder, of a new plugin."""
    return f"standards-mcp-{name.replace('_', '-')}"


def render_plugin(
    name: str, kind: Kind, host_version: str, host_source: str
) -> dict[PurePosixPath, str]:
    """Return the files of a plugin's project by their paths in it.

    Args:
        name: lower_snake_case, at most `MAX_NAME` characters.
        host_version: The version of the host that the plugin is written for.
        host_source: The argument for pip to install the host: a path, an address or a name.
    """
    package = f"{_PACKAGE_PREFIX}_{name}"
    stem = "".join(word.capitalize() for word in name.split("_"))
    words = {
        "name": name,
        "kind": kind,
        "scheme": name.replace("_", "-"),
        "distribution": distribution_of(name),
        "package": package,
        "plugin_class": f"{stem}Plugin",
        "settings_class": f"{stem}Settings",
        "versions": compatible_versions(host_version),
        **_host_texts(host_source),
        "imports": '\n  "starlette>=0.48,<2",' if kind == "routes" else "",
    }
    for key, text in zip(("adds", "shown_by", "try_it"), _KIND_TEXTS[kind], strict=True):
        words[key] = Template(text).substitute(words)
    templates = files("standards_mcp_scaffold").joinpath("template")
    rendered = {PurePosixPath(package, "py.typed"): ""}
    for path, source in (_FILES | _MORE_FILES.get(kind, {})).items():
        template = templates.joinpath(*f"{source.replace('$kind', kind)}.tmpl".split("/"))
        text = Template(template.read_text(encoding="utf-8")).substitute(words)
        rendered[PurePosixPath(Template(path).substitute(words))] = text
    return rendered


def _host_texts(source: str) -> dict[str, str]:
    """Return the parts of the files that depend on the origin of the host."""
    host = shlex.quote(source)
    if source == HOST or source.startswith(("http", "git+http", "git+ssh")):
        line = f"      - run: python -m pip install {host}"
        return {"host": host, "elsewhere": "", "in_workflow": "", "install_host": line}
    return {
        "host": host,
        "elsewhere": (
            "\nOn other machines, replace the path by a clone of the host's repository, or by its "
            "`git+https://` address."
        ),
        "in_workflow": " Complete the\nprepared line in it with the address of the host.",
        "install_host": (
            "      # The host was installed from this machine; give its repository's address:\n"
            "      # - run: python -m pip install git+https://ADDRESS_OF_ITS_REPOSITORY"
        ),
    }


def compatible_versions(version: str) -> str:
    """Return the requirement for hosts with the same plugin API as this version.

    Before 1.0 a minor version may change the API.
    """
    parsed = Version(version)
    least = parsed.public if parsed.is_prerelease else f"{parsed.major}.{parsed.minor}"
    bound = f"{parsed.major + 1}" if parsed.major else f"0.{parsed.minor + 1}"
    return f">={least},<{bound}"
