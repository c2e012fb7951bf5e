"""What is told of snapshots, and of the differences between two."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from ._wire import known
from .images import ImageInfo


@dataclass(frozen=True)
class SnapshotInfo:
    """A snapshot: the files of a sandbox as they were at one moment."""

    id: str
    #: Unique in its pool.
    name: str | None
    pool: str | None
    #: The id of the sandbox that it was taken of, which may be gone.
    sandbox: str
    sandbox_name: str
    #: The snapshot that the sandbox's files came from, which may be gone.
    parent: str | None
    labels: dict[str, str]
    #: When it was taken, in milliseconds since 1970 (UTC).
    created_ms: int
    #: What it alone adds to its parent; `None`: not counted yet, or it can't be.
    own_bytes: int | None
    #: What it shares with those below it.
    shared_bytes: int | None
    #: What the sandbox was made from, without the values of variables.
    spec: dict[str, Any]
    #: The commands that were ended for it; of one that is looked up or listed none.
    stopped: tuple[str, ...] = ()

    @classmethod
    def of_wire(cls, wire: dict[str, Any]) -> SnapshotInfo:
        """From the server's answer."""
        return known(cls, {**wire, "stopped": tuple(wire.get("stopped", ()))})


@dataclass(frozen=True)
class ImageCommitted(ImageInfo):
    """An image that was made of a snapshot or a sandbox."""

    #: The commands that were ended for it.
    stopped: tuple[str, ...] = ()

    @classmethod
    def of_wire(cls, wire: dict[str, Any]) -> ImageCommitted:
        """From the server's answer."""
        return known(cls, {**wire, "stopped": tuple(wire["stopped"])})


@dataclass(frozen=True)
class ComparedFile:
    """A file, directory or link, as one side of a comparison has it."""

    type: Literal["file", "directory", "symlink", "other"]
    #: 0 for all but files.
    size_bytes: int
    #: The permission bits.
    mode: int


@dataclass(frozen=True)
class FileChange:
    """A difference between two sides."""

    path: str
    change: Literal["added", "changed", "removed"]
    #: `None`: it was added.
    before: ComparedFile | None
    #: `None`: it was removed.
    after: ComparedFile | None
    #: A unified diff, where it was asked for and the file is text of at most 1 MiB.
    text: str | None = None

    @classmethod
    def of_wire(cls, wire: dict[str, Any]) -> FileChange:
        """From the server's answer."""

        def side(name: str) -> ComparedFile | None:
            return known(ComparedFile, wire[name]) if wire.get(name) else None

        return cls(wire["path"], wire["change"], side("before"), side("after"), wire.get("text"))


@dataclass(frozen=True)
class FileChanges:
    """The differences between two sides, by path."""

    changes: list[FileChange]
    #: There are more than are listed.
    truncated: bool

    @classmethod
    def of_wire(cls, wire: dict[str, Any]) -> FileChanges:
        """From the server's answer."""
        return cls([FileChange.of_wire(one) for one in wire["changes"]], wire["truncated"])
