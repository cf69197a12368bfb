"""The files in packaging/ for operators: their own tools and schemas accept them."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from ruamel.yaml import YAML
from support.hosts import MakeHost
from support.http import auth_of, bearer, requests_to

from standards_mcp import Plugin, tool
from standards_mcp.cli import cli
from standards_mcp.config.models.http import HttpSettings

ROOT = Path(__file__).parent.parent
PACKAGING = ROOT / "packaging"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
IMAGE = f"standards-mcp:{PROJECT['version']}"
UNIT = (PACKAGING / "systemd/standards-mcp.service").read_text(encoding="utf-8")
SYSTEM = f"{os.environ.get('PATH', '')}:/usr/sbin"
HASH = "0" * 64
STOPPING = 12
"""The seconds that a service needs to end beside `drain`, see docs/serving.md."""


def program(name: str) -> str:
    """Return the path of a program of the system, or skip the test."""
    path = shutil.which(name, path=SYSTEM)
    return path or pytest.skip(f"{name} is not installed")


def run(*command: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*map(str, command)], check=False, capture_output=True, text=True)


def kubernetes_objects() -> dict[str, dict[str, Any]]:
    text = (PACKAGING / "kubernetes/standards-mcp.yaml").read_text(encoding="utf-8")
    return {item["kind"]: item for item in YAML(typ="safe").load_all(text)}


def compose() -> dict[str, Any]:
    text = (PACKAGING / "compose/compose.yaml").read_text(encoding="utf-8")
    data: dict[str, Any] = YAML(typ="safe").load(text)
    return data


def check_config(text: str, path: Path) -> None:
    path.write_text(text, encoding="utf-8")
    result = CliRunner().invoke(cli, ["--config", str(path), "config", "check"])
    assert result.exit_code == 0, result.output


def test_systemd_accepts_the_unit(tmp_path: Path):
    unit = tmp_path / "standards-mcp.service"
    text = UNIT.replace("/opt/standards-mcp/bin/standards-mcp", sys.executable)
    unit.write_text(text.replace("User=standards", "User=root"), encoding="utf-8")
    result = run(program("systemd-analyze"), "verify", unit)
    assert (result.returncode, result.stdout + result.stderr) == (0, "")


def test_the_unit_gives_the_service_time_to_end():
    (seconds,) = re.findall(r"^TimeoutStopSec=(\d+)$", UNIT, re.MULTILINE)
    assert int(seconds) > HttpSettings().drain + STOPPING
    seconds_in_cluster = kubernetes_objects()["Deployment"]["spec"]["template"]["spec"]
    assert seconds_in_cluster["terminationGracePeriodSeconds"] == int(seconds)
    assert compose()["services"]["standards"]["stop_grace_period"] == f"{seconds}s"


def test_the_configurations_are_valid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    of_unit = (PACKAGING / "systemd/standards-mcp.toml").read_text(encoding="utf-8")
    check_config(of_unit.replace("/var/log/standards-mcp", str(tmp_path)), tmp_path / "a.toml")
    monkeypatch.setenv("STANDARDS_MCP_SERVER__STATE_KEY", HASH)
    monkeypatch.setenv("STANDARDS_MCP_SERVER__AUTH__TOKENS__ANN__SHA256", HASH)
    in_compose = PACKAGING / "compose/config/standards-mcp.toml"
    check_config(in_compose.read_text("utf-8"), tmp_path / "b.toml")
    in_cluster = kubernetes_objects()["ConfigMap"]["data"]["standards-mcp.toml"]
    check_config(in_cluster, tmp_path / "c.toml")


def test_the_compose_file_fits_its_schema_and_the_image():
    checker = Path(sys.executable).with_name("check-jsonschema")
    file = PACKAGING / "compose/compose.yaml"
    result = run(checker, "--builtin-schema", "vendor.compose-spec", file)
    assert result.returncode == 0, result.stdout
    service = compose()["services"]["standards"]
    assert service["image"] == IMAGE
    assert {*service["build"]["args"]["PLUGINS"].split()} <= {*PROJECT["optional-dependencies"]}
    assert (file.parent / service["build"]["context"] / "Dockerfile").is_file()


def test_the_manifests_fit_the_schemas_of_kubernetes():
    checker = Path(sys.executable).with_name("kubernetes-validate")
    result = run(checker, PACKAGING / "kubernetes/standards-mcp.yaml")
    assert result.returncode == 0, result.stdout + result.stderr
    objects = kubernetes_objects()
    (container,) = objects["Deployment"]["spec"]["template"]["spec"]["containers"]
    assert container["image"] == IMAGE
    labels = objects["Deployment"]["spec"]["template"]["metadata"]["labels"]
    assert objects["Service"]["spec"]["selector"] == labels


@pytest.mark.parametrize(
    "file", sorted((ROOT / ".github/workflows").iterdir()), ids=lambda f: f.stem
)
def test_a_workflow_fits_its_schema(file: Path):
    checker = Path(sys.executable).with_name("check-jsonschema")
    result = run(checker, "--builtin-schema", "vendor.github-workflows", file)
    assert result.returncode == 0, result.stdout
    # A token in the folder of a checkout could be read by every program that a job starts.
    text = file.read_text(encoding="utf-8")
    assert text.count("actions/checkout@") == text.count("persist-credentials: false")


def test_the_entry_of_the_registry_gets_the_bundle_with_its_hash(tmp_path: Path):
    entry, bundle = tmp_path / "server.json", tmp_path / "dist/standards-mcp-0.1.0.mcpb"
    shutil.copy(ROOT / "server.json", entry)
    bundle.parent.mkdir()
    bundle.write_bytes(b"a bundle")
    command = (sys.executable, ROOT / "scripts/registry_entry.py", bundle.parent, entry)
    for _ in range(2):
        made = run(*command, "https://example.org/releases/download/v0.1.0/")
        assert made.returncode == 0, made.stderr
    pypi, mcpb = json.loads(entry.read_text(encoding="utf-8"))["packages"]
    assert pypi["registryType"] == "pypi"
    assert mcpb["identifier"] == f"https://example.org/releases/download/v0.1.0/{bundle.name}"
    assert mcpb["fileSha256"] == hashlib.sha256(b"a bundle").hexdigest()
    bundle.unlink()
    assert run(*command, "https://example.org").returncode == 2


def test_nginx_accepts_its_site(tmp_path: Path):
    nginx = program("nginx")
    key, certificate = tmp_path / "key.pem", tmp_path / "cert.pem"
    subject = ("-subj", "/CN=standards.example.org", "-days", "1", "-nodes")
    made = run(
        *(program("openssl"), "req", "-x509", "-newkey", "rsa:2048", *subject),
        *("-keyout", key, "-out", certificate),
    )
    assert made.returncode == 0, made.stderr
    site = (PACKAGING / "nginx/standards-mcp.conf").read_text(encoding="utf-8")
    site = re.sub(r"/etc/\S+/fullchain.pem", str(certificate), site)
    site = re.sub(r"/etc/\S+/privkey.pem", str(key), site)
    config = tmp_path / "nginx.conf"
    text = f"pid {tmp_path}/pid; events {{}} http {{ access_log off; {site} }}"
    config.write_text(text, encoding="utf-8")
    result = run(nginx, "-t", "-e", "stderr", "-p", tmp_path, "-c", config)
    assert result.returncode == 0, result.stderr


class BooksPlugin(Plugin):
    """One tool."""

    @tool
    def find_book(self) -> str:
        """Find."""
        return "found"


@pytest.mark.anyio
async def test_the_dashboard_shows_metrics_that_the_service_has(
    make_host: MakeHost, tmp_path: Path
):
    text = (PACKAGING / "grafana/standards-mcp.json").read_text(encoding="utf-8")
    queries = [
        target["expr"] for panel in json.loads(text)["panels"] for target in panel["targets"]
    ]
    names = {name for query in queries for name in re.findall(r"\w+(?=\{)", query)}
    token = "of-prometheus"  # noqa: S105
    auth = auth_of(prometheus=(token, "metrics"))
    audit = {"path": str(tmp_path / "audit.jsonl")}
    server = {"port": 0, "metrics": True, "auth": auth, "audit": audit}
    host = make_host({"books": BooksPlugin}, server=server)
    async with requests_to(host) as client:
        answer = await client.get("/metrics", headers=bearer(token))
    kinds = re.findall(r"^# TYPE (\S+) (\S+)$", answer.text, re.MULTILINE)
    served = {f"{name}_bucket" if kind == "histogram" else name for name, kind in kinds}
    assert len(names) > 10
    assert names <= served
