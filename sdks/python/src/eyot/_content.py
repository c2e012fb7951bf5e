"""What is sent as a file or a tree: at once, or in pieces."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator
from typing import Any

#: Bytes, at once or in pieces; a file that is open for reading bytes is such pieces.
Pieces = bytes | Iterable[bytes]
#: The same for async code.
AsyncPieces = Pieces | AsyncIterable[bytes]

#: How much of an iterable is taken at once, while others wait.
_PIECE_BYTES = 64 * 1024


def as_body(content: str | Pieces) -> bytes | Iterable[bytes]:
    """What is sent of it."""
    if isinstance(content, str):
        return content.encode()
    return bytes(content) if isinstance(content, bytearray | memoryview) else content


def as_async_body(content: str | AsyncPieces) -> bytes | AsyncIterable[bytes]:
    """What async code sends of it. An iterable may be a file, which waits for its disk, and so is read in a thread."""
    if isinstance(content, AsyncIterable):
        return content
    body = as_body(content)
    return body if isinstance(body, bytes) else _in_threads(_pieces_of(body))


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
