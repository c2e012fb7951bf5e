"""Files: read, written, described, found, moved, removed; and trees as tar."""

from __future__ import annotations

from collections.abc import AsyncIterable, Iterable

import httpx

from .._arguments import path_text
from .._call import Call, nothing
from .._wire import known
from ..files import DirEntry, FileStat, GlobResult, GrepResult, WriteMode
from .at import At

#: What is sent as a file or a tree.
Content = bytes | Iterable[bytes] | AsyncIterable[bytes]


def read(at: At, path: str, offset: int | None, limit: int | None) -> Call[bytes]:
    """Reads a file, or a part of it."""
    return Call("GET", at.path("/files"), _body, at.params(path=path_text(path, "read file"), offset=offset, limit=limit))


def write(
    at: At, path: str, content: Content, mode: WriteMode, permissions: int | None, max_file_bytes: int | None
) -> Call[int]:
    """Writes a file; the answer is its size."""
    query = at.params(path=path_text(path, "write file"), mode=mode, permissions=permissions, max_file_bytes=max_file_bytes)
    return Call("PUT", at.path("/files"), lambda response: int(response.json()["size"]), query, content=content)


def remove(at: At, path: str, recursive: bool, force: bool) -> Call[None]:
    """Removes."""
    return Call(
        "DELETE", at.path("/files"), nothing, at.params(path=path_text(path, "remove"), recursive=recursive, force=force)
    )


def stat(at: At, path: str) -> Call[FileStat]:
    """Describes a file."""
    return Call(
        "GET", at.path("/stat"), lambda response: known(FileStat, response.json()), at.params(path=path_text(path, "stat"))
    )


def exists(at: At, path: str) -> Call[bool]:
    """Says whether something is there."""
    return Call(
        "GET",
        at.path("/exists"),
        lambda response: bool(response.json()["exists"]),
        at.params(path=path_text(path, "look for a file")),
    )


def list_directory(at: At, path: str) -> Call[list[DirEntry]]:
    """Lists a directory."""

    def entries(response: httpx.Response) -> list[DirEntry]:
        return [known(DirEntry, one) for one in response.json()["entries"]]

    return Call("GET", at.path("/list"), entries, at.params(path=path_text(path, "list directory")))


def mkdir(at: At, path: str, recursive: bool) -> Call[None]:
    """Makes a directory."""
    return Call("POST", at.path("/mkdir"), nothing, at.params(path=path_text(path, "make directory"), recursive=recursive))


def rename(at: At, source: str, target: str) -> Call[None]:
    """Moves."""
    return Call(
        "POST",
        at.path("/rename"),
        nothing,
        at.params(**{"from": path_text(source, "rename", "source"), "to": path_text(target, "rename", "target")}),
    )


def glob(at: At, pattern: str, path: str | None, hidden: bool, max_results: int | None) -> Call[GlobResult]:
    """Finds files."""
    query = at.params(
        pattern=path_text(pattern, "glob", "pattern"), path=_within(path, "glob"), hidden=hidden, max_results=max_results
    )
    return Call("GET", at.path("/glob"), lambda response: known(GlobResult, response.json()), query)


def grep(
    at: At,
    pattern: str,
    path: str | None,
    literal: bool,
    ignore_case: bool,
    include: str | None,
    max_matches: int | None,
    max_line_bytes: int | None,
) -> Call[GrepResult]:
    """Finds lines."""
    query = at.params(
        pattern=path_text(pattern, "grep", "pattern"), path=_within(path, "grep"),
        literal=literal, ignore_case=ignore_case, include=include,
        max_matches=max_matches, max_line_bytes=max_line_bytes,
    )  # fmt: skip
    return Call("GET", at.path("/grep"), lambda response: GrepResult.of_wire(response.json()), query)


def tar_out(at: At, path: str) -> Call[bytes]:
    """Packs a tree."""
    return Call("GET", at.path("/tree"), _body, at.params(path=path_text(path, "pack")))


def tar_in(at: At, path: str, content: Content) -> Call[int]:
    """Unpacks a tree; the answer is how many entries were made."""

    def read(response: httpx.Response) -> int:
        return int(response.json()["entries"])

    return Call("PUT", at.path("/tree"), read, at.params(path=path_text(path, "unpack")), content=content)


def watch(at: At, path: str, recursive: bool) -> Call[None]:
    """Watches; the answer is a stream of events."""
    return Call("GET", at.path("/watch"), nothing, at.params(path=path_text(path, "watch"), recursive=recursive))


def _within(path: str | None, what: str) -> str | None:
    return None if path is None else path_text(path, what)


def _body(response: httpx.Response) -> bytes:
    return response.content
