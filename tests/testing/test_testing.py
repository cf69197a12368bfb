"""The test kit, used as plugin authors use it."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

import anyio
import anyio.to_process
import pytest
from mcp_types import ElicitResult, ErrorData
from pydantic import BaseModel, Field, SecretStr, create_model

from standards_mcp import (
    CallContext,
    Filter,
    Health,
    InvalidInputError,
    Plugin,
    PluginError,
    PluginSettings,
    Prompt,
    Resource,
    Skill,
    Tool,
    ToolCall,
    ToolHandler,
    ToolResult,
    Variable,
    hookimpl,
    tool,
)
from standards_mcp.testing import Allowed, Connect, check_plugin

Number = Annotated[int, Field(description="A number")]


class SumsSettings(PluginSettings):
    """Settings of sums.

    Attributes:
        start: Where sums begin.
    """

    start: int = 0


class SumsPlugin(Plugin[SumsSettings]):
    """A plugin without a fault."""

    settings_type = SumsSettings

    @hookimpl
    def register_tools(self):
        return [Tool(name="sums.add", function=self.add, read_only=True)]

    @hookimpl
    @asynccontextmanager
    async def lifespan(self):
        async with asyncio.TaskGroup() as group:
            waiting = group.create_task(asyncio.sleep(60))
            yield
            waiting.cancel()

    def add(self, number: Number) -> int:
        """Add a number to what sums start with."""
        if number < 0:
            raise InvalidInputError("The number must not be negative.")
        return self.settings.start + number


def add(number: Number) -> int:
    """Add one to a number, which nobody else does."""
    return number + 1


def plugin(**members: Any) -> type[Plugin]:
    """Return a plugin class with these hooks and attributes."""
    functions = {name: hookimpl(each) for name, each in members.items() if callable(each)}
    return type("MadePlugin", (Plugin,), {**members, **functions})


def with_tool(**fields: Any) -> type[Plugin]:
    given = {"name": "made", "function": add, "read_only": True, **fields}
    return plugin(register_tools=lambda _: [Tool(**given)])


def starting(start: Callable[[], object], stop: Callable[[], object] = lambda: None):
    @asynccontextmanager
    async def lifespan(_):
        start()
        yield
        stop()

    return plugin(lifespan=lifespan)


def raise_(exc: BaseException) -> None:
    raise exc


def faults(plugin_type: type[Plugin], **arguments: Any) -> list[str]:
    """Return what the kit finds wrong with a plugin."""
    try:
        check_plugin(plugin_type, name="made", **arguments)
    except AssertionError as error:
        return [line.removeprefix("  - ") for line in str(error).splitlines()[1:]]
    return []


# Connecting


@pytest.mark.anyio
@pytest.mark.parametrize("generation", ["auto", "legacy", "2026-07-28"])
async def test_a_client_of_either_generation_calls_the_tools(connect: Connect, generation: str):
    async with connect(SumsPlugin, name="sums", generation=generation, start=40) as client:
        (listed,) = (await client.list_tools()).tools
        result = await client.call_tool(listed.name, {"number": 2})
    assert result.structured_content == {"result": 42}


@pytest.mark.anyio
async def test_a_plugin_that_fails_raises_its_reason(connect: Connect):
    def fail() -> None:
        raise OSError("no database")

    with pytest.raises(PluginError, match="its lifespan failed: OSError: no database"):
        async with connect(starting(fail), name="made"):
            pass
    with pytest.raises(PluginError, match="stat: unknown key; did you mean 'start'"):
        async with connect(SumsPlugin, name="sums", stat=1):
            pass


@pytest.mark.anyio
async def test_what_fails_in_the_test_is_raised_as_it_is(connect: Connect):
    with pytest.raises(KeyError, match="mine"):
        async with connect(SumsPlugin, name="sums"):
            raise KeyError("mine")


class Choice(BaseModel):
    grade: str


async def choose(call: CallContext) -> str:
    choice = await call.ask("Which grade?", Choice)
    return choice.grade if choice else "none"


async def accept(*_: object) -> ElicitResult:
    return ElicitResult(action="accept", content={"grade": "3"})


ASKING = with_tool(function=choose, description="Choose a grade to plan for.")


@pytest.mark.anyio
@pytest.mark.parametrize("generation", ["auto", "legacy"])
async def test_what_a_tool_asks_is_answered_by_the_test(connect: Connect, generation: str):
    options: dict[str, Any] = {"client": {"elicitation_callback": accept}}
    async with connect(ASKING, name="made", generation=generation, **options) as client:
        result = await client.call_tool("made", {})
    assert result.content[0].text == "3"


@pytest.mark.parametrize("generation", ["auto", "legacy"])
def test_the_check_tries_a_tool_that_asks(generation: str):
    async def refuse(*_: object) -> ErrorData:
        return ErrorData(code=-1, message="no forms today")

    options: dict[str, Any] = {"calls": [("made", {})], "generation": generation}
    check_plugin(ASKING, name="made", client={"elicitation_callback": accept}, **options)
    (unasked,) = faults(ASKING, **options)
    assert "This client cannot ask its user." in unasked
    (refused,) = faults(ASKING, client={"elicitation_callback": refuse}, **options)
    assert "tool 'made' answers with an error: " in refused


@pytest.mark.parametrize("field", [list[Literal["quiz", "game"]], bool, list[str], Choice])
def test_a_form_has_plain_fields_only(field: Any):
    form = create_model("Form", field=field)

    async def decline(*_: object) -> ElicitResult:
        return ElicitResult(action="decline")

    async def decide(call: CallContext) -> str:
        return str(await call.ask("What is it to be?", form))

    asking = with_tool(function=decide, description="Decide what it is to be.")
    found = faults(asking, calls=[("made", {})], client={"elicitation_callback": decline})
    assert bool(found) == (field in (list[str], Choice))
    assert all("crashes: TypeError: Elicitation schema field 'field'" in each for each in found)


@pytest.mark.anyio
async def test_a_prompt_gets_the_tools_of_a_plugin_beside(connect: Connect):
    asking = plugin(
        register_prompts=lambda _: [
            Prompt(name="sum_up", description="Sum", function=sum_up, needs=("sums.add",))
        ]
    )
    config = {"tools": {"overrides": {"sums.add": {"name": "plus"}}}}
    beside = {"sums": SumsPlugin}
    async with connect(asking, name="asking", beside=beside, config=config) as client:
        (message,) = (await client.get_prompt("sum_up", {})).messages
    assert message.content.text == "Call plus."


def sum_up(*, tools: dict[str, str]) -> str:
    return f"Call {tools['sums.add']}."


class Finder(Plugin):
    needs = (dict,)

    @hookimpl
    def register_tools(self):
        return [Tool(name="count", function=self.count, read_only=True)]

    def count(self) -> list[str]:
        """Count what the service has."""
        return [str(self.context.state_dir), *self.context.service(dict)]


@pytest.mark.anyio
async def test_plugins_get_services_and_keep_state_in_a_folder_of_the_test(
    connect: Connect, tmp_path: Path
):
    async with connect(Finder, name="finder", services={dict: {"title": "books"}}) as client:
        result = await client.call_tool("count", {})
    folder, *titles = result.structured_content["result"]
    assert Path(folder).is_relative_to(tmp_path)
    assert titles == ["title"]


@pytest.mark.anyio
async def test_check_plugin_says_that_it_is_not_for_async_tests():
    with pytest.raises(RuntimeError, match="call check_plugin from a plain test function"):
        check_plugin(SumsPlugin, name="sums")


# Rules


def test_a_plugin_without_a_fault_passes(capfd: pytest.CaptureFixture[str]):
    @asynccontextmanager
    async def lifespan(_):
        await anyio.to_process.run_sync(os.getpid)  # such a worker process may stay
        yield

    async def check_health(_):
        return Health(status="failed", message="No network.")

    check_plugin(SumsPlugin, name="sums", start=1, calls=[("sums.add", {"number": 1})])
    check_plugin(plugin(lifespan=lifespan, check_health=check_health), name="made")
    check_plugin(Finder, name="finder", services={dict: {}}, calls=[("count", {})])
    check_plugin(with_tool(read_only=False), name="made", allow=Allowed(destructive=("made",)))
    assert capfd.readouterr() == ("", "")


NO_SUBCLASS = "its settings_type is not a subclass of PluginSettings"
HOOKS = ("tools", "prompts", "resources", "filters", "commands")


def forgets(_: Plugin, call_next: object) -> None:
    del call_next


def with_schema(**schema: Any) -> type[Plugin]:
    return with_tool(input_schema={"type": "object", "properties": {"a": schema}})


class Odd(PluginSettings):
    """Settings.

    Attributes:
        compare: How to compare.
    """

    compare: Callable[[], int] | None = None


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (with_tool(name="a b"), "'a b' is not a valid tool name"),
        (with_tool(name="x" * 51), "its name has 51 characters; use 50 at most"),
        (
            with_tool(description="Adds."),
            "its description has 5 characters; describe its effect and its use in 20 to 1024",
        ),
        (with_tool(description="x" * 1025), "its description has 1025 characters"),
        (
            with_tool(read_only=False),
            "tool 'made': without a flag, clients assume that it may delete or overwrite",
        ),
        (with_schema(type="integer"), "its argument 'a' is not described"),
        (plugin(register_tools=lambda _: raise_(OSError("no file"))), "OSError: no file"),
    ],
)
def test_what_a_plugin_declares_is_checked(made: type[Plugin], expected: str):
    assert any(expected in fault for fault in faults(made))


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (type("Odd", (), {}), "its entry point is not a subclass of Plugin"),
        (plugin(settings_type=3), NO_SUBCLASS),
        (type("Odd", (Plugin,), {"settings_type": dict}), NO_SUBCLASS),
        (
            type("Odd", (Plugin,), {"settings_type": Odd}),
            "its settings cannot be described as JSON Schema: ",
        ),
        (
            type("Odd", (Plugin,), {"register_tools": lambda _: []}),
            "its method 'register_tools' is not marked with @hookimpl",
        ),
        *(
            (
                plugin(**{f"register_{name}": lambda _: None}),
                f"its register_{name} returns nothing; is a `return` missing?",
            )
            for name in HOOKS
        ),
        (plugin(wrap_tool_call=forgets), "its wrap_tool_call returns nothing; is a `return`"),
    ],
)
def test_what_makes_no_plugin_is_found_and_told_once(made: type[Plugin], expected: str):
    (found,) = faults(made)
    assert found.startswith(expected)


def test_one_fault_does_not_hide_another():
    tools = [Tool(name="a b", function=add), Tool(name="c", function=add, description="C.")]
    found = faults(plugin(register_tools=lambda _: tools))
    assert len(found) == 3
    assert found[0].startswith("'a b' is not a valid tool name")
    with pytest.raises(AssertionError, match="its entry-point name is not lower_snake_case"):
        check_plugin(plugin(), name="Made-up")


def test_prompts_resources_and_filters_are_checked_too():
    found = faults(
        plugin(
            register_prompts=lambda _: [
                Prompt(name="ask", description="Ask.", function=lambda: "Ask")
            ],
            register_resources=lambda _: [
                Resource(uri="x", name="x", description="x" * 20, function=lambda: "x")
            ],
            register_filters=lambda _: [
                Filter(name="f", annotation=str, description="F.", to_expression=lambda _: None)
            ],
        )
    )
    for expected in ("prompt 'ask': its desc", "'x' has no scheme", "filter 'f': its description"):
        assert any(expected in fault for fault in found)


@pytest.mark.parametrize("name", ["sums.sdd", "sums_add", "find_relevant_standard"])
@pytest.mark.parametrize("field", ["needs", "uses"])
def test_a_tool_that_a_prompt_names_wrongly_is_found(name: str, field: str):
    def sum_twice(*, tools: dict[str, str]) -> str:
        """Sum two numbers, and then sum them again."""
        return str(tools)

    def prompting(*names: str) -> type[Plugin]:
        prompt = Prompt(name="twice", function=sum_twice, **{field: names})
        return plugin(register_prompts=lambda _: [prompt])

    beside = {"sums": SumsPlugin}
    check_plugin(prompting("sums.add", "other_teams_tool"), name="made", beside=beside)
    (found,) = faults(prompting("sums.add", name), beside=beside)
    assert found.startswith(f"prompt 'twice': no tool here is called {name!r}; did you mean '")


def viewing(page: str, *tools: str, csp: Any = None) -> type[Plugin]:
    view = Resource(
        uri="ui://made/sum.html",
        name="sum_view",
        description="Shows the sum of two numbers.",
        function=lambda: page,
        view_of=tools or ("sums.add",),
        meta={"ui": {"csp": csp or {}}},
    )
    return plugin(register_resources=lambda _: [view])


def view_faults(made: type[Plugin]) -> list[str]:
    return faults(made, beside={"sums": SumsPlugin}, reads=["ui://made/sum.html"])


def test_a_view_of_a_tool_that_seems_to_be_misspelt_is_found():
    (fault,) = view_faults(viewing("<p>", "sums.ad"))
    assert fault.startswith("resource 'sum_view': no tool here is called 'sums.ad'; did you mean")


@pytest.mark.parametrize(
    "loading",
    [
        '<script src="https://cdn.example/app.js"></script>',
        "<link rel=stylesheet href=https://cdn.example/a.css>",
        "<style>p { background: url( 'https://cdn.example/a.png' ) }</style>",
        '<script type="module">import { a } from "https://cdn.example/a.js";</script>',
        '<script>image.src = "https://cdn.example/a.png";</script>',
        '<script>fetch("https://cdn.example/data");</script>',
        "<IMG SRC='https://cdn.example'>",
    ],
)
def test_a_view_that_loads_what_clients_block_is_found(loading: str):
    (fault,) = view_faults(viewing(loading))
    assert "clients block what its page loads from https://cdn.example; put it into" in fault
    allowing = viewing(loading, csp={"resourceDomains": ["https://cdn.example"]})
    check_plugin(allowing, name="made", beside={"sums": SumsPlugin}, reads=["ui://made/sum.html"])


def test_a_view_that_only_links_to_pages_is_no_fault():
    page = '<a href="https://example.org/">Official</a> <p>import from https://example.org</p>'
    check_plugin(
        viewing(page), name="made", beside={"sums": SumsPlugin}, reads=["ui://made/sum.html"]
    )


def test_a_skill_keeps_the_rules_and_names_tools_that_exist():
    def text(name: str, description: str = "Adds up a list of numbers.") -> str:
        return f"---\nname: {name}\ndescription: {description}\n---\nCall `sums_add`."

    def skilled(text: str, *needs: str) -> type[Plugin]:
        return plugin(register_skills=lambda _: [Skill(source=text, needs=needs)])

    beside, uri = {"sums": SumsPlugin}, "skill://add-up/SKILL.md"
    check_plugin(skilled(text("add-up"), "sums.add"), name="made", beside=beside, reads=[uri])
    (misspelt,) = faults(skilled(text("add-up"), "sums.ad"), beside=beside)
    assert misspelt.startswith("skill 'add-up': no tool here is called 'sums.ad'; did you mean")
    (short,) = faults(skilled(text("add-up", "Adds.")))
    assert "its description has 5 characters" in short
    assert any("its name" in each for each in faults(skilled(text("Add-up"))))


def test_settings_are_described_and_secrets_declared():
    class Keys(PluginSettings):
        """Settings.

        Attributes:
            password: Declared.
            access: What the service asks for.
        """

        api_key: str = ""
        password: SecretStr | None = None
        max_tokens: int = 0
        access: Annotated[str, Variable("FIND_API_KEY")] = ""

    found = faults(type("Keyed", (Plugin,), {"settings_type": Keys}))
    assert [fault.partition(";")[0] for fault in found] == [
        "its setting 'api_key' is not described",
        "its setting 'api_key' looks like a secret",
        "its setting 'max_tokens' is not described",
        "its setting 'access' looks like a secret",
    ]


class ShopPlugin(Plugin):
    @tool(read_only=True)
    def price(self) -> str:
        """Say what a book costs."""
        return "9"


def test_a_method_that_takes_away_a_declared_one_is_told():
    (found,) = faults(type("SalePlugin", (ShopPlugin,), {"price": lambda _: "7"}))
    assert "'price' overrides a declared one" in found
    check_plugin(type("QuietPlugin", (ShopPlugin,), {"price": None}), name="shop")
    check_plugin(ShopPlugin, name="shop", calls=[("price", {})])


def wrapping(change: Callable[[ToolResult], ToolResult]) -> type[Plugin]:
    """Return a plugin with a tool and a wrapper that changes its results."""

    def wrap_tool_call(_: Plugin, call_next: ToolHandler) -> ToolHandler:
        async def handle(call: ToolCall) -> ToolResult:
            return change(await call_next(call))

        return handle

    made = Tool(name="made", function=add, read_only=True)
    return plugin(wrap_tool_call=wrap_tool_call, register_tools=lambda _: [made])


@pytest.mark.parametrize(
    ("made", "arguments", "expected"),
    [
        (
            wrapping(lambda result: replace(result, structured={"result": "many"})),
            {"number": 1},
            "tool 'made' gives an answer that clients refuse: Invalid structured",
        ),
        (
            wrapping(lambda _: raise_(RuntimeError("broken"))),
            {"number": 1},
            "tool 'made' crashes: RuntimeError: broken at test_testing.py:",
        ),
        (
            with_tool(function=lambda: raise_(LookupError("row 3")), description="x" * 20),
            {},
            "tool 'made' crashes: LookupError: row 3 at test_testing.py:",
        ),
    ],
    ids=["a wrapper that breaks the schema", "a wrapper that crashes", "a tool that crashes"],
)
def test_a_call_that_breaks_is_found(made: type[Plugin], arguments: Any, expected: str):
    (found,) = faults(made, calls=[("made", arguments)])
    assert found.startswith(expected)


def test_prompts_and_resources_are_tried_as_tools_are():
    def ask(text: Number) -> str:
        print("asked")  # noqa: T201
        return str(text)

    def read(name: str) -> str:
        if name == "none":
            raise InvalidInputError("There is none.")
        return {"a": "b"}[name]

    made = plugin(
        register_prompts=lambda _: [Prompt(name="ask", description="Ask." * 9, function=ask)],
        register_resources=lambda _: [
            Resource(uri="x://{name}", name="x", description="Read." * 9, function=read)
        ],
    )
    check_plugin(made, name="made", reads=["x://a"])
    assert faults(
        made,
        prompts=[("ask", {"text": 3}), ("beg", {})],
        reads=["x://a", "x://none", "x://other", "y://a"],
    ) == [
        "prompt 'ask' writes to stdout ('asked'); log it or write to sys.stderr",
        "Unknown prompt: beg; use a name that the plugin has",
        "resource 'x://none' answers with an error: There is none.",
        *(fault for fault in faults(made, reads=["x://other"]) if "crashes: KeyError" in fault),
        "Unknown resource: y://a; use a name that the plugin has",
    ]


def test_a_lifespan_that_hangs_or_can_be_entered_only_once_is_found():
    @asynccontextmanager
    async def lifespan(_):
        await asyncio.sleep(60)
        yield

    (found,) = faults(plugin(lifespan=lifespan), allow=Allowed(start_seconds=0.2))
    assert found == "its lifespan fails: TimeoutError: it does not start within 0.2 seconds"
    chances = [None]
    found = faults(starting(chances.pop))[0]
    assert found == "its lifespan fails the second time: IndexError: pop from empty list"


@pytest.mark.parametrize(
    ("start", "expected"),
    [
        (lambda: sys.stdout.write("hello"), "its lifespan writes to stdout ('hello')"),
        (lambda: os.write(1, b"hello"), "its lifespan writes to stdout ('hello')"),
        (
            lambda: os.environ.update(MADE="1"),
            "its lifespan changes the environment variables MADE; read the values from the",
        ),
        (lambda: os.chdir("/"), "its lifespan changes the working directory"),
        (lambda: time.sleep(0.5), "it blocks the event loop for more than 100 ms at test_testing"),
        (lambda: 1 / 0, "its lifespan fails: ZeroDivisionError: division by zero"),
        (lambda: raise_(asyncio.CancelledError()), "its lifespan fails: CancelledError"),
        (
            lambda: asyncio.get_running_loop().create_task(asyncio.sleep(60)),
            "its lifespan leaves task 'sleep' running",
        ),
    ],
)
def test_what_a_lifespan_does_to_the_process_is_found(start: Callable[[], object], expected: str):
    before, folder = dict(os.environ), Path.cwd()
    assert any(fault.startswith(expected) for fault in faults(starting(start)))
    assert (dict(os.environ), Path.cwd()) == (before, folder)


def test_a_thread_that_is_left_behind_is_found():
    ended, started = threading.Event(), []
    start = threading.Thread(target=ended.wait, name="poller", daemon=True).start
    found = faults(starting(lambda: started.append(start()) if not started else None))
    ended.set()
    assert any("its lifespan leaves thread 'poller' running" in fault for fault in found)


def test_what_is_printed_while_tools_are_registered_or_called_is_found():
    def chatty(_):
        sys.stdout.write("registered")
        return [Tool(name="shout", function=shout, read_only=True)]

    def shout() -> str:
        """Shout something out loud, to whom it may concern."""
        sys.stdout.write("called")
        return "done"

    found = faults(plugin(register_tools=chatty), calls=[("shout", {})])
    assert found[0].startswith("one of its register hooks writes to stdout ('registered')")
    assert found[1].startswith("tool 'shout' writes to stdout ('called')")


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (("sums.add", {"number": -1}), "answers with an error: The number must not be neg"),
        (("sums.add", {"numbr": 1}), "did you mean 'number'?"),
        (("sums.ad", {}), "Unknown tool: sums.ad; did you mean 'sums_add'?"),
    ],
)
def test_calls_that_do_not_succeed_are_found(call: tuple[str, dict[str, Any]], expected: str):
    (found,) = faults(SumsPlugin, calls=[call])
    assert expected in found


@pytest.mark.slow
def test_a_tool_that_blocks_the_loop_is_found_and_one_that_waits_or_imports_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    async def compute() -> str:
        """Compute for half a second without a break."""
        end = time.monotonic() + 0.5
        while time.monotonic() < end:
            pass
        return "done"

    async def wait() -> str:
        """Wait for half a second as one should."""
        await asyncio.sleep(0.5)
        await asyncio.to_thread(time.sleep, 0.3)
        import slow_to_import  # noqa: F401

        return "done"

    (tmp_path / "slow_to_import.py").write_text("import time; time.sleep(0.5)", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)

    (found,) = faults(with_tool(function=compute), calls=[("made", {})])
    assert "(compute)" in found
    check_plugin(with_tool(function=wait), name="made", calls=[("made", {})])


@pytest.mark.parametrize(
    ("check", "expected"),
    [
        (lambda: 1 / 0, "its check_health fails: ZeroDivisionError"),
        (lambda: "fine", "its check_health returns a str; return Health(...)"),
    ],
)
def test_a_health_check_that_does_not_answer_is_found(check: Callable[[], Any], expected: str):
    async def check_health(_):
        return check()

    (found,) = faults(plugin(check_health=check_health))
    assert found.startswith(expected)


# Imports


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], type[Plugin]]:
    """Return a function that writes a module with a plugin and imports it."""

    def write(source: str) -> type[Plugin]:
        text = "from standards_mcp import Plugin\nclass MadePlugin(Plugin):\n    pass\n"
        (tmp_path / "made_plugin.py").write_text(textwrap.dedent(source) + text, encoding="utf-8")
        monkeypatch.syspath_prepend(tmp_path)
        monkeypatch.delitem(sys.modules, "made_plugin", raising=False)
        import made_plugin

        return made_plugin.MadePlugin

    yield write
    sys.modules.pop("made_plugin", None)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("import numpy\n", "its import imports numpy; import it in the function that needs it"),
        ("print('hello')\n", "its import writes to stdout ('hello'); log it or write to"),
        (
            "import os\nos.environ['MADE'] = '1'\n",
            "its import changes the environment variables MADE",
        ),
        (
            "import threading as t\nt.Thread(target=t.Event().wait, daemon=True).start()\n",
            "its import starts a thread",
        ),
        (
            "import time\nend = time.process_time() + 0.3\nwhile time.process_time() < end: pass\n",
            "of CPU time, more than 0.2 s",
        ),
        (
            "import sys\nif 'imports' in sys.argv[0]: raise OSError('alone')\n",
            "importing made_plugin in a fresh interpreter fails: OSError: alone",
        ),
    ],
)
def test_what_an_import_does_is_seen_in_a_fresh_interpreter(
    module: Callable[[str], type[Plugin]],
    monkeypatch: pytest.MonkeyPatch,
    source: str,
    expected: str,
):
    monkeypatch.setenv("MADE", "0")
    monkeypatch.chdir(Path.cwd())
    (found,) = faults(module(source), allow=Allowed(import_seconds=0.2))
    assert expected in found


@pytest.mark.slow
@pytest.mark.measured
def test_a_heavy_import_can_be_allowed(module: Callable[[str], type[Plugin]]):
    allow = Allowed(imports=("numpy",), import_seconds=5)
    check_plugin(module("import numpy\n"), name="made", allow=allow)


@pytest.mark.slow
def test_pytest_gets_the_fixtures_without_an_import_of_anything_heavy():
    program = (
        "import sys, standards_mcp.testing as kit\n"
        "print(*{'mcp', 'pydantic', 'numpy', 'standards_mcp_catalog', 'standards_mcp.host'}"
        ".intersection(sys.modules))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == ""
