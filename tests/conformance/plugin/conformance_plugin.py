"""The tools, prompts and resources that the conformance suite wants to find, by their names."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import anyio
from pydantic import BaseModel, Field

from standards_mcp import (
    CallContext,
    CannotAskError,
    Message,
    Plugin,
    Prompt,
    Tool,
    ToolResult,
    hookimpl,
    prompt,
    resource,
    skill,
    tool,
)

PNG = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5Erk"
    "Jggg=="
)
WAV = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA="
IMAGE = {"type": "image", "data": PNG, "mimeType": "image/png"}
PAUSE = 0.05


def embedded(uri: str, mime_type: str, text: str) -> dict[str, Any]:
    return {"type": "resource", "resource": {"uri": uri, "mimeType": mime_type, "text": text}}


def titled(**options: str) -> list[dict[str, str]]:
    return [{"const": value, "title": title} for value, title in options.items()]


class Name(BaseModel):
    name: str


class Color(BaseModel):
    color: str


class About(BaseModel):
    context: str


class Confirmation(BaseModel):
    ok: bool


class User(BaseModel):
    username: str = Field(description="User's response")
    email: str = Field(description="User's email address")


class Defaults(BaseModel):
    """A default for each kind of field."""

    name: str = "John Doe"
    age: int = 30
    score: float = 95.5
    status: Literal["active", "inactive", "pending"] = "active"
    verified: bool = True


class Choices(BaseModel):
    """Each way to offer choices."""

    untitledSingle: Literal["option1", "option2", "option3"]  # noqa: N815  - the suite's spelling
    titledSingle: str = Field(  # noqa: N815
        json_schema_extra={"oneOf": titled(value1="First Option", value2="Second Option")}
    )
    legacyEnum: str = Field(  # noqa: N815
        json_schema_extra={"enum": ["opt1", "opt2"], "enumNames": ["Option One", "Option Two"]}
    )
    untitledMulti: list[Literal["option1", "option2", "option3"]]  # noqa: N815
    titledMulti: list[str] = Field(  # noqa: N815
        json_schema_extra={"items": {"anyOf": titled(value1="First Choice", value2="Second")}}
    )


CONTENTS: dict[str, tuple[dict[str, Any], ...]] = {
    "test_image_content": (IMAGE,),
    "test_audio_content": ({"type": "audio", "data": WAV, "mimeType": "audio/wav"},),
    "test_embedded_resource": (
        embedded("test://embedded-resource", "text/plain", "This is an embedded resource content."),
    ),
    "test_multiple_content_types": (
        {"type": "text", "text": "Multiple content types test:"},
        IMAGE,
        embedded(
            "test://mixed-content-resource", "application/json", '{"test":"data","value":123}'
        ),
    ),
}


def showing(blocks: tuple[dict[str, Any], ...]) -> Callable[[], ToolResult]:
    def show() -> ToolResult:
        return ToolResult(text="", content=blocks)

    return show


async def ask_name(call: CallContext) -> str:
    """Ask the user for a name."""
    return f"Hello, {await call.ask('What is your name?', Name, key='user_name')}!"


async def confirm(call: CallContext) -> str:
    """Ask the user to confirm."""
    await call.ask("Please confirm", Confirmation)
    return "state-ok"


async def ask_model(call: CallContext) -> str:
    """Ask the client's model."""
    return await call.sample("What is the capital of France?", max_tokens=100)


async def log(call: CallContext) -> str:
    """Write to the client's log."""
    for line in ("started", "processing data", "completed"):
        await call.log(f"Tool execution {line}")
        await anyio.sleep(PAUSE)
    return "done"


SEVERAL: dict[str, Callable[..., Any]] = {
    "test_streaming_elicitation": ask_name,
    "test_input_required_result_elicitation": ask_name,
    "test_input_required_result_request_state": confirm,
    "test_input_required_result_tampered_state": confirm,
    "test_missing_capability": ask_model,
    "test_input_required_result_sampling": ask_model,
    "test_logging_tool": log,
    "test_tool_with_logging": log,
}


class ConformancePlugin(Plugin):
    """Answers as the scenarios of the suite say."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._more: list[str] = []

    @tool(read_only=True)
    def test_simple_text(self) -> str:
        """Return a text."""
        return "This is a simple text response for testing."

    @tool(read_only=True)
    def test_error_handling(self) -> str:
        """Fail."""
        raise ValueError("This tool intentionally returns an error for testing")

    # During a call

    @tool(read_only=True)
    async def test_tool_with_progress(self, call: CallContext) -> str:
        """Tell how far it is."""
        for done in (0, 50, 100):
            await call.report_progress(done, 100)
            await anyio.sleep(PAUSE)
        return "done"

    @tool(read_only=True)
    async def test_elicitation(self, message: str, call: CallContext) -> str:
        """Ask the user for a name and an address."""
        return f"User response: {await call.ask(message, User)}"

    @tool(read_only=True)
    async def test_elicitation_sep1034_defaults(self, call: CallContext) -> str:
        """Ask the user by a form with defaults."""
        answer = await call.ask("Look at the values.", Defaults)
        return f"Elicitation completed: {answer}"

    @tool(read_only=True)
    async def test_elicitation_sep1330_enums(self, call: CallContext) -> str:
        """Ask the user by a form with choices."""
        return f"Elicitation completed: {await call.ask('Choose.', Choices)}"

    @tool(read_only=True)
    async def test_sampling(self, prompt: str, call: CallContext) -> str:
        """Ask the client's model."""
        return f"LLM response: {await call.sample(prompt, max_tokens=100)}"

    @tool(read_only=True)
    async def test_input_required_result_list_roots(self, call: CallContext) -> str:
        """Ask where the user works."""
        return f"{len(await call.roots())} roots"

    @tool(read_only=True)
    async def test_input_required_result_multiple_inputs(self, call: CallContext) -> str:
        """Ask the user, the model and the client at the same time."""
        answers = await asyncio.gather(
            call.ask("What is your name?", Name),
            call.sample("Generate a greeting", max_tokens=50),
            call.roots(),
        )
        return f"All inputs: {answers}"

    @tool(read_only=True)
    async def test_input_required_result_capabilities(self, call: CallContext) -> str:
        """Ask the user, or the client's model where the user cannot be asked."""
        try:
            return f"Hello, {await call.ask('What is your name?', Name)}!"
        except CannotAskError:
            return await call.sample("Say hello")

    @tool(read_only=True)
    async def test_input_required_result_multi_round(self, call: CallContext) -> str:
        """Ask the user two things, one after the other."""
        name = await call.ask("Step 1: What is your name?", Name)
        color = await call.ask("Step 2: What is your favorite color?", Color)
        return f"{name} likes {color}."

    @prompt
    async def test_input_required_result_prompt(self, call: CallContext) -> str:
        """Ask the user for what it is about."""
        return f"About: {await call.ask('What context should the prompt use?', About)}"

    # Changes

    @hookimpl
    def register_tools(self) -> Iterator[Tool]:
        for name in self._more:
            yield Tool(name=name, description="One more.", function=lambda: "more")
        for name, blocks in CONTENTS.items():
            yield Tool(name=name, description="Show.", function=showing(blocks), read_only=True)
        for name in ("test_trigger_tool_change", "test_trigger_prompt_change"):
            yield Tool(name=name, function=self.change)
        for name, function in SEVERAL.items():
            yield Tool(name=name, function=function, read_only=True)

    @hookimpl
    def register_prompts(self) -> list[Prompt]:
        return [
            Prompt(name=name, description="One more.", function=lambda: "more")
            for name in self._more
        ]

    def change(self) -> str:
        """Add a tool and a prompt, or take them away."""
        self._more = [] if self._more else ["test_one_more"]
        self.context.contributions_changed()
        return "changed"

    @tool(read_only=True)
    def test_x_mcp_header(
        self, region: Annotated[str, Field(json_schema_extra={"x-mcp-header": "Region"})] = "none"
    ) -> str:
        """Return an argument that a header repeats."""
        return f"region={region}"

    # Prompts

    @prompt
    def test_simple_prompt(self) -> str:
        """Say something."""
        return "This is a simple prompt for testing."

    @staticmethod
    def first_values(typed: str, others: Mapping[str, str]) -> list[str]:
        del others
        return [each for each in ("paris", "park", "party") if each.startswith(typed)]

    @prompt(complete={"arg1": first_values.__func__})
    def test_prompt_with_arguments(self, arg1: str, arg2: str) -> str:
        """Say two things."""
        return f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"

    @prompt
    def test_prompt_with_embedded_resource(self, resourceUri: str) -> list[Message]:  # noqa: N803
        """Show a resource."""
        text = "Embedded resource content for testing."
        return [
            Message(content=embedded(resourceUri, "text/plain", text)),
            Message("Please process the embedded resource above."),
        ]

    @prompt
    def test_prompt_with_image(self) -> list[Message]:
        """Show an image."""
        return [Message(content=IMAGE), Message("Please analyze the image above.")]

    # Resources

    @resource("test://static-text", mime_type="text/plain")
    def static_text(self) -> str:
        """Hold a text."""
        return "This is the content of the static text resource."

    @resource("test://static-binary", mime_type="image/png")
    def static_binary(self) -> bytes:
        """Hold an image."""
        return base64.b64decode(PNG)

    @resource("test://watched-resource", mime_type="text/plain")
    def watched(self) -> str:
        """Hold a text that may change."""
        return "Watched resource content"

    @resource("test://template/{id}/data", mime_type="application/json")
    def templated(self, id: str) -> dict[str, Any]:  # noqa: A002  - the suite's spelling
        """Hold data by an id."""
        return {"id": id, "templateTest": True, "data": f"Data for ID: {id}"}

    # Skills

    @skill
    def filled_folder(self) -> Path:
        """Return a folder with folders, as plugins have it in their package."""
        folder = self.context.state_dir / "read-the-map"
        (folder / "maps" / "cities").mkdir(parents=True, exist_ok=True)
        front_matter = "name: read-the-map\ndescription: Reads maps.\nmetadata: {kind: test}"
        (folder / "SKILL.md").write_text(f"---\n{front_matter}\n---\nRead `maps`.\n")
        (folder / "maps" / "cities" / "ulm.md").write_text("North is up.\n")
        (folder / "maps" / "key.png").write_bytes(base64.b64decode(PNG))
        return folder
