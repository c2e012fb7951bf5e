"""A command that outlives its connection and the server, for async code."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from types import TracebackType

from typing_extensions import Self

from ._events import StreamEvent
from ._exec_socket import Output
from ._kept_events import KeptEvents
from .exec_result import ExecResult


class AsyncKeptCommand:
    """A command that the sandbox keeps, which is read from the beginning of the `async with` block on. Iterating gives its
    output, and ends with the command; then `result` is there.

    Leaving the block, or `close`, only stops reading: the command goes on for its `linger_ms`, and `AsyncSandbox.attach` reads
    on.
    """

    def __init__(
        self,
        events: AbstractAsyncContextManager[AsyncIterator[StreamEvent]],
        kill: Callable[[str], Awaitable[None]],
        command_id: str | None = None,
        after: int = 0,
    ) -> None:
        self._context = events
        self._open = AsyncExitStack()
        self._known = KeptEvents(after)
        self._kill = kill
        #: To attach to it again. It is there within the block.
        self.id = command_id or ""

    async def __aenter__(self) -> Self:
        self._events = await self._open.enter_async_context(self._context)
        try:
            self.id = self.id or (await anext(self._events)).value["exec"]
        except BaseException:
            await self.close()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def __aiter__(self) -> AsyncIterator[Output]:
        async for event in self._events:
            for output in self._known.take(event):
                yield output

    @property
    def last_event(self) -> int:
        """The number of the last event that was read: to attach behind it."""
        return self._known.last_event

    @property
    def result(self) -> ExecResult | None:
        """What came of the command, without its output; `None` while it runs."""
        return self._known.result

    async def wait(self) -> ExecResult:
        """Reads to the end, and says what came of the command. The result has no output: that was read."""
        async for _ in self:
            pass
        return self._known.end()

    async def kill(self) -> None:
        """Kills the command with its whole process tree."""
        await self._kill(self.id)

    async def close(self) -> None:
        """Reads no more."""
        await self._open.aclose()
