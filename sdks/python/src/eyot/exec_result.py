"""What came of a command."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import Any, Literal

from .errors import CommandFailed

#: How much of what a command wrote last is told by an error.
_LAST_WORDS = 2_000

OutcomeKind = Literal["exited", "signaled", "timed_out", "cancelled", "out_of_memory"]


@dataclass(frozen=True)
class Outcome:
    """How a command ended. `code` is there when it exited, `signal` when one killed it."""

    kind: OutcomeKind
    code: int | None = None
    signal: int | None = None

    def __str__(self) -> str:
        texts = {
            "exited": f"exited with {self.code}",
            "signaled": f"was killed by signal {self.signal}",
            "timed_out": "timed out",
            "cancelled": "was cancelled",
            "out_of_memory": "ran out of memory",
        }
        return texts.get(self.kind, self.kind)

    @classmethod
    def of_wire(cls, wire: str | dict[str, int]) -> Outcome:
        """From `{"exited": 0}`, `{"signaled": 9}`, or a word."""
        if isinstance(wire, dict):
            return cls("exited", code=wire["exited"]) if "exited" in wire else cls("signaled", signal=wire["signaled"])
        return cls(wire)  # type: ignore[arg-type]


@dataclass(frozen=True)
class ExecResult:
    """What a command wrote, and how it ended. A command that fails is a result, not an error."""

    #: How it ended.
    outcome: Outcome
    #: The same in one number: the code, 128 + signal, 124 for the deadline, 130 for a cancel, 137 for out of memory.
    exit_code: int
    #: Standard output as text, up to the limit; what is not UTF-8 becomes U+FFFD.
    stdout: str
    #: Standard error as text, up to the limit, with a sentence where the deadline has passed.
    stderr: str
    #: Standard output, byte for byte.
    stdout_raw: bytes
    #: Standard error, byte for byte.
    stderr_raw: bytes
    #: How many bytes it wrote to standard output in all.
    stdout_total_bytes: int
    #: How many bytes it wrote to standard error in all.
    stderr_total_bytes: int
    #: Standard output was longer than what was kept.
    stdout_truncated: bool
    #: Standard error was longer than what was kept.
    stderr_truncated: bool
    #: From the start to the outcome.
    duration_ms: int
    #: The deadline has passed, and the whole process tree was killed.
    timed_out: bool
    #: It was cancelled, and the whole process tree was killed.
    aborted: bool
    #: It was to be killed, and that could not be confirmed.
    may_still_be_running: bool
    #: A process that it left behind, such as `sleep 60 &`, still held its output open when reading stopped.
    output_open: bool = False

    @property
    def ok(self) -> bool:
        """It exited with 0."""
        return self.exit_code == 0

    def check(self) -> ExecResult:
        """Returns the result of a command that exited with 0; raises `CommandFailed` for any other."""
        if self.ok:
            return self
        words = (self.stderr.strip() or self.stdout.strip())[-_LAST_WORDS:]
        raise CommandFailed(f"the command {self.outcome}" + (f": {words}" if words else ""), self)

    @classmethod
    def of_wire(cls, wire: dict[str, Any]) -> ExecResult:
        """From the server's answer."""

        def raw(stream: str) -> bytes:
            encoded = wire.get(f"{stream}_base64")
            return base64.b64decode(encoded) if encoded is not None else str(wire[stream]).encode()

        return cls(
            outcome=Outcome.of_wire(wire["outcome"]),
            exit_code=wire["exit_code"],
            stdout=wire["stdout"],
            stderr=wire["stderr"],
            stdout_raw=raw("stdout"),
            stderr_raw=raw("stderr"),
            stdout_total_bytes=wire["stdout_bytes"],
            stderr_total_bytes=wire["stderr_bytes"],
            stdout_truncated=wire["stdout_truncated"],
            stderr_truncated=wire["stderr_truncated"],
            duration_ms=wire["duration_ms"],
            timed_out=wire["timed_out"],
            aborted=wire["aborted"],
            may_still_be_running=wire["may_still_be_running"],
            output_open=wire.get("output_open", False),
        )
