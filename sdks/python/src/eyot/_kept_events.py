"""What is told of a kept command, apart from how it is sent."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Literal, cast

from ._events import StreamEvent
from ._exec_socket import Output, TextDecoder
from .errors import Unavailable
from .exec_result import ExecResult


class KeptEvents:
    """What is known from the events so far."""

    def __init__(self, after: int) -> None:
        #: The number of the last event that came: to attach behind it.
        self.last_event = after
        self.result: ExecResult | None = None
        self._texts = TextDecoder()

    def take(self, event: StreamEvent) -> Iterator[Output]:
        """What a command wrote, by an event."""
        self.last_event = event.number or self.last_event
        if event.name in ("stdout", "stderr"):
            type = cast(Literal["stdout", "stderr"], event.name)
            yield self._texts.output(type, base64.b64decode(event.value["data"]))
        elif event.name == "end":
            yield from self._texts.rest()
            self.result = ExecResult.of_wire(event.value)

    def end(self) -> ExecResult:
        """The result of a command that is over."""
        if self.result is None:
            raise Unavailable("exec: the stream ended before the command; it goes on, and can be attached to again")
        return self.result
