"""A running command, for async code: its output as it comes, its input, signals, its terminal."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from types import TracebackType

import anyio
from typing_extensions import Self
from websockets.asyncio.connection import Connection
from websockets.exceptions import ConnectionClosed

from . import _exec_socket as wire
from ._content import as_bytes
from ._exec_socket import ExecSocketState, Output
from .exec_result import ExecResult


class AsyncExecStream:
    """A command, which starts with the `async with` block. Iterating gives its output, and ends with the command; then
    `result` is there.

    Leaving the `async with` block, or `close`, before the end kills the command with its whole process tree. One task may write
    while another one reads.
    """

    def __init__(
        self,
        connect: Callable[[], Awaitable[Connection]],
        opening: str | None,
        *,
        keeps_output: bool = True,
        read_timeout_ms: int | None = None,
    ) -> None:
        self._connect = connect
        self._opening = opening
        self._state = self._new_state(keeps_output)
        self._read_timeout_ms = read_timeout_ms
        self._receiving = asyncio.Lock()

    async def __aenter__(self) -> Self:
        self._connection = await self._connect()
        if self._opening is not None:
            await self._send(self._opening)
        return self

    def _new_state(self, keeps_output: bool) -> ExecSocketState:
        return ExecSocketState(keeps_output=keeps_output)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def __aiter__(self) -> AsyncIterator[Output]:
        while (output := await self._next()) is not None:
            yield output

    @property
    def result(self) -> ExecResult | None:
        """What came of the command; `None` while it runs."""
        return self._state.result

    async def wait(self) -> ExecResult:
        """Reads to the end, and says what came of the command. Its text holds what was written, up to the limit."""
        async for _ in self:
            pass
        return self._state.end()

    async def write(self, data: str | bytes) -> None:
        """Gives the command something to read; waits while it does not read. A command that has ended reads nothing."""
        rest = memoryview(as_bytes(data, "write to the command"))
        while rest and await self._await_credit():
            piece = rest[: min(self._state.credit, wire.PIECE_BYTES)]
            self._state.sent += len(piece)
            await self._send(bytes(piece))
            rest = rest[len(piece) :]

    async def close_stdin(self) -> None:
        """The command reads end of file."""
        await self._send(b"")

    async def signal(self, number: int | str) -> None:
        """Sends the command's process group a signal: a name such as `TERM`, or a Linux number."""
        await self._send(wire.signal(number))

    async def resize(self, rows: int, cols: int) -> None:
        """Gives the command's terminal another size."""
        await self._send(wire.resize(rows, cols))

    async def kill(self) -> None:
        """Kills the command with its whole process tree; its outcome is then `cancelled`."""
        await self._send(wire.KILL)

    async def close(self) -> None:
        """Ends the connection, and with it the command, if it still runs."""
        await self._connection.close()
        self._state.broke_off()

    async def _next(self) -> Output | None:
        while True:
            self._state.refused()
            if self._state.waiting:
                return self._state.waiting.popleft()
            if self._state.is_over:
                self._state.end()
                return None
            await self._receive(lambda: bool(self._state.waiting))

    async def _await_credit(self) -> bool:
        while self._state.credit == 0 and not self._state.is_over:
            await self._receive(lambda: self._state.credit > 0)
        return not self._state.is_over

    async def _receive(self, is_there: Callable[[], bool]) -> None:
        """Takes one message, unless another task has meanwhile received what is waited for."""
        async with self._receiving:
            if is_there() or self._state.is_over:
                return
            try:
                with anyio.fail_after(wire.seconds(self._read_timeout_ms)):
                    message = await self._connection.recv()
                self._state.take(message)
            except TimeoutError as error:
                raise wire.silent(self._read_timeout_ms) from error
            except ConnectionClosed:
                self._state.broke_off()

    async def _send(self, message: str | bytes) -> None:
        try:
            await self._connection.send(message)
        except ConnectionClosed:
            # Why is told by what was received before.
            pass
