"""The state of a run that is followed, apart from how it is read."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ._events import StreamEvent
from ._patience import Patience
from .agent_events import AgentEvent, agent_event
from .client_tools import ClientTool, ToolCallAnswer, ToolCallContext
from .errors import EyotError, Invalid, TooLarge
from .runs import FollowOptions, RunInfo, RunOptions


@dataclass(frozen=True)
class ToolWork:
    """A call of one of this program's tools."""

    tool: ClientTool
    arguments: Any
    context: ToolCallContext

    @property
    def key(self) -> tuple[str, int]:
        """Tells it from others. An id alone is not enough: some models use theirs again."""
        return self.context.tool_call_id, self.context.deadline_ms


class Place:
    """How far a stream was read."""

    def __init__(self, last: int | None) -> None:
        self.last = last
        self.patience = Patience()

    def is_new(self, event: StreamEvent) -> bool:
        """True if an event did not come before. Those without a number may come again."""
        if event.number is None:
            return True
        if self.last is not None and event.number <= self.last:
            return False
        self.last = event.number
        self.patience.reset()
        return True


class RunState:
    """The known state of a run. Threads may share it."""

    def __init__(self, info: RunInfo, options: FollowOptions, last_event_id: int | None) -> None:
        self.info = info
        self.options = options
        self.tools: Sequence[ClientTool] = options.get("tools", ())
        self.last_event_id = last_event_id
        #: Its last event was read.
        self.is_read = False
        self._begun: set[tuple[str, int]] = set()
        self._working: dict[tuple[str, int], ToolWork] = {}
        self._lock = threading.Lock()

    @property
    def wants_reading(self) -> bool:
        """True if there is something to read before the result."""
        return not self.is_read and (self.info.status == "active" or "on_text" in self.options or "on_event" in self.options)

    def take_call(self, request: dict[str, Any]) -> ToolWork | None:
        """A call that is to begin, unless it was begun, or its tool is another program's."""
        tool = next((tool for tool in self.tools if tool.name == request["tool"]), None)
        if tool is None:
            return None
        work = ToolWork(tool, request["arguments"], ToolCallContext(request["id"], request["deadline_ms"]))
        with self._lock:
            if work.key in self._begun or self.is_read:
                return None
            self._begun.add(work.key)
            self._working[work.key] = work
        return work

    def end_call(self, work: ToolWork, *, is_answered: bool = True) -> None:
        """A call that has ended; one without an answer may begin again."""
        with self._lock:
            self._working.pop(work.key, None)
            if not is_answered:
                self._begun.discard(work.key)

    def cancel_calls(self) -> None:
        """Nobody waits for them any more."""
        with self._lock:
            for work in self._working.values():
                work.context.cancelled.set()

    def take_event(self, value: dict[str, Any]) -> tuple[AgentEvent | None, list[Callable[[], object]]]:
        """An event, and whom to tell of it: of two loops at once the one that is ahead does."""
        index, event = int(value["eventIndex"]), agent_event(value)
        with self._lock:
            is_new = self.last_event_id is None or index > self.last_event_id
            if is_new:
                self.last_event_id = index
        return event, list(self._told(event)) if is_new and event is not None else []

    def _told(self, event: AgentEvent) -> Iterator[Callable[[], object]]:
        on_event, on_text = self.options.get("on_event"), self.options.get("on_text")
        if on_event is not None:
            yield lambda: on_event(event)
        if on_text is not None and event.type == "text_delta" and event.task_id is None:
            text = event.text
            yield lambda: on_text(text)

    def finish(self) -> None:
        """It has ended: nobody waits for its tools."""
        self.is_read = True
        self.cancel_calls()

    def next_options(self, options: RunOptions) -> RunOptions:
        """The options of the run behind this one: it has the same tools, pool and conversation, unless it says."""
        next_run: RunOptions = {"tools": self.tools}
        if self.info.pool is not None:
            next_run["pool"] = self.info.pool
        payload = self.info.payload
        if "payload" not in options and isinstance(payload, dict) and isinstance(payload.get("session"), str):
            next_run["session"] = payload["session"]
        return {**next_run, **options}

    def check_go_on(self, options: RunOptions) -> bool:
        """True if another run is asked for, not only the end of this one."""
        asks_more = "prompt" in options or "payload" in options
        if not asks_more and not self.info.interrupted:
            message = f"go on with run `{self.info.id}`: it was not interrupted, so the next run needs a prompt"
            raise Invalid(message, field="prompt")
        return asks_more


def refusal_of(error: EyotError) -> ToolCallAnswer | None:
    """The text for the model where the server did not want an answer itself, such as one that is too large."""
    if isinstance(error, TooLarge | Invalid):
        return ToolCallAnswer(f"its answer can't be sent: {error}", is_error=True)
    return None


def follow_options(options: RunOptions) -> FollowOptions:
    """Those of a run's options that are about following it."""
    following: FollowOptions = {}
    if "tools" in options:
        following["tools"] = options["tools"]
    if "on_text" in options:
        following["on_text"] = options["on_text"]
    if "on_event" in options:
        following["on_event"] = options["on_event"]
    return following
