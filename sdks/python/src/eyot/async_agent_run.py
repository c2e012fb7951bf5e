"""A run of an agent: its events as they come, its tools, and what comes of it; for async code."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, suppress
from typing import TYPE_CHECKING, TypeVar

from typing_extensions import Unpack

from ._call import Call
from ._calls import agents as calls
from ._events import StreamEvent
from ._keywords import checked_options
from ._patience import Patience, broke_off
from ._run_state import Place, RunState, ToolWork, follow_options, refusal_of
from .agent_events import AgentEvent
from .client_tools import ToolCallAnswer, answer_of, answer_of_failure, call
from .errors import EyotError, RunFailed, Unavailable
from .runs import AgentResult, FollowOptions, RunInfo, RunOptions

if TYPE_CHECKING:
    from .async_client import AsyncClient

T = TypeVar("T")


class AsyncAgentRun:
    """A run of an agent. It is followed while it is read, by a loop or by `result`: then tools are called, each in a task of
    its own, and what comes is told. A connection that breaks off is made again, behind what was read. Leaving the loop ends
    nothing: the next loop goes on behind the last event. Cancelling a task that waits here cancels the calls of tools and ends
    following, and not the run: that does `abort`.
    """

    def __init__(self, client: AsyncClient, info: RunInfo, options: FollowOptions, last_event_id: int | None = None) -> None:
        self._client = client
        self._state = RunState(info, options, last_event_id)
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def id(self) -> str:
        """The id, to come back to the run."""
        return self.info.id

    @property
    def info(self) -> RunInfo:
        """The last known state; `refresh` asks again."""
        return self._state.info

    @property
    def last_event_id(self) -> int | None:
        """The number of the last event that was read."""
        return self._state.last_event_id

    async def __aiter__(self) -> AsyncGenerator[AgentEvent, None]:
        """The events, as they come, to the last one. A loop whose body takes long holds up the calls of tools."""
        if self._state.is_read:
            return
        async with aclosing(self._followed()) as followed:
            async for told in followed:
                if told.name == "tool_request":
                    self._begin_call(self._state.take_call(told.value))
                    continue
                event, hearers = self._state.take_event(told.value)
                for tell in hearers:
                    if inspect.isawaitable(answer := tell()):
                        await answer
                if event is None:
                    continue
                if event.type == "run_end":
                    self._finish()
                yield event
                if event.type == "run_end":
                    return

    async def result(self) -> AgentResult:
        """Waits for its end, reading what is left to read. A run that failed raises `RunFailed`. An interrupted one goes on
        when somebody resumes it.
        """
        if self._state.wants_reading:
            async for _ in self:
                pass
        if self.info.status == "active":
            self._state.info = await self._patiently(lambda: calls.run(self.id))
        self._finish()
        return AgentResult.of_run(self.info)

    async def refresh(self) -> RunInfo:
        """Asks how it is."""
        self._state.info = await self._client._send(calls.run(self.id))
        return self.info

    async def abort(self, reason: str | None = None) -> None:
        """Ends its work; then it fails with `AbortError` and this reason. One that has ended is left as it is."""
        await self._client._send(calls.abort(self.id, reason))

    async def resume(self) -> None:
        """Has the server go on with it, if it was interrupted: `Conflict` if not. A server does so with its own runs when it
        starts.
        """
        self._state.info = await self._client._send(calls.resume(self.id))

    async def go_on(self, **options: Unpack[RunOptions]) -> AsyncAgentRun:
        """Goes on with the conversation: begins the next run of the same agent, instance and session, with the same tools
        unless others are given. A run that was interrupted is resumed, and ends before that; without a prompt it is all that
        is done.
        """
        options = checked_options("go_on", options, RunOptions)
        info = await self.refresh()
        asks_more = self._state.check_go_on(options)
        if info.interrupted:
            await self.resume()
            following: FollowOptions = {**self._state.options, **follow_options(options)}
            resumed = AsyncAgentRun(self._client, self.info, following, self.last_event_id)
            if not asks_more:
                return resumed
            # One that fails is over, too, and its conversation is there.
            with suppress(RunFailed):
                await resumed.result()
        return await self._client.agents.run(info.agent, info.instance, **self._state.next_options(options))

    async def _followed(self) -> AsyncGenerator[StreamEvent, None]:
        place = Place(self.last_event_id)
        try:
            while True:
                lost = broke_off()
                try:
                    async with self._client._numbered_events(calls.stream(self.id, place.last)) as events:
                        place.patience.opened()
                        async for event in events:
                            if place.is_new(event):
                                yield event
                except Unavailable as error:
                    lost = error
                await asyncio.sleep(place.patience.next_wait_s(lost))
        except asyncio.CancelledError:
            self._cancel_calls()
            raise

    def _begin_call(self, work: ToolWork | None) -> None:
        if work is not None:
            task = asyncio.create_task(self._work(work), name=f"eyot-tool-{work.tool.name}")
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    def _cancel_calls(self) -> None:
        self._state.cancel_calls()
        for task in self._tasks:
            task.cancel()

    def _finish(self) -> None:
        self._state.finish()
        self._cancel_calls()

    async def _work(self, work: ToolWork) -> None:
        is_answered = False
        try:
            await self._answer(work, await _answer_of(work))
            is_answered = True
        finally:
            self._state.end_call(work, is_answered=is_answered)

    async def _answer(self, work: ToolWork, answer: ToolCallAnswer) -> None:
        try:
            await self._patiently(lambda: calls.answer(self.id, work.context.tool_call_id, answer))
        except EyotError as error:
            refusal = refusal_of(error)
            if refusal is not None:
                with suppress(EyotError):
                    await self._client._send(calls.answer(self.id, work.context.tool_call_id, refusal))
            # Else nobody waits for it, or the server can't be reached: at the deadline the model is told.

    async def _patiently(self, make: Callable[[], Call[T]]) -> T:
        """Sends what may be sent twice, again and again while the server can't be reached."""
        patience = Patience()
        while True:
            try:
                return await self._client._send(make())
            except Unavailable as error:
                await asyncio.sleep(patience.next_wait_s(error))


async def _answer_of(work: ToolWork) -> ToolCallAnswer:
    try:
        if inspect.iscoroutinefunction(work.tool.execute):
            value = call(work.tool, work.arguments, work.context)
        else:
            value = await asyncio.to_thread(call, work.tool, work.arguments, work.context)
        return answer_of(await value if inspect.isawaitable(value) else value)
    except Exception as error:
        return answer_of_failure(error)
