"""Build everything that is published into dist/, and use it as a stranger would.

usage: python scripts/check_package.py [PLUGIN]

With PLUGIN, a folder in plugins/, only that plugin is built, into dist/ beside what is there, and
used in an environment with the host; without it everything but heavy plugins, see check.py.
It runs in the development environment, with uv. The bundle's manifest and the Dockerfile are
checked where their tools are (Node.js; hadolint); where they are not, it says so and goes on.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
import urllib.request
import zipfile
from http import HTTPStatus
from pathlib import Path
from typing import Any

import anyio
import build_mcpb
from check import DISTRIBUTIONS, LIGHT
from mcp import Client, StdioServerParameters

ROOT = Path(__file__).resolve().parent.parent
DIST = ROOT / "dist"
OWN = {"catalog", "lookup", "search"}
"""The plugins in the wheel of the host."""
SERVICE = DISTRIBUTIONS["service"]
"""The service over HTTP, which has no plugins."""
SHIPPED = {
    "standards_mcp",
    "standards_mcp_backup",
    "standards_mcp_clients",
    "standards_mcp_documents",
    "standards_mcp_encoders",
    "standards_mcp_oauth",
    "standards_mcp_pinecone",
    "standards_mcp_ranking",
    "standards_mcp_scaffold",
    "standards_mcp_signin",
    *(f"standards_mcp_{name}" for name in OWN),
}
TOOLS = ["find_relevant_standards", "get_standard_details"]
PLUGINS = sorted(LIGHT.values())
PROGRAMS = "Scripts" if os.name == "nt" else "bin"
MCPB = "@anthropic-ai/mcpb@2.1.2"
"""What checks the manifest of a bundle, on npm."""
OURS = "AL.3.Z.1"
QUERY = "Students fold paper strips into equal parts and compare the fractions"


def main() -> int:
    # Like pip, trust whom the machine trusts: many networks have a certificate of their own.
    os.environ |= {"UV_NATIVE_TLS": "1", "UV_SYSTEM_CERTS": "1"}
    if sys.argv[1:]:
        return check_plugin(DISTRIBUTIONS[sys.argv[1]])
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        wheel = check_distributions(scratch)
        check_installed(wheel, scratch)
        check_plugins(scratch)
        check_address(scratch)
        check_upgrade(scratch)
        check_bundle(wheel, scratch)
        check_image(wheel, scratch)
    print("everything that is published works:", *sorted(path.name for path in DIST.iterdir()))
    return 0


def check_plugin(folder: Path) -> int:
    """Build one plugin, and use its wheel in an environment with the host alone."""
    with tempfile.TemporaryDirectory() as temporary:
        scratch = Path(temporary)
        uv("build", "--wheel", "--out-dir", scratch / "host", ROOT)
        install(scratch, *(scratch / "host").glob("*.whl"), build_plugin(folder, scratch))
        names = plugin_names(folder)
        plugins = plugins_of(scratch)
        expect(
            set(names) <= plugins, f"beside the host the installed plugins are {sorted(plugins)}"
        )
        for name in names:
            run(scratch, "plugins", "info", name)
        if folder == SERVICE:
            check_service(scratch)
    return 0


def check_distributions(scratch: Path) -> Path:
    """Build wheel and source distribution; the wheel holds the packages alone."""
    wheel, sdist = build(ROOT)
    with zipfile.ZipFile(wheel) as archive:
        found = {name.split("/")[0] for name in archive.namelist()}
    others = {name for name in found - SHIPPED if not name.endswith(".dist-info")}
    expect(not others, f"the wheel holds {sorted(others)}, which is not part of the program")
    expect(builds(wheel, sdist, scratch), "the source distribution builds another wheel")
    return wheel


def build(folder: Path) -> tuple[Path, Path]:
    """Build a distribution's wheel and source distribution into dist/, in place of older ones.

    Checks of heavy plugins fill dist/ at the same time: only files of this distribution count.
    """
    name = file_name(folder)
    for path in DIST.glob(f"{name}-*"):
        path.unlink()
    uv("build", "--wheel", "--sdist", "--no-create-gitignore", "--out-dir", DIST, folder)
    (wheel,) = DIST.glob(f"{name}-*.whl")
    (sdist,) = DIST.glob(f"{name}-*.tar.gz")
    return wheel, sdist


def builds(wheel: Path, source: Path, scratch: Path) -> bool:
    """Tell whether *source* builds the very same wheel."""
    uv("build", "--wheel", "--out-dir", scratch / "again", source)
    return wheel.read_bytes() == (scratch / "again" / wheel.name).read_bytes()


def check_installed(wheel: Path, scratch: Path) -> None:
    """Install the wheel into an empty environment and use it there."""
    environment = environment_of(scratch)
    install(scratch, wheel)
    version = wheel.name.split("-")[1]
    shown = run(scratch, "--version")
    expect(version in shown, "--version does not give the version of the wheel")
    plugins = plugins_of(scratch)
    expect(plugins == OWN, f"the installed plugins are {sorted(plugins)}")
    found = json.loads(run(scratch, "search", QUERY, "--grade", "3", "--json"))["results"]
    expect("3.NF" in found[0]["statement_notation"], "search does not find fractions in grade 3")
    check_without_service(scratch)
    program = str(environment / PROGRAMS / "standards-mcp")
    check_server(StdioServerParameters(command=program, env=clean_variables(scratch), cwd=scratch))


def check_plugins(scratch: Path) -> None:
    """Build the plugins that are distributions of their own, and use them beside the host."""
    wheels = [build_plugin(folder, scratch) for folder in PLUGINS]
    install(scratch, *wheels)
    known = {*OWN, *(name for folder in PLUGINS for name in plugin_names(folder))}
    plugins = plugins_of(scratch)
    expect(plugins == known, f"beside the host the installed plugins are {sorted(plugins)}")
    run(scratch, "--set", "strict=true", "plugins", "check")
    arguments = {"activity": QUERY, "notation_prefix": "4.nf", "is_leaf": True}
    answer = run(scratch, "call", "find_relevant_standards", "--args", json.dumps(arguments))
    codes = [found["statement_notation"] for found in json.loads(answer)["results"]]
    expect(bool(codes) and all("4.NF" in code for code in codes), f"filters let through {codes}")
    check_service(scratch)


def check_without_service(scratch: Path) -> None:
    """Without the service, what needs it names the package that is missing."""
    audit = ("--set", f"server.audit.path={scratch / 'audit.jsonl'}", "serve")
    for arguments in (("serve", "--transport", "http"), audit, ("auth", "token", "list")):
        refused = subprocess.run(
            [environment_of(scratch) / PROGRAMS / "standards-mcp", *arguments],
            env=clean_variables(scratch),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        is_named = file_name(SERVICE).replace("_", "-") in refused.stderr
        expect(refused.returncode == 1 and is_named, f"{arguments} gives {refused.stderr!r}")


def check_service(scratch: Path) -> None:
    """Make a token, serve over HTTP at a free port, and ask whether the service is ready."""
    config = ("--config", "service.toml")
    (scratch / "service.toml").touch()
    token = run(scratch, *config, "auth", "token", "new", "ann").strip()
    program = str(environment_of(scratch) / PROGRAMS / "standards-mcp")
    command = [program, *config, "serve", "--transport", "http", "--port", "0"]
    print("+", *command, flush=True)
    variables = clean_variables(scratch)
    with subprocess.Popen(
        command, cwd=scratch, env=variables, stderr=subprocess.PIPE, text=True
    ) as serving:
        try:
            events = (json.loads(line) for line in serving.stderr or () if line.startswith("{"))
            listening = next(event for event in events if event.get("event") == "listening")
            address = str(listening["url"]).removesuffix("/mcp")
            request = urllib.request.Request(  # noqa: S310  - the address is of this machine
                f"{address}/health/ready", headers={"Authorization": f"Bearer {token}"}
            )
            with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310  - as above
                expect(answer.status == HTTPStatus.OK, f"the service answers {answer.status}")
        finally:
            serving.terminate()


def build_plugin(folder: Path, scratch: Path) -> Path:
    """Build a plugin's wheel and source distribution; each holds what the other does."""
    name = file_name(folder)
    wheel, sdist = build(folder)
    with zipfile.ZipFile(wheel) as archive:
        found = {entry.split("/")[0] for entry in archive.namelist()}
        typed = f"{name}/py.typed" in archive.namelist()
    expect(typed and len(found) == len((name, "dist-info")), f"{wheel.name} holds {sorted(found)}")
    expect(builds(wheel, sdist, scratch), f"{sdist.name} builds another wheel")
    return wheel


def plugin_names(folder: Path) -> list[str]:
    return list(project_of(folder)["entry-points"].get("standards_mcp.plugins", ()))


def file_name(folder: Path) -> str:
    """Return the name of a distribution as its files have it."""
    return str(project_of(folder)["name"]).replace("-", "_")


def project_of(folder: Path) -> dict[str, Any]:
    return tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def plugins_of(scratch: Path) -> set[str]:
    """Return the names of the plugins in the environment."""
    return {plugin["name"] for plugin in json.loads(run(scratch, "plugins", "list", "--json"))}


def install(scratch: Path, *wheels: str | Path) -> None:
    """Install wheels or folders into the environment, which is made at first."""
    environment = environment_of(scratch)
    if not environment.exists():
        uv("venv", "--python", sys.executable, environment)
    uv("pip", "install", "--python", environment / PROGRAMS / "python", *wheels)


def environment_of(scratch: Path) -> Path:
    return scratch / "environment"


def run(scratch: Path, *arguments: str) -> str:
    """Run the installed program and return what it prints."""
    command = [str(environment_of(scratch) / PROGRAMS / "standards-mcp"), *arguments]
    print("+", *command, flush=True)
    return subprocess.run(
        command,
        cwd=scratch,
        env=clean_variables(scratch),
        check=True,
        capture_output=True,
        text=True,
    ).stdout


def check_address(scratch: Path) -> None:
    """Install what is committed, and a plugin, from the address of a clone, as the README says."""
    clone = scratch / "clone"
    command = ["git", "clone", "--quiet", str(ROOT), str(clone)]
    if not shutil.which("git") or subprocess.run(command, check=False).returncode:
        print("installing from an address is not checked: this is no clone")
        return
    address = f"git+{clone.as_uri()}"
    plugin = f"standards-mcp-filters @ {address}#subdirectory=plugins/filters"
    command = [uv_path(), "tool", "run", "--from", address, "--with", plugin]
    command += ["standards-mcp", "plugins", "list", "--json"]
    print("+", *command, flush=True)
    variables = clean_variables(scratch)
    listed = subprocess.run(command, cwd=scratch, env=variables, check=True, stdout=subprocess.PIPE)
    plugins = {plugin["name"] for plugin in json.loads(listed.stdout)}
    expect(plugins == {*OWN, "filters"}, f"{address} installs {sorted(plugins)}")


def check_upgrade(scratch: Path) -> None:
    """Upgrade and uninstall as docs/serving.md and docs/using.md say.

    The clone of `check_address` becomes a later version. An upgrade keeps the data, and the folders
    that are deleted to uninstall are all that the program wrote.
    """
    if not (clone := scratch / "clone").exists():
        return
    scratch = scratch / "upgraded"
    scratch.mkdir()
    install(scratch, clone)
    table = scratch / "ours.csv"
    table.write_text(f"code,text,grade,subject,jurisdiction\n{OURS},Fold a boat,3,Math,Aland\n")
    run(scratch, "data", "import", str(table))
    project = clone / "pyproject.toml"
    text = project.read_text(encoding="utf-8")
    project.write_text(text.replace('\nversion = "0.', '\nversion = "99.', 1), encoding="utf-8")
    install(scratch, "--upgrade", clone)
    expect("99." in run(scratch, "--version"), "the upgrade leaves the earlier version")
    expect(OURS in run(scratch, "lookup", OURS), "the upgrade loses data")
    if os.name == "nt":
        return  # the folders are not below HOME
    home = scratch / "home"
    is_mac = sys.platform == "darwin"
    state = home / ("Library/Application Support" if is_mac else ".local/state") / "standards-mcp"
    location = json.loads(run(scratch, "data", "status", "--json"))["location"]
    for folder in (location, state):
        shutil.rmtree(folder)
    left = [str(path) for path in home.rglob("*") if path.is_file()]
    expect(not left, f"after deleting the two folders that uninstall names there are {left}")


def check_bundle(wheel: Path, scratch: Path) -> None:
    """Pack the bundle, unpack it, and start its server as an app would, with nothing filled in."""
    folder = scratch / "bundle"
    with zipfile.ZipFile(build_mcpb.pack(wheel, DIST)) as archive:
        archive.extractall(folder)
    if npx := shutil.which("npx"):
        command = [npx, "--yes", MCPB, "validate", str(folder / "manifest.json")]
        expect(not subprocess.run(command, check=False).returncode, "see the manifest above")
    else:
        print("the manifest of the bundle is not validated: there is no npx; install Node.js")
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    expect([tool["name"] for tool in manifest["tools"]] == TOOLS, "the manifest lists other tools")
    launch = filled_in(manifest["server"]["mcp_config"], folder)
    variables = clean_variables(scratch) | launch["env"]
    check_server(StdioServerParameters(command=uv_path(), args=launch["args"], env=variables))


def filled_in(launch: Any, folder: Path) -> Any:
    """Fill in the folder alone: apps leave the placeholders of empty optional fields standing."""
    text = json.dumps(launch).replace("${__dirname}", json.dumps(str(folder))[1:-1])
    return json.loads(text)


def check_image(wheel: Path, scratch: Path) -> None:
    """Install what the image installs from what it copies, and lint its file.

    There may be no engine to build it.
    """
    dockerfile = ROOT / "Dockerfile"
    context = scratch / "context"
    context.mkdir()
    for line in dockerfile.read_text(encoding="utf-8").splitlines():
        if line.startswith("COPY ") and "--from" not in line:
            for name in line.split()[1:-1]:
                copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
                copy(ROOT / name, context / name)
    expect(builds(wheel, context, scratch), "the image builds another wheel")
    uv("lock", "--check", "--project", ROOT)  # after a change of dependencies: uv lock
    environment = scratch / "image"
    names = re.findall(r'PLUGINS="(.*)"', dockerfile.read_text(encoding="utf-8"))[0].split()
    extras = [word for name in names for word in ("--extra", name)]
    os.environ["UV_PROJECT_ENVIRONMENT"] = str(environment)
    try:
        uv("sync", "--frozen", "--no-dev", "--no-editable", "--project", context, *extras)
    finally:
        del os.environ["UV_PROJECT_ENVIRONMENT"]
    command = [environment / PROGRAMS / "standards-mcp", "plugins", "list", "--json"]
    variables = clean_variables(scratch)
    answer = subprocess.run(command, check=True, capture_output=True, env=variables)
    plugins = {plugin["name"] for plugin in json.loads(answer.stdout)}
    known = {*OWN, *(plugin for name in names for plugin in plugin_names(DISTRIBUTIONS[name]))}
    expect(plugins == known, f"the image has the plugins {sorted(plugins)}")
    hadolint = Path(sys.executable).with_name("hadolint")
    if not hadolint.exists():
        print("the Dockerfile is not linted: there is no hadolint")
        return
    expect(not subprocess.run([hadolint, dockerfile], check=False).returncode, "see hadolint above")


def check_server(server: StdioServerParameters) -> None:
    """Start *server*, list its tools over stdio, and get an answer."""

    async def asked() -> tuple[list[str], str]:
        async with Client(server) as client:
            names = sorted(tool.name for tool in (await client.list_tools()).tools)
            answer = await client.call_tool(TOOLS[0], {"activity": QUERY, "grade": "3"})
            return names, json.dumps(answer.structured_content)

    print("+", server.command, *server.args, flush=True)
    names, answer = anyio.run(asked)
    expect(names == TOOLS, f"{server.command} serves {names} instead of {TOOLS}")
    expect("3.NF" in answer, f"{server.command} does not find fractions in grade 3: {answer}")


def clean_variables(scratch: Path) -> dict[str, str]:
    """Return this environment with an empty home, and nothing that leads to the source tree."""
    ours = ("STANDARDS_MCP_", "PINECONE_", "PYTHON", "VIRTUAL_ENV", "XDG_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    cache = subprocess.run([uv_path(), "cache", "dir"], check=True, capture_output=True, text=True)
    home = scratch / "home"
    home.mkdir(exist_ok=True)
    return {
        **kept,
        "HOME": str(home),
        "UV_CACHE_DIR": cache.stdout.strip(),
        "UV_PYTHON": sys.executable,
    }


def uv(*arguments: str | Path) -> None:
    command = [uv_path(), *map(str, arguments)]
    print("+", *command, flush=True)
    subprocess.run([*command, "--quiet"], check=True, cwd=ROOT)


def uv_path() -> str:
    found = shutil.which("uv", path=str(Path(sys.executable).parent)) or shutil.which("uv")
    if not found:
        raise SystemExit("uv is missing; python3 scripts/check.py installs it")
    return found


def expect(condition: bool, complaint: str) -> None:  # noqa: FBT001
    if not condition:
        raise SystemExit(complaint)


if __name__ == "__main__":
    sys.exit(main())
