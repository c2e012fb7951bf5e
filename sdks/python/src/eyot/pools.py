"""What is told of pools, and of what moves between their sandboxes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class PoolEntry:
    """A sandbox of a pool."""

    name: str
    #: Its image, as it was named.
    image: str
    #: `sleeping`: it wakes when it is used.
    status: Literal["running", "sleeping", "damaged"]


@dataclass(frozen=True)
class Transferred:
    """What was copied."""

    #: Regular files.
    files: int
    #: Their bytes.
    bytes: int
