"""The program with a terminal for its stdin."""

from __future__ import annotations

import os
import pty
import subprocess
import sys


def on_a_terminal(answer: str, *arguments: str) -> tuple[int, str]:
    """Run the program with a terminal for its stdin that types *answer*."""
    ours, its = pty.openpty()
    command = [sys.executable, "-m", "standards_mcp", *arguments]
    with subprocess.Popen(
        command, stdin=its, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        os.write(ours, f"{answer}\n".encode())
        output, _ = process.communicate(timeout=90)
    os.close(its)
    os.close(ours)
    return process.returncode, output
