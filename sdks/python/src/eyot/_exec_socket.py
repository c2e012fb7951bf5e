"""What is said over the WebSocket of a command, apart from how it is sent."""

from __future__ import annotations

import codecs
import json
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from ._arguments import refused, shown, signal_number
from .errors import EyotError, TimedOut, Unavailable, of_problem
from .exec_result import ExecResult

#: How many bytes of standard input may be under way beyond what the server has given back.
STDIN_WINDOW_BYTES = 256 * 1024
#: The largest message of standard input.
PIECE_BYTES = 64 * 1024

_STREAMS: dict[int, Literal["stdout", "stderr"]] = {1: "stdout", 2: "stderr"}


@dataclass(frozen=True)
class Output:
    """Something that a command wrote."""

    #: Where it wrote it.
    type: Literal["stdout", "stderr"]
    data: bytes
    #: The same as text. A character whose bytes come apart is in the text of its last byte's output; what is not UTF-8 becomes
    #: U+FFFD.
    text: str


class TextDecoder:
    """Makes text of the pieces of a command's streams."""

    def __init__(self) -> None:
        new = codecs.getincrementaldecoder("utf-8")
        self._streams = {type: new("replace") for type in _STREAMS.values()}

    def output(self, type: Literal["stdout", "stderr"], data: bytes) -> Output:
        """A piece with its text."""
        return Output(type, data, self._streams[type].decode(data))

    def rest(self) -> Iterator[Output]:
        """At the end: what stands for characters that were never completed."""
        for type, decoder in self._streams.items():
            if text := decoder.decode(b"", final=True):
                yield Output(type, b"", text)


@dataclass
class ExecSocketState:
    """What is known from the messages so far."""

    #: Somebody will take the output; else it is dropped as it comes, and the result has what was kept of it.
    keeps_output: bool = True
    #: Output that nobody has taken yet.
    waiting: deque[Output] = field(default_factory=deque)
    text: TextDecoder = field(default_factory=TextDecoder)
    #: How many bytes of standard input might be sent, ever. Only who receives changes it.
    allowed: int = STDIN_WINDOW_BYTES
    #: How many were. Only who sends changes it.
    sent: int = 0
    result: ExecResult | None = None
    #: Why there will be no result.
    failure: EyotError | None = None
    #: What a control failed with; the command runs on.
    refusal: EyotError | None = None

    @property
    def credit(self) -> int:
        """How many bytes of standard input may be sent now."""
        return self.allowed - self.sent

    @property
    def is_over(self) -> bool:
        """Nothing follows."""
        return self.result is not None or self.failure is not None

    def take(self, message: str | bytes) -> None:
        """Learns from a message of the server."""
        if isinstance(message, bytes):
            if self.keeps_output and message and message[0] in _STREAMS:
                self.waiting.append(self.text.output(_STREAMS[message[0]], message[1:]))
            return
        event = json.loads(message)
        if not isinstance(event, dict):  # `"started"`
            return
        if "credit" in event:
            self.allowed += event["credit"]
        elif "refused" in event:
            self.refusal = of_problem(event["refused"])
        elif "end" in event:
            self.waiting.extend(self.text.rest())
            self.result = ExecResult.of_wire(event["end"])
        elif "problem" in event:
            self.failure = of_problem(event["problem"])

    def broke_off(self) -> None:
        """The connection ended before the command did."""
        if not self.is_over:
            self.failure = Unavailable("exec: the connection to the server broke off; the command was killed")

    def end(self) -> ExecResult:
        """The result of a command that is over."""
        if self.failure is not None:
            raise self.failure
        assert self.result is not None
        return self.result

    def refused(self) -> None:
        """Raises what a control failed with, once."""
        refusal, self.refusal = self.refusal, None
        if refusal is not None:
            raise refusal


class TerminalState(ExecSocketState):
    """The same of a terminal, whose messages have no marks, and whose keys need no credit."""

    @property
    def credit(self) -> int:
        return PIECE_BYTES

    def take(self, message: str | bytes) -> None:
        if isinstance(message, bytes):
            self.waiting.append(self.text.output("stdout", message))
        else:
            super().take(message)

    def broke_off(self) -> None:
        if not self.is_over:
            self.failure = Unavailable("terminal: the connection ended; the terminal goes on, and can be attached to again")


def signal(number: int | str) -> str:
    """Asks for a signal."""
    return json.dumps({"signal": signal_number(number, "signal the command")})


def resize(rows: int, cols: int) -> str:
    """Says how large the terminal is."""
    return json.dumps({"resize": {"rows": rows, "cols": cols}})


KILL = json.dumps("kill")


def opening(body: dict[str, Any], *, stdin: bool, pty: tuple[int, int] | None) -> str:
    """The first message."""
    if not isinstance(stdin, bool):
        raise refused("run a command", "stdin", f"must be True, where `write` follows, or False, not {shown(stdin)}")
    body = dict(body)
    if stdin:
        body["stdin_follows"] = True
    if pty is not None:
        body["pty"] = {"rows": pty[0], "cols": pty[1]}
    return json.dumps(body)


def seconds(timeout_ms: int | None) -> float | None:
    """A deadline as libraries take it."""
    return None if timeout_ms is None else timeout_ms / 1000


def silent(timeout_ms: int | None) -> TimedOut:
    """What reading ends with when nothing comes. The command runs on until its stream is closed."""
    return TimedOut(f"read the command's output: nothing came for {timeout_ms} milliseconds")
