"""What is told of files, and of a search through them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from ._wire import known

FileType = Literal["file", "directory", "symlink", "other"]
WriteMode = Literal["replace", "append", "create_new"]


@dataclass(frozen=True)
class FileStat:
    """What is known of a file; absent is what the backend does not know.

    For a symbolic link everything but `is_symbolic_link` describes its target.
    """

    is_file: bool
    is_directory: bool
    is_symbolic_link: bool | None = None
    #: In bytes.
    size: int | None = None
    #: Last modification, in milliseconds since 1970 (UTC).
    modified_ms: int | None = None
    #: Permission bits, such as `0o644`.
    mode: int | None = None


@dataclass(frozen=True)
class DirEntry:
    """One name in a directory."""

    #: The name, not the path; what is not UTF-8 stands as U+FFFD.
    name: str
    #: What it is; a symbolic link is not followed.
    file_type: FileType | None = None
    #: In bytes, where the backend says it.
    size: int | None = None


@dataclass(frozen=True)
class GlobResult:
    """The files that a pattern matches, sorted by path."""

    #: Absolute paths.
    paths: list[str]
    #: There were more.
    truncated: bool


@dataclass(frozen=True)
class GrepMatch:
    """A line that matched."""

    #: The file's absolute path.
    path: str
    #: Counted from 1.
    line_number: int
    #: The line without its end.
    line: str
    #: The line was longer.
    line_truncated: bool


@dataclass(frozen=True)
class GrepResult:
    """The lines that matched, sorted by path and line."""

    matches: list[GrepMatch]
    #: There were more.
    truncated: bool

    @classmethod
    def of_wire(cls, wire: dict[str, Any]) -> GrepResult:
        """From the server's answer."""
        return cls([known(GrepMatch, one) for one in wire["matches"]], wire["truncated"])


@dataclass(frozen=True)
class WatchEvent:
    """Something that happened to a file."""

    #: `overflow`: some of what happened was lost; look again.
    kind: Literal["created", "modified", "removed", "renamed", "overflow"]
    #: The absolute path.
    path: str
    is_directory: bool
    #: The path before, of what was renamed.
    renamed_from: str | None = None

    @classmethod
    def of_wire(cls, wire: dict[str, Any]) -> WatchEvent:
        """From the server's event."""
        return cls(wire["kind"], wire["path"], wire["is_directory"], wire.get("from"))
