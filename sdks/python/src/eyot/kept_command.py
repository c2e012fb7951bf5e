"""A command that outlives its connection and the server."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from types import TracebackType

from typing_extensions import Self

from ._events import StreamEvent
from ._exec_socket import Output
from ._kept_events import KeptEvents
from .exec_result import ExecResult


class KeptCommand:
    """A command that the sandbox keeps. Iterating gives its output, and ends with the command; then `result` is there.

    Leaving the `with` block, or `close`, only stops reading: the command goes on for its `linger_ms`, and `Sandbox.attach`
    reads on.
    """

    def __init__(
        self,
        events: AbstractContextManager[Iterator[StreamEvent]],
        kill: Callable[[str], None],
        command_id: str | None = None,
        after: int = 0,
    ) -> None:
        self._open = ExitStack()
        self._events = self._open.enter_context(events)
        self._known = KeptEvents(after)
        self._kill = kill
        try:
            #: To attach to it again.
            self.id: str = command_id or next(self._events).value["exec"]
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def __iter__(self) -> Iterator[Output]:
        for event in self._events:
            yield from self._known.take(event)

    @property
    def last_event(self) -> int:
        """The number of the last event that was read: to attach behind it."""
        return self._known.last_event

    @property
    def result(self) -> ExecResult | None:
        """What came of the command, without its output; `None` while it runs."""
        return self._known.result

    def wait(self) -> ExecResult:
        """Reads to the end, and says what came of the command. The result has no output: that was read."""
        for _ in self:
            pass
        return self._known.end()

    def kill(self) -> None:
        """Kills the command with its whole process tree."""
        self._kill(self.id)

    def close(self) -> None:
        """Reads no more."""
        self._open.close()
