# ruff: noqa: T201  - printing is what these tests are about
from __future__ import annotations

import io
import os
import subprocess
import sys
from collections.abc import Callable

import pytest

from standards_mcp._utils.streams import claim_standard_streams, divert_stdout


def _child() -> None:
    subprocess.run([sys.executable, "-c", "print('noise')"], check=True)


@pytest.mark.parametrize(
    "make_noise",
    [
        pytest.param(lambda: print("noise"), id="print"),
        pytest.param(lambda: os.write(1, b"noise"), id="descriptor"),
        pytest.param(_child, id="child process"),
        pytest.param(lambda: sys.stdout.write("noise"), id="without a flush"),
    ],
)
def test_whatever_is_printed_goes_to_stderr(
    make_noise: Callable[[], object], capfd: pytest.CaptureFixture[str]
):
    print("before")
    with divert_stdout():
        make_noise()
    print("after")
    out, err = capfd.readouterr()
    assert out == "before\nafter\n"
    assert err.strip() == "noise"


def test_stdout_is_back_after_an_error(capfd: pytest.CaptureFixture[str]):
    with pytest.raises(KeyboardInterrupt), divert_stdout():
        raise KeyboardInterrupt
    os.write(1, b"here")
    assert capfd.readouterr().out == "here"


def test_diversions_nest(capfd: pytest.CaptureFixture[str]):
    with divert_stdout():
        with divert_stdout():
            os.write(1, b"a")
        os.write(1, b"b")
    os.write(1, b"c")
    assert capfd.readouterr() == ("c", "ab")


@pytest.mark.parametrize("broken", ["closed", "detached", "None"])
def test_a_stream_that_somebody_broke_does_not_break_the_next(
    broken: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
):
    stream: io.TextIOWrapper | None = io.TextIOWrapper(io.BytesIO())
    if broken == "closed":
        stream.close()
    elif broken == "detached":
        stream.detach()
    else:
        stream = None
    monkeypatch.setattr(sys, "stdout", stream)
    with divert_stdout():
        os.write(1, b"noise")
    os.write(1, b"answer")
    assert capfd.readouterr() == ("answer", "noise")


def test_the_protocol_gets_private_copies_of_the_standard_streams():
    # In a process of its own: it gives away the streams that pytest needs.
    code = f"""
import os, subprocess, sys
from standards_mcp._utils.streams import {claim_standard_streams.__name__} as claim
reader, writer = claim()
assert os.read(0, 10) == b"", "input is the protocol's"
print("noise", flush=True)
os.write(1, b"noise\\n")
subprocess.run([sys.executable, "-c", "print('noise')"])
os.write(writer, os.read(reader, 100))
"""
    done = subprocess.run(
        [sys.executable, "-c", code], input=b"message", capture_output=True, check=True
    )
    assert done.stdout == b"message"
    assert done.stderr.count(b"noise") == 3
