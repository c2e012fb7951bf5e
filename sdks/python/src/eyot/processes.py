"""What is told of started processes, of their logs, and of what a sandbox uses."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import Any, Literal

from ._exec_socket import TextDecoder
from ._wire import known
from .exec_result import Outcome

LogStream = Literal["stdout", "stderr"]


@dataclass(frozen=True)
class ProcessInfo:
    """A started process."""

    #: Such as `p1`; never used twice in a sandbox.
    id: str
    #: Its process number inside the sandbox.
    pid: int
    #: What was started, as text.
    command: str
    #: How it ended; `None` while it runs.
    ended: Outcome | None
    #: When it was started, in milliseconds since 1970 (UTC).
    started_ms: int
    #: When it ended.
    ended_ms: int | None
    #: It had not ended at its deadline, and was killed.
    timed_out: bool = False

    @property
    def is_running(self) -> bool:
        """It has not ended."""
        return self.ended is None

    @classmethod
    def of_wire(cls, wire: dict[str, Any]) -> ProcessInfo:
        """From the server's answer."""
        status = wire["status"]
        ended = None if status == "running" else Outcome.of_wire(status["ended"])
        return cls(
            wire["id"], wire["pid"], wire["command"], ended, wire["started_ms"], wire.get("ended_ms"),
            wire.get("timed_out", False),
        )  # fmt: skip


@dataclass(frozen=True)
class TerminalInfo:
    """A terminal that can be attached to."""

    id: str
    #: When it was opened, in milliseconds since 1970 (UTC).
    started_ms: int
    #: Somebody is attached to it.
    attached: bool
    #: What runs in it; `None`: a shell.
    command: str | None = None


@dataclass(frozen=True)
class LiveProcess:
    """A process that runs in a sandbox, whoever started it."""

    #: Its process number inside the sandbox.
    pid: int
    parent_pid: int
    user: str
    #: By the kernel's letter: `R` runs, `S` and `D` wait, `T` is stopped, `Z` has ended.
    state: str
    #: Its command line, cut to 512 bytes, or its name in brackets.
    command: str
    #: The processor time so far; `None` if the backend does not count it by process.
    cpu_ms: int | None = None
    #: The resident memory; `None` if the backend does not count it by process.
    memory_bytes: int | None = None


@dataclass(frozen=True)
class LiveProcesses:
    """Everything that runs in a sandbox."""

    #: By number.
    processes: list[LiveProcess]
    #: There were more.
    truncated: bool

    @classmethod
    def of_wire(cls, wire: dict[str, Any]) -> LiveProcesses:
        """From the server's answer."""
        return cls([known(LiveProcess, one) for one in wire["processes"]], wire["truncated"])


@dataclass(frozen=True)
class LogChunk:
    """A piece of a process's log."""

    stream: LogStream
    #: Where it begins, over both streams.
    offset: int
    #: Where it begins in its own stream; where that jumps, what lies between is not kept any more.
    stream_offset: int
    data: bytes
    #: The same as text. A character whose bytes come apart is in the text of its last byte's piece.
    text: str

    @classmethod
    def of_wire(cls, wire: dict[str, Any], texts: TextDecoder) -> LogChunk:
        """From the server's event, behind those whose texts were made before."""
        output = texts.output(wire["stream"], base64.b64decode(wire["data"]))
        return cls(wire["stream"], wire["offset"], wire["stream_offset"], output.data, output.text)


@dataclass(frozen=True)
class Usage:
    """What a sandbox uses now; absent is what the backend can't tell."""

    #: Live processes.
    processes: int | None = None
    memory_bytes: int | None = None
    #: The most that there was at once.
    memory_peak_bytes: int | None = None
    #: Processor time so far.
    cpu_ms: int | None = None
    #: What the sandbox wrote to disk.
    disk_bytes: int | None = None
    #: Since the sandbox was made.
    uptime_ms: int | None = None
    #: Since the last activity.
    idle_ms: int | None = None
