"""Tools of one's own for an agent: the server asks for their results, and this client calls them."""

from __future__ import annotations

import inspect
import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class ToolCallContext:
    """The call that a tool is to answer."""

    #: The id of the call, as in the events `tool_start` and `tool_call`.
    tool_call_id: str
    #: The time by which the server wants the answer, in milliseconds since 1970, by its clock.
    deadline_ms: int
    #: Set when nobody waits for the answer any more: the run has ended, or is no longer followed.
    cancelled: threading.Event = field(default_factory=threading.Event, repr=False, compare=False)


@dataclass(frozen=True)
class ClientTool:
    """A tool that this program defines, and answers."""

    #: At most 64 letters, digits, `_` and `-`. No tool of the agent has it.
    name: str
    #: What the model is told about it.
    description: str
    #: The JSON Schema of its arguments; its `type` is `object`.
    parameters: Mapping[str, Any]
    #: Does the work: is given the arguments as a dict, and if it takes a second parameter the `ToolCallContext`. A text is for
    #: the model as it is, anything else as JSON. What is raised is told to the model, as an error. Calls of one turn run at the
    #: same time, in threads; in async code those of an `async def` run in the loop.
    execute: Callable[..., object]


@dataclass(frozen=True)
class ToolCallAnswer:
    """The declaration for the server."""

    content: str
    is_error: bool = False


def call(tool: ClientTool, arguments: Any, context: ToolCallContext) -> object:
    """Calls the tool. The result may have to be awaited."""
    return tool.execute(arguments, context) if _takes_context(tool.execute) else tool.execute(arguments)


def answer_of(value: object) -> ToolCallAnswer:
    """The answer of a tool that returned this."""
    return ToolCallAnswer(value if isinstance(value, str) else json.dumps(value))


def answer_of_failure(error: BaseException) -> ToolCallAnswer:
    """The answer of a tool that raised this."""
    return ToolCallAnswer(str(error) or type(error).__name__, is_error=True)


def _takes_context(execute: Callable[..., object]) -> bool:
    try:
        parameters = inspect.signature(execute).parameters.values()
    except ValueError:  # It is built in, and does not say.
        return False
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return len([one for one in parameters if one.kind in positional and one.default is inspect.Parameter.empty]) > 1
