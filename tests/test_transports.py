"""Transports that other packages ship."""

from __future__ import annotations

import ast
import inspect
import json
import os
import re
import subprocess
from importlib import import_module
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from support.hosts import Install
from support.peer import COMMAND
from support.waiting import WAIT

from standards_mcp import transports
from standards_mcp._utils.entry_points import own_entry_points
from standards_mcp.cli import cli

DOCUMENT = (Path(__file__).parent.parent / "docs/plugins/transports.md").read_text("utf-8")
(PIPES,) = re.findall(r"^```python\n(.*?)^```$", DOCUMENT, re.MULTILINE | re.DOTALL)
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}
PLAIN = """
from standards_mcp.transports import Transport
PIPES = Transport(lambda start: 7)
"""


@pytest.fixture
def ship(install: Install):
    """Return a function that installs a package with the transport ``pipes``."""

    def write(source: str, distribution: str = "acme-pipes") -> None:
        install(
            "pipes",
            source,
            distribution=distribution,
            group="standards_mcp.transports",
            attribute="PIPES",
        )

    return write


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, [*arguments], prog_name="standards-mcp")


@pytest.mark.processes
@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="Windows has no named pipes")
def test_the_transport_of_the_documents_serves_a_client(ship):
    ship(PIPES)
    os.mkfifo("requests")
    os.mkfifo("answers")
    command = [*COMMAND, "serve", "--transport", "pipes"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        with (
            Path("requests").open("w", encoding="utf-8") as requests,
            Path("answers").open(encoding="utf-8") as answers,
        ):
            requests.write(json.dumps(INITIALIZE) + "\n")
            requests.flush()
            answer = json.loads(answers.readline())
        _, log = process.communicate(timeout=WAIT)
    assert answer["result"]["serverInfo"]["name"] == "standards-mcp"
    assert process.returncode == 0, log
    assert '"event": "started"' in log


def test_the_findings_of_a_transport_are_in_the_check_of_the_configuration(ship):
    ship(PIPES)
    checked = run("config", "check")
    assert checked.exit_code == 0
    assert checked.stdout.startswith("no audit log says what the client does\n")


@pytest.mark.processes
def test_the_exit_code_of_a_transport_is_that_of_the_program(ship):
    ship(PLAIN)
    command = [*COMMAND, "serve", "--transport", "pipes"]
    assert subprocess.run(command, check=False, timeout=WAIT).returncode == 7


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("import nothing_of_this_name", "of acme-pipes cannot be imported: ModuleNotFoundError"),
        ("PIPES = print", "the transport 'pipes' of acme-pipes is not a Transport"),
    ],
    ids=["broken", "other"],
)
def test_a_transport_that_cannot_be_used_is_named(ship, source: str, message: str):
    ship(source)
    served = run("serve", "--transport", "pipes")
    assert served.exit_code == 1
    assert message in served.stderr
    checked = run("config", "check")
    assert checked.exit_code == 1
    assert message in checked.stdout


def test_an_exception_in_a_check_is_a_problem_of_the_configuration(ship):
    ship(PLAIN.replace("lambda start: 7", "print, lambda settings: 1 / 0"))
    checked = run("config", "check")
    assert checked.exit_code == 1
    assert checked.stdout.startswith("ZeroDivisionError")


def test_two_packages_with_one_transport_are_both_named(ship):
    ship(PLAIN)
    ship(PLAIN, "other-pipes")
    served = run("serve", "--transport", "pipes")
    assert served.exit_code == 1
    assert "acme-pipes and other-pipes have a transport 'pipes' each" in served.stderr


def test_a_transport_of_a_package_that_is_not_trusted_is_not_imported(ship):
    ship("open('imported', 'w')")
    trusted = ("--set", "trusted=['standards-mcp*']")
    served = run(*trusted, "serve", "--transport", "pipes")
    assert served.exit_code == 2
    assert "trusted has no pattern for 'acme-pipes'" in served.stderr
    assert run(*trusted, "config", "check").exit_code == 0
    assert not Path("imported").exists()


def test_an_unknown_transport_is_answered_with_the_names_of_all(ship):
    ship(PLAIN)
    served = run("serve", "--transport", "pigeon")
    assert served.exit_code == 2
    assert "'pigeon' is not one of 'stdio', 'http', 'pipes'." in served.stderr


def test_the_document_lists_all_that_a_transport_imports():
    table = DOCUMENT.partition("| | |\n|---|---|\n")[2].partition("\n\n")[0]
    cells = [row.split("|")[2] for row in table.splitlines()]
    names = [name for cell in cells for name in re.findall(r"`(\w+)`", cell)]
    assert sorted(names) == sorted(transports.__all__)
    assert [name for name in names if not hasattr(transports, name)] == []


def test_settings_are_imported_without_the_server():
    program = (
        "import sys; from standards_mcp.transports import TokenSection, Transport;"
        " print('mcp' in sys.modules)"
    )
    ran = subprocess.run([COMMAND[0], "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout == "False\n"


def test_http_is_a_transport_of_the_program():
    assert set(own_entry_points("standards_mcp.transports")) == {"http"}


def test_each_name_is_the_one_that_type_checkers_see():
    tree = ast.parse(inspect.getsource(transports))
    block = next(node for node in tree.body if isinstance(node, ast.If))
    for node in block.body:
        assert isinstance(node, ast.ImportFrom)
        home = import_module(f"standards_mcp.{node.module}")
        for alias in node.names:
            if alias.name in transports.__all__:
                assert getattr(transports, alias.name) is getattr(home, alias.name)
