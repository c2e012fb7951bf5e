"""The events of an agent's run: one class for each kind, which `type` names."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Literal

from ._wire import known

#: An operation of a session.
AgentOperation = Literal["prompt", "skill", "task", "shell", "compact"]


@dataclass(frozen=True)
class TokenCost:
    """The price of tokens, in the unit of the model's prices, usually dollars."""

    input: float
    output: float
    cache_read: float
    cache_write: float
    total: float


@dataclass(frozen=True)
class TokenUsage:
    """The tokens that one or more turns took."""

    #: What the model read, without what came from its cache.
    input: int
    output: int
    cache_read: int
    cache_write: int
    total_tokens: int
    cost: TokenCost

    @classmethod
    def of_wire(cls, wire: dict[str, Any]) -> TokenUsage:
        """From the server's answer."""
        return known(cls, {**_snake_case(wire), "cost": known(TokenCost, _snake_case(wire["cost"]))})


@dataclass(frozen=True)
class AgentFailure:
    """A failure: its kind, and one sentence."""

    #: The kind: `ModelError`, `AbortError`, …
    name: str
    message: str


@dataclass(frozen=True, kw_only=True)
class EventOrigin:
    """The fields that every event has."""

    #: Counts the run's events from 0, without gaps.
    event_index: int
    #: The time, in RFC 3339 with milliseconds.
    timestamp: str
    run_id: str | None = None
    session: str | None = None
    #: The session that gave the task of this one.
    parent_session: str | None = None
    #: The task.
    task_id: str | None = None
    harness: str | None = None
    operation_id: str | None = None


@dataclass(frozen=True, kw_only=True)
class RunStart(EventOrigin):
    """A run began."""

    type: Literal["run_start"]
    instance_id: str
    agent_name: str
    started_at: str
    payload: Any = None


@dataclass(frozen=True, kw_only=True)
class TextDelta(EventOrigin):
    """The model wrote a piece of text."""

    type: Literal["text_delta"]
    text: str


@dataclass(frozen=True, kw_only=True)
class ThinkingStart(EventOrigin):
    """The model began to reason."""

    type: Literal["thinking_start"]


@dataclass(frozen=True, kw_only=True)
class ThinkingDelta(EventOrigin):
    """The model reasoned."""

    type: Literal["thinking_delta"]
    delta: str


@dataclass(frozen=True, kw_only=True)
class ThinkingEnd(EventOrigin):
    """The model ended its reasoning."""

    type: Literal["thinking_end"]
    content: str


@dataclass(frozen=True, kw_only=True)
class ToolStart(EventOrigin):
    """A tool call began. The values of variables are left out of its arguments."""

    type: Literal["tool_start"]
    tool_name: str
    tool_call_id: str
    args: Any = None


@dataclass(frozen=True, kw_only=True)
class ToolCall(EventOrigin):
    """A tool call ended."""

    type: Literal["tool_call"]
    tool_name: str
    tool_call_id: str
    is_error: bool
    duration_ms: int
    result: Any = None


@dataclass(frozen=True, kw_only=True)
class Turn(EventOrigin):
    """A turn of the model ended, with its tool calls."""

    type: Literal["turn"]
    duration_ms: int
    is_error: bool
    model: str | None = None
    usage: TokenUsage | None = None
    #: `stop`, `length`, `toolUse`, `refusal`, `error` or `aborted`.
    stop_reason: str | None = None
    error: str | None = None


@dataclass(frozen=True, kw_only=True)
class TaskStart(EventOrigin):
    """Work was given to a session of its own; `role` is the subagent."""

    type: Literal["task_start"]
    prompt: str
    role: str | None = None
    cwd: str | None = None


@dataclass(frozen=True, kw_only=True)
class Task(EventOrigin):
    """A task ended."""

    type: Literal["task"]
    is_error: bool
    duration_ms: int
    result: str | None = None


@dataclass(frozen=True, kw_only=True)
class CompactionStart(EventOrigin):
    """The older part of a conversation is about to be replaced by a summary."""

    type: Literal["compaction_start"]
    #: `threshold`, `overflow` or `manual`.
    reason: str
    estimated_tokens: int


@dataclass(frozen=True, kw_only=True)
class Compaction(EventOrigin):
    """The older part of a conversation was replaced by a summary."""

    type: Literal["compaction"]
    messages_before: int
    messages_after: int
    duration_ms: int
    usage: TokenUsage | None = None


@dataclass(frozen=True, kw_only=True)
class OperationStart(EventOrigin):
    """An operation of a session began."""

    type: Literal["operation_start"]
    operation_kind: AgentOperation


@dataclass(frozen=True, kw_only=True)
class Operation(EventOrigin):
    """An operation of a session ended."""

    type: Literal["operation"]
    operation_kind: AgentOperation
    duration_ms: int
    is_error: bool
    error: AgentFailure | None = None
    result: Any = None
    usage: TokenUsage | None = None


@dataclass(frozen=True, kw_only=True)
class Log(EventOrigin):
    """A line of the log."""

    type: Literal["log"]
    level: Literal["info", "warn", "error"]
    message: str
    attributes: dict[str, Any] | None = None


@dataclass(frozen=True, kw_only=True)
class Idle(EventOrigin):
    """A session has finished its operation."""

    type: Literal["idle"]


@dataclass(frozen=True, kw_only=True)
class RunEnd(EventOrigin):
    """A run ended. The server cuts a result that is too long for an event; `AgentRun.result` has it whole."""

    type: Literal["run_end"]
    is_error: bool
    duration_ms: int
    result: Any = None
    error: AgentFailure | None = None


#: An event of a run. Its `type` tells which fields it has.
AgentEvent = (
    RunStart | TextDelta | ThinkingStart | ThinkingDelta | ThinkingEnd | ToolStart | ToolCall | Turn | TaskStart | Task
    | CompactionStart | Compaction | OperationStart | Operation | Log | Idle | RunEnd
)  # fmt: skip

_KINDS: dict[str, type[AgentEvent]] = {
    "run_start": RunStart,
    "text_delta": TextDelta,
    "thinking_start": ThinkingStart,
    "thinking_delta": ThinkingDelta,
    "thinking_end": ThinkingEnd,
    "tool_start": ToolStart,
    "tool_call": ToolCall,
    "turn": Turn,
    "task_start": TaskStart,
    "task": Task,
    "compaction_start": CompactionStart,
    "compaction": Compaction,
    "operation_start": OperationStart,
    "operation": Operation,
    "log": Log,
    "idle": Idle,
    "run_end": RunEnd,
}


def agent_event(wire: dict[str, Any]) -> AgentEvent | None:
    """An event from the wire; `None`: its kind is not known here, so that a newer server does no harm."""
    kind = _KINDS.get(wire["type"])
    if kind is None:
        return None
    fields = _snake_case(wire)
    if fields.get("usage") is not None:
        fields["usage"] = TokenUsage.of_wire(fields["usage"])
    if isinstance(fields.get("error"), dict):
        fields["error"] = known(AgentFailure, fields["error"])
    return known(kind, fields)


def _snake_case(wire: dict[str, Any]) -> dict[str, Any]:
    """The same with our names. What is in the fields has names of the user's, and keeps them."""
    return {re.sub("[A-Z]", lambda letter: f"_{letter.group().lower()}", name): value for name, value in wire.items()}
