"""A terminal, for async code: what is typed, what it shows, its size."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from websockets.asyncio.connection import Connection

from ._exec_socket import ExecSocketState, TerminalState
from .async_exec_stream import AsyncExecStream


class AsyncTerminal(AsyncExecStream):
    """A terminal, which is attached to with the `async with` block. Iterating gives what it shows, beginning with the last
    256 KiB.

    Leaving the `async with` block, or `close`, lets it go on without a viewer, for 10 minutes; `kill` ends it. Who attaches to
    it takes the place of who was there.
    """

    def __init__(self, connect: Callable[[], Awaitable[Connection]], terminal_id: str) -> None:
        super().__init__(connect, None)
        #: To attach to it again.
        self.id = terminal_id

    def _new_state(self, keeps_output: bool) -> ExecSocketState:
        return TerminalState()
