"""What is sent as a file or a tree: at once, or in pieces."""

from __future__ import annotations

import asyncio
import io
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator, Mapping
from typing import Any

from ._arguments import refused, shown
from .errors import Invalid

#: Bytes, at once or in pieces; a file that is open for reading bytes is such pieces.
Pieces = bytes | Iterable[bytes]
#: The same for async code.
AsyncPieces = Pieces | AsyncIterable[bytes]

#: How much of an iterable is taken at once, while others wait.
_PIECE_BYTES = 64 * 1024


def as_body(content: str | Pieces, what: str, field: str = "data") -> bytes | Iterable[bytes]:
    """Returns the body that is sent. Anything but a content is refused: an absent body would make an empty file."""
    check_content(content, what, field)
    if isinstance(content, str):
        return content.encode()
    if isinstance(content, bytes | bytearray | memoryview):
        return bytes(content)
    # The pieces of a file are its reader's, which asks it for its length, too.
    return content if hasattr(content, "read") else _checked(content, what, field)


def as_async_body(content: str | AsyncPieces, what: str, field: str = "data") -> bytes | AsyncIterable[bytes]:
    """What async code sends of it. An iterable may be a file, which waits for its disk, and so is read in a thread."""
    if isinstance(content, AsyncIterable):
        return _checked_async(content, what, field)
    body = as_body(content, what, field)
    return body if isinstance(body, bytes) else _in_threads(_pieces_of(body))


def as_bytes(data: str | bytes, what: str, field: str = "data") -> bytes:
    """Returns the bytes that a command reads."""
    if isinstance(data, str):
        return data.encode()
    if isinstance(data, bytes | bytearray | memoryview):
        return bytes(data)
    raise refused(what, field, f"must be a text or bytes, not {shown(data)}")


def check_content(content: object, what: str, field: str) -> None:
    """Refuses what is no content of a file."""
    if isinstance(content, io.TextIOBase):
        raise refused(what, field, "is a file that is open for text; open it for bytes (`rb`)")
    if isinstance(content, Mapping) or (not isinstance(content, Iterable | AsyncIterable) and not hasattr(content, "read")):
        raise _no_content(content, what, field)


def check_files(files: object, what: str) -> None:
    """Refuses files of which one is none, before the first is written."""
    for path, content in entries(files, what):
        check_content(content, what, f"files[{path!r}]")


def entries(files: object, what: str) -> Iterable[tuple[Any, Any]]:
    """The paths of files and what is given as their contents."""
    if isinstance(files, Mapping):
        return files.items()
    raise refused(what, "files", f"must be a mapping of paths to contents, such as {{'a.txt': 'text'}}, not {shown(files)}")


def _no_content(content: object, what: str, field: str) -> Invalid:
    return refused(
        what, field, f"must be a text, bytes, a file that is open for bytes, or pieces of bytes, not {shown(content)}"
    )


def _checked(pieces: Iterable[bytes], what: str, field: str) -> Iterator[bytes]:
    for piece in pieces:
        yield _checked_piece(piece, what, field)


async def _checked_async(pieces: AsyncIterable[bytes], what: str, field: str) -> AsyncIterator[bytes]:
    async for piece in pieces:
        yield _checked_piece(piece, what, field)


def _checked_piece(piece: bytes, what: str, field: str) -> bytes:
    if isinstance(piece, bytes | bytearray | memoryview):
        return bytes(piece)
    raise refused(what, field, f"has a piece that must be bytes, not {shown(piece)}")


async def _in_threads(pieces: Iterator[bytes]) -> AsyncIterator[bytes]:
    while piece := await asyncio.to_thread(_some, pieces):
        yield piece


def _pieces_of(body: Any) -> Iterator[bytes]:
    return iter(lambda: body.read(_PIECE_BYTES), b"") if hasattr(body, "read") else iter(body)


def _some(pieces: Iterator[bytes]) -> bytes:
    """The next pieces, until they are worth a thread's time; nothing at the end."""
    taken = bytearray()
    for piece in pieces:
        taken += piece
        if len(taken) >= _PIECE_BYTES:
            break
    return bytes(taken)
