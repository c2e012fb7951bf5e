"""A running command: its output as it comes, its input, signals, its terminal."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from types import TracebackType

from typing_extensions import Self
from websockets.exceptions import ConnectionClosed
from websockets.sync.connection import Connection

from . import _exec_socket as wire
from ._content import as_bytes
from ._exec_socket import ExecSocketState, Output
from .exec_result import ExecResult


class ExecStream:
    """A running command. Iterating gives its output, and ends with the command; then `result` is there.

    Leaving the `with` block, or `close`, before the end kills the command with its whole process tree. One thread may write
    while another one reads.
    """

    def __init__(
        self,
        connection: Connection,
        opening: str | None,
        *,
        keeps_output: bool = True,
        read_timeout_ms: int | None = None,
    ) -> None:
        self._connection = connection
        self._state = self._new_state(keeps_output)
        self._read_timeout_ms = read_timeout_ms
        self._changed = threading.Condition()
        self._is_receiving = False
        if opening is not None:
            self._send(opening)

    def _new_state(self, keeps_output: bool) -> ExecSocketState:
        return ExecSocketState(keeps_output=keeps_output)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def __iter__(self) -> Iterator[Output]:
        while (output := self._next()) is not None:
            yield output

    @property
    def result(self) -> ExecResult | None:
        """What came of the command; `None` while it runs."""
        return self._state.result

    def wait(self) -> ExecResult:
        """Reads to the end, and says what came of the command. Its text holds what was written, up to the limit."""
        for _ in self:
            pass
        return self._state.end()

    def write(self, data: str | bytes) -> None:
        """Gives the command something to read; waits while it does not read. A command that has ended reads nothing."""
        rest = memoryview(as_bytes(data, "write to the command"))
        while rest and self._await_credit():
            piece = rest[: min(self._state.credit, wire.PIECE_BYTES)]
            self._state.sent += len(piece)
            self._send(bytes(piece))
            rest = rest[len(piece) :]

    def close_stdin(self) -> None:
        """The command reads end of file."""
        self._send(b"")

    def signal(self, number: int | str) -> None:
        """Sends the command's process group a signal: a name such as `TERM`, or a Linux number."""
        self._send(wire.signal(number))

    def resize(self, rows: int, cols: int) -> None:
        """Gives the command's terminal another size."""
        self._send(wire.resize(rows, cols))

    def kill(self) -> None:
        """Kills the command with its whole process tree; its outcome is then `cancelled`."""
        self._send(wire.KILL)

    def close(self) -> None:
        """Ends the connection, and with it the command, if it still runs."""
        self._connection.close()
        self._state.broke_off()

    def _next(self) -> Output | None:
        while True:
            self._state.refused()
            if self._state.waiting:
                return self._state.waiting.popleft()
            if self._state.is_over:
                self._state.end()
                return None
            self._receive(lambda: bool(self._state.waiting))

    def _await_credit(self) -> bool:
        while self._state.credit == 0 and not self._state.is_over:
            self._receive(lambda: self._state.credit > 0)
        return not self._state.is_over

    def _receive(self, is_there: Callable[[], bool]) -> None:
        """Takes one message, unless another thread has meanwhile received what is waited for.

        Who waits is told of every message. With a mere lock the reader could take it again at once, and wait for output of a
        command that waits for input, while the writer waits for the lock, with its credit there.
        """
        with self._changed:
            while self._is_receiving and not is_there() and not self._state.is_over:
                self._changed.wait()
            if is_there() or self._state.is_over:
                return
            self._is_receiving = True
        try:
            self._state.take(self._connection.recv(wire.seconds(self._read_timeout_ms)))
        except TimeoutError as error:
            raise wire.silent(self._read_timeout_ms) from error
        except ConnectionClosed:
            self._state.broke_off()
        finally:
            with self._changed:
                self._is_receiving = False
                self._changed.notify_all()

    def _send(self, message: str | bytes) -> None:
        try:
            self._connection.send(message)
        except ConnectionClosed:
            # Why is told by what was received before.
            pass
