"""What happened to sandboxes, as the server's event log has it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

_KNOWN = ("seq", "time_ms", "kind", "pool", "sandbox", "sandbox_id", "reason")


@dataclass(frozen=True)
class Event:
    """Something that happened."""

    #: Counts the log's events from 1. Those of pools that the key does not open are left out.
    seq: int
    #: When, in milliseconds since 1970 (UTC).
    time_ms: int
    #: `created`, `woke`, `slept`, `destroyed`, `exec_started`, `exec_ended`, `file_written`, …
    kind: str
    #: Why it happened.
    reason: str
    pool: str | None
    #: The name of the sandbox that it is about.
    sandbox: str | None
    sandbox_id: str | None
    #: What else this kind tells, such as `command`, and the hashes that chain the log.
    details: dict[str, Any]

    @classmethod
    def of_wire(cls, wire: dict[str, Any]) -> Event:
        """From the server's event."""
        details = {name: value for name, value in wire.items() if name not in _KNOWN}
        return cls(
            wire["seq"], wire["time_ms"], wire["kind"], wire["reason"],
            wire.get("pool"), wire.get("sandbox"), wire.get("sandbox_id"), details,
        )  # fmt: skip
