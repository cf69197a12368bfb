"""A short run of scripts/fuzz.py against the server, and a check that it finds faults."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.processes

FUZZ = Path(__file__).parents[2] / "scripts" / "fuzz.py"
ANSWERS = """
import json, sys
for line in sys.stdin.buffer:
    try:
        message = json.loads(line)
        answer = {"jsonrpc": "2.0", "id": message["id"], "result": {FIELDS}}
    except (ValueError, LookupError, TypeError):
        answer = {"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": ""}}
    print(json.dumps(answer), flush=True)
    MISTAKE
"""
FIELDS = '"tools": [], "prompts": [], "resources": []'


def fuzz(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(FUZZ), "--seed", "1", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


@pytest.mark.slow
@pytest.mark.usefixtures("starter_catalog")
def test_odd_lines_and_arguments_are_each_answered_once():
    done = fuzz("--lines", "300", "--arguments", "200")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("300 lines and 200 calls") == 2, "in both generations"


@pytest.mark.parametrize(
    ("mistake", "told"),
    [
        ("print('noise', flush=True)", "it printed what is no JSON-RPC: b'noise"),
        ("print(json.dumps(answer), flush=True)", "too many answers"),
        ("if answer['id'] == 5: sys.exit(3)", "it has ended with code 3"),
        ("if answer['id'] == 5: sys.stdin.buffer.readline()", "no answer to"),
        ("answer['method'] = 'ask'; print(json.dumps(answer), flush=True)", "it asks something"),
    ],
)
def test_a_server_that_makes_mistakes_is_found_out(tmp_path: Path, mistake: str, told: str):
    program = ANSWERS.replace("FIELDS", FIELDS).replace("MISTAKE", mistake)
    (tmp_path / "server.py").write_text(program, encoding="utf-8")
    server = [sys.executable, str(tmp_path / "server.py")]
    done = fuzz("--lines", "40", "--arguments", "0", "--seconds", "3", "--", *server)
    assert done.returncode == 1
    assert told in done.stdout
