"""Sends a server what no client should send, in both protocol generations.

Lines are valid messages with a few things changed; arguments are made by the schemas that the
server publishes. Each request must be answered exactly once and in time, nothing but JSON-RPC may
come, no tool may crash, and the process must stay alive and small. The same seed sends the same.

    python scripts/fuzz.py
    python scripts/fuzz.py --seed 7 --lines 300 --arguments 300 --generation 2026-07-28
    python scripts/fuzz.py -- standards-mcp --config school.toml serve
"""

# ruff: noqa: S311, PLR2004  - chance, and how likely what is
from __future__ import annotations

import argparse
import json
import os
import queue
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, Final, cast

LEGACY: Final = "2025-11-25"
MODERN: Final = "2026-07-28"
SERVE: Final = [sys.executable, "-m", "standards_mcp", "serve"]
META: Final = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "fuzz", "version": "1"},
}
MEGABYTES: Final = 1000
"""The most memory that the server may have used at its end."""
TOGETHER: Final = 20
"""How many lines are sent before their answers are awaited."""
SHOWN: Final = 300
INTERNAL_ERROR: Final = -32603

# Raw JSON, so that there is also what `json.dumps` cannot write.
ODD: Final = (
    *("null", "true", "0", "-1", "1.5", "1e400", "-0.0", "NaN", "Infinity", "9" * 30, "9" * 5000),
    *('""', '" "', '"x"', r'"\ud83d"', r'"\u0000"', '"\u202e\U0001f600"', f'"{"long " * 9999}"'),
    *("[]", "{}", "[[]]", '[null, "a", 1]', '{"": {}}', '{"a": 1, "a": 2}', '{"__class__": 1}'),
    *("[" * 90 + "]" * 90, "[" * 500 + "]" * 500, '{"a":' * 5000 + "1" + "}" * 5000),
)
DEEP: Final = b"[" * 100
NOISE: Final = (b"\xff", b"\xed\xa0\x80", b"\x00", b"\xef\xbb\xbf", b"\r", b"\n", b"\\", b'"', b"{")
METHODS: Final = ("", "tools", "tools/call/x", "rpc.discover", "__init__", "initialize", "\ud83d")


class FaultError(Exception):
    """The server did what it must not do."""


class Server:
    """A server process and its pipes.

    Args:
        seconds: How long it may take for what is sent together.
    """

    def __init__(self, command: list[str], folder: Path, seconds: float) -> None:
        kinds = ("STATE", "DATA", "CONFIG", "CACHE")
        homes = {f"XDG_{kind}_HOME": str(folder / kind.lower()) for kind in kinds}
        self.seconds = seconds
        self.log = folder / "log"
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.log.open("wb"),
            env={**os.environ, **homes},
        )
        self._input = cast("IO[bytes]", self.process.stdin)
        self._lines = queue.Queue[bytes]()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        for line in self.process.stdout or ():
            self._lines.put(line)
        self._lines.put(b"")

    def write(self, data: bytes) -> None:
        """Send lines to it.

        Raises:
            FaultError: It is gone.
        """
        try:
            self._input.write(data)
            self._input.flush()
        except OSError as exc:
            raise FaultError(f"it is gone: {exc}") from None

    def message(self, seconds: float) -> dict[str, Any] | None:
        """Return the next message, or None if none came in time.

        Raises:
            FaultError: It is no message, or the server has ended.
        """
        try:
            line = self._lines.get(timeout=max(0, seconds))
        except queue.Empty:
            return None
        if not line:
            raise FaultError(f"it has ended with code {self.process.wait()}")
        try:
            message = json.loads(line)
            kinds = {"method", "id", "error"}
            is_message = message["jsonrpc"] == "2.0" and bool(message.keys() & kinds)
        except (ValueError, LookupError, TypeError):
            is_message = False
        if not is_message:
            raise FaultError(f"it printed what is no JSON-RPC: {line[:SHOWN]!r}")
        return message

    def memory(self) -> float:
        """Return the megabytes that it has used at most; 0 where the system does not tell."""
        try:
            status = Path(f"/proc/{self.process.pid}/status").read_text("utf-8")
        except OSError:
            return 0
        return int(status.partition("VmHWM:")[2].split()[0]) / 1024

    def end(self) -> None:
        """Close its stdin and wait for its end."""
        self._input.close()
        if code := self.process.wait(self.seconds):
            raise FaultError(f"it has ended with code {code}")


class Talk:
    """Sends lines, and holds the answers against what each line must be answered with."""

    def __init__(self, server: Server, generation: str) -> None:
        self._server = server
        self._is_modern = generation == MODERN
        self._number = 0
        self._late = Counter[str]()  # what may still be answered, once

    def request(self, method: str, **params: Any) -> dict[str, Any]:
        """Return a request with an id of its own, as this generation writes it."""
        self._number += 1
        if self._is_modern:
            params["_meta"] = META
        return {"jsonrpc": "2.0", "id": self._number, "method": method, "params": params}

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """Return the result of a request.

        Raises:
            FaultError: There is none.
        """
        message = self.request(method, **params)
        answer = self.exchange([json.dumps(message).encode()])[0]
        if "result" not in answer:
            raise FaultError(f"{method} was answered with {answer}")
        return answer["result"]

    def exchange(self, lines: list[bytes]) -> list[dict[str, Any]]:
        """Send lines together, and return their answers.

        Raises:
            FaultError: A line was not answered in time, or more often than it should be.
        """
        # What is refused has been refused once a later line is answered.
        last = _written(self.request("tools/list"))
        lines = [part for line in [*lines, last] for part in line.split(b"\n")]
        values = [_parsed(line) for line in lines]
        cancelled = {repr(_dig(each, "params", "requestId")) for each in values if _cancels(each)}
        awaited = Counter(key for value in values for key in _awaited(value))
        optional = {key for key in awaited if key in cancelled}
        optional |= {key for each in values if _listens(each) for key in _awaited(each)}
        self._server.write(b"".join(line + b"\n" for line in lines))
        answers, found = list[dict[str, Any]](), Counter[str]()
        deadline = time.monotonic() + self._server.seconds
        while any(found[key] < awaited[key] for key in awaited if key not in optional):
            message = self._server.message(deadline - time.monotonic())
            if message is None:
                missing = [key for key in awaited if found[key] < awaited[key] - (key in optional)]
                raise FaultError(f"no answer to {missing} of {_shown(lines)}")
            if "method" not in message:
                answers.append(message)
                found[repr(message.get("id"))] += 1
            elif "id" in message:
                raise FaultError(f"it asks something: {message}")
        # A line that is too deep may be refused before it can be seen to be a notification.
        self._late["None"] = sum(DEEP in line for line in lines)
        self._late += awaited - found
        if extra := [*(found - awaited - self._late)]:
            raise FaultError(f"too many answers to {extra} of {_shown(lines)}")
        self._late -= found - awaited
        for answer in answers:
            error = answer.get("error", {})
            text = str(_dig(answer, "result", "structuredContent", "message") or "")
            if error.get("code") == INTERNAL_ERROR or "internal error" in text:
                raise FaultError(f"a crash, {error or text}, by one of {_shown(lines)}")
        return answers


def _shown(lines: list[bytes]) -> str:
    return "".join(f"\n    {line[:SHOWN]!r}" for line in lines)


def _parsed(line: bytes) -> Any:
    """Return what a line holds; None for an empty one, and a text for what is no JSON."""
    if not line or line.isspace():
        return None
    try:
        value = json.loads(line.decode(errors="replace"))
    except (ValueError, RecursionError):
        return "broken"
    return "null" if value is None else value


def _awaited(value: Any) -> Iterator[str]:
    """Yield the id that one answer to a message must have, or nothing if it has none."""
    if not isinstance(value, dict):
        if value is not None:
            yield "None"
        return
    number = value.get("id")
    if "method" not in value and ("result" in value or "error" in value):
        return
    is_fine = value.get("jsonrpc") == "2.0" and isinstance(value.get("method"), str)
    if is_fine and "id" not in value and isinstance(value.get("params"), dict | None):
        return
    if isinstance(number, str):
        number = number.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    has_id = isinstance(number, str | int) and not isinstance(number, bool)
    yield repr(number) if has_id else "None"


def _cancels(value: Any) -> bool:
    return isinstance(value, dict) and value.get("method") == "notifications/cancelled"


def _listens(value: Any) -> bool:
    return isinstance(value, dict) and value.get("method") == "subscriptions/listen"


def _dig(value: Any, *keys: str) -> Any:
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


class Mutations:
    """Makes odd messages of good ones."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._kinds: list[Callable[[dict[str, Any]], bytes]] = [
            self._with_odd_value,
            self._with_odd_value,
            self._with_noise,
            self._cut,
            self._in_a_batch,
            self._with_other_method,
            self._with_other_id,
            _written,
        ]

    def line(self, message: dict[str, Any]) -> bytes:
        """Return a line that was made of *message*."""
        return self._chance.choice(self._kinds)(json.loads(json.dumps(message)))

    def value(self) -> str:
        """Return an odd value, as JSON."""
        return self._chance.choice(ODD)

    def _with_odd_value(self, message: dict[str, Any]) -> bytes:
        return self.with_odd_values(message, self._chance.randint(1, 3))

    def with_odd_values(self, message: dict[str, Any], count: int) -> bytes:
        """Return the line of a message with some of its values replaced, removed or added."""
        values: dict[str, str] = {}
        for number in range(count):
            holder = self._chance.choice([*_holders(message)])
            mark = f"@{number}@"
            key = self._chance.choice([*holder, "odd"])
            if self._chance.random() < 0.2:
                holder.pop(key, None)
            else:
                holder[key] = mark
                values[f'"{mark}"'] = self.value()
        text = json.dumps(message)
        for mark, value in values.items():
            text = text.replace(mark, value)
        return text.encode("utf-8", "surrogatepass")

    def _with_noise(self, message: dict[str, Any]) -> bytes:
        line = bytearray(_written(message))
        for _ in range(self._chance.randint(1, 3)):
            place = self._chance.randrange(len(line))
            line[place : place + self._chance.randint(0, 2)] = self._chance.choice(NOISE)
        return bytes(line)

    def _cut(self, message: dict[str, Any]) -> bytes:
        line = _written(message)
        return line[: self._chance.randrange(len(line))]

    def _in_a_batch(self, message: dict[str, Any]) -> bytes:
        return b"[" + b",".join([_written(message)] * self._chance.randint(0, 3)) + b"]"

    def _with_other_method(self, message: dict[str, Any]) -> bytes:
        return _written(message | {"method": self._chance.choice(METHODS)})

    def _with_other_id(self, message: dict[str, Any]) -> bytes:
        """Return a message under an odd id, with none, or twice under the same."""
        kind = self._chance.randrange(3)
        if kind == 0:
            return _written({**message, "id": "@"}).replace(b'"@"', self.value().encode())
        if kind == 1:
            return _written({key: value for key, value in message.items() if key != "id"})
        return _written(message) + b"\n" + _written(message)


def _written(message: dict[str, Any]) -> bytes:
    return json.dumps(message).encode()


def _holders(value: Any) -> Iterator[dict[str, Any]]:
    """Yield the objects in a message, itself among them."""
    if isinstance(value, dict):
        yield value
        for each in value.values():
            yield from _holders(each)


class Arguments:
    """Makes arguments of tools by their schemas: valid ones, nearly valid ones, and wild ones."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance

    def of(self, schema: dict[str, Any]) -> dict[str, Any]:
        """Return arguments; those that are wild have marks of `Mutations`."""
        required = schema.get("required", ())
        return {
            name: self._value(each)
            for name, each in schema.get("properties", {}).items()
            if name in required or self._chance.random() < 0.4
        }

    def _value(self, schema: dict[str, Any]) -> Any:
        choices = schema.get("enum") or schema.get("examples") or ()
        if choices and self._chance.random() < 0.8:
            return self._chance.choice(choices)
        kind = schema.get("type", "string")
        kind = self._chance.choice(kind) if isinstance(kind, list) else kind
        if kind in ("integer", "number"):
            least, most = schema.get("minimum", -5), schema.get("maximum", 10_000)
            return self._chance.randint(int(least), int(most))
        if kind == "array":
            items = schema.get("items", {})
            return [self._value(items) for _ in range(self._chance.randint(0, 3))]
        plain = {"boolean": self._chance.random() < 0.5, "null": None, "object": {}}
        return plain[kind] if kind in plain else self._text()

    def _text(self) -> str:
        words = (
            "fraction",
            "3.NF.A.1",
            "grade 3",
            "K",
            "%",
            "'",
            "\\",
            "é",
            "\U0001f600",
            "(",
            "*",
        )
        words += ("AND", "Common Core", "../", "math", "", "\n", "\u202e", "0", "CCSS")
        return " ".join(self._chance.choices(words, k=self._chance.randint(0, 6)))


def requests_of(talk: Talk) -> list[Callable[[], dict[str, Any]]]:
    """Return functions that make a valid request of each kind that the server answers."""
    lists = ("tools/list", "prompts/list", "resources/list", "resources/templates/list")
    kinds = [(each, {}) for each in (*lists, "ping", "server/discover", "subscriptions/listen")]
    for tool in talk.ask("tools/list")["tools"]:
        kinds += [("tools/call", {"name": tool["name"], "arguments": {}})]
    for prompt in talk.ask("prompts/list")["prompts"]:
        kinds += [("prompts/get", {"name": prompt["name"], "arguments": {}})]
        ref = {"type": "ref/prompt", "name": prompt["name"]}
        argument = {"name": "subject", "value": "m"}
        kinds += [("completion/complete", {"ref": ref, "argument": argument})]
    for item in talk.ask("resources/list")["resources"]:
        kinds += [("resources/read", {"uri": item["uri"]})]
    kinds += [
        ("notifications/cancelled", {"requestId": 0}),
        ("logging/setLevel", {"level": "debug"}),
        ("resources/subscribe", {"uri": "standards://sets"}),
        ("initialize", {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {}}),
    ]
    return [lambda m=method, p=params: talk.request(m, **p) for method, params in kinds]


def fuzz(server: Server, generation: str, seed: int, lines: int, arguments: int) -> None:
    """Send all to a server.

    Raises:
        FaultError: It did what it must not do.
    """
    chance = random.Random(f"{seed} {generation}")
    mutations, made, talk = Mutations(chance), Arguments(chance), Talk(server, generation)
    if generation == LEGACY:
        client = {"name": "fuzz", "version": "1"}
        talk.ask("initialize", protocolVersion=LEGACY, capabilities={}, clientInfo=client)
        server.write(b'{"jsonrpc": "2.0", "method": "notifications/initialized"}\n')
    kinds = requests_of(talk)
    for start in range(0, lines, TOGETHER):
        count = min(TOGETHER, lines - start)
        talk.exchange([mutations.line(chance.choice(kinds)()) for _ in range(count)])
    tools = talk.ask("tools/list")["tools"]
    for start in range(0, arguments, TOGETHER):
        sent: list[bytes] = []
        for _ in range(min(TOGETHER, arguments - start)):
            tool = chance.choice(tools)
            given = made.of(tool["inputSchema"])
            odd = chance.choice((0, 0, 1, 3))
            # The odd values go into the arguments only, since the rest has had its turn.
            written = mutations.with_odd_values(given, odd) if odd else _written(given)
            call = talk.request("tools/call", name=tool["name"], arguments="@")
            sent.append(_written(call).replace(b'"@"', written))
        talk.exchange(sent)
    talk.ask("tools/list")
    if (used := server.memory()) > MEGABYTES:
        raise FaultError(f"it has used {used:.0f} MB")
    print(f"{generation}: {lines} lines and {arguments} calls, {used:.0f} MB at most")
    server.end()


def main() -> int:
    """Return 0 if the server did all right, otherwise 1."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lines", type=int, default=10_000, help="how many, in each generation")
    parser.add_argument("--arguments", type=int, default=10_000, help="sets of them, likewise")
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    parser.add_argument("--generation", choices=(LEGACY, MODERN), action="append")
    parser.add_argument("--seconds", type=float, default=60, help=f"for {TOGETHER} lines")
    parser.add_argument("command", nargs="*", default=SERVE, help="the server, in place of ours")
    given = parser.parse_args()
    print(f"seed {given.seed}")
    failed = False
    for generation in given.generation or (LEGACY, MODERN):
        with tempfile.TemporaryDirectory() as folder:
            server = Server(given.command, Path(folder), given.seconds)
            try:
                fuzz(server, generation, given.seed, given.lines, given.arguments)
            except FaultError as fault:
                failed = True
                print(f"{generation}: {fault}")
                print(server.log.read_text("utf-8", "replace")[-4000:], file=sys.stderr)
            finally:
                server.process.kill()
                server.process.wait()
    return int(failed)


if __name__ == "__main__":
    raise SystemExit(main())
