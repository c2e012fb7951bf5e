"""Agents and their runs as the server lists them, and what comes of a run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from typing_extensions import TypedDict

from ._wire import known
from .agent_events import AgentEvent, AgentFailure, TokenUsage
from .client_tools import ClientTool
from .errors import RunFailed

#: The state of a run.
RunStatus = Literal["active", "completed", "errored"]


@dataclass(frozen=True)
class AgentInfo:
    """An agent of a server."""

    name: str
    #: Every key may start it. A server without keys starts all.
    webhook: bool
    description: str | None = None
    #: The reason why its runs can't work.
    problem: str | None = None


@dataclass(frozen=True)
class RunInfo:
    """A run of an agent."""

    id: str
    agent: str
    #: The agent's instance. Runs of one instance share its sandbox and its conversations.
    instance: str
    status: RunStatus
    #: The run is active, and its process is gone: `AgentRun.resume` goes on with it.
    interrupted: bool
    #: In milliseconds since 1970 (UTC).
    started_ms: int
    ended_ms: int | None = None
    pool: str | None = None
    #: The name of the sandbox that the agent works in, which is in the run's pool.
    sandbox: str | None = None
    #: The input. Lists leave it out.
    payload: Any = None
    #: What the agent gave, as it is. Lists leave it out.
    result: Any = None
    error: AgentFailure | None = None

    @classmethod
    def of_wire(cls, wire: dict[str, Any]) -> RunInfo:
        """From the server's answer."""
        error = wire.get("error")
        return known(cls, {**wire, "error": known(AgentFailure, error) if error else None})


@dataclass(frozen=True)
class RunPage:
    """Some runs, newest first."""

    runs: list[RunInfo]
    #: What to ask with for those that follow; `None`: there are none.
    next_cursor: str | None

    @classmethod
    def of_wire(cls, wire: dict[str, Any]) -> RunPage:
        """From the server's answer."""
        return cls([RunInfo.of_wire(one) for one in wire["runs"]], wire.get("next_cursor"))


@dataclass(frozen=True)
class AgentResult:
    """The answer of an agent."""

    #: What the agent wrote last; empty if it gave something else.
    text: str
    #: The data that the schema `result` asked for.
    data: Any
    #: The tokens that the run took.
    usage: TokenUsage | None
    #: What the agent gave, as it is.
    value: Any

    @classmethod
    def of_run(cls, run: RunInfo) -> AgentResult:
        """The result of a run that has ended; raises `RunFailed` if it failed."""
        if run.status == "errored":
            raise RunFailed(run)
        if isinstance(run.result, str):
            return cls(run.result, None, None, run.result)
        fields = run.result if isinstance(run.result, dict) else {}
        text, usage = fields.get("text"), fields.get("usage")
        tokens = TokenUsage.of_wire(usage) if isinstance(usage, dict) and "cost" in usage else None
        return cls(text if isinstance(text, str) else "", fields.get("data"), tokens, run.result)


class FollowOptions(TypedDict, total=False):
    """How a run is followed."""

    #: The tools that this program answers.
    tools: Sequence[ClientTool]
    #: Is told the pieces of the agent's text, without those of its tasks. In async code it may be an `async def`.
    on_text: Callable[[str], object]
    #: Is told every event, likewise.
    on_event: Callable[[AgentEvent], object]


class RunOptions(FollowOptions, total=False):
    """The options of a new run."""

    #: The text for an agent that is a file.
    prompt: str
    #: The name of the conversation; by default the instance has one.
    session: str
    #: The JSON Schema of the data that the answer is to have.
    result: Mapping[str, Any]
    #: The whole input instead, as the agent wants it.
    payload: Any
    #: How long the server waits for the answer of a tool, at most an hour; by default 5 minutes. Then the model is told of an
    #: error.
    tool_timeout_ms: int
    #: The pool of the run and its sandbox; by default the client's, else the key's own.
    pool: str
