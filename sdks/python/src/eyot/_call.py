"""One request to the server and what becomes of its answer, apart from how it is sent: both clients send the same."""

from __future__ import annotations

import time
from collections.abc import AsyncIterable, Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import httpx

from .errors import EyotError, TimedOut, Unavailable, of_response

T = TypeVar("T")


@dataclass(frozen=True)
class Call(Generic[T]):
    """A request, and how to read a response that is none of a failure."""

    method: str
    path: str
    read: Callable[[httpx.Response], T]
    params: dict[str, str] = field(default_factory=dict)
    json: Any = None
    content: bytes | Iterable[bytes] | AsyncIterable[bytes] | None = None
    headers: dict[str, str] | None = None
    #: The time in which each piece of a streamed answer has to come.
    read_timeout_ms: int | None = None

    def request(self, http: httpx.Client | httpx.AsyncClient) -> httpx.Request:
        """The request, to be sent by this client."""
        timeout = http.timeout
        if self.read_timeout_ms is not None:
            read = self.read_timeout_ms / 1000
            timeout = httpx.Timeout(connect=timeout.connect, read=read, write=timeout.write, pool=timeout.pool)
        return http.build_request(
            self.method,
            self.path,
            params=self.params or None,
            json=self.json,
            content=self.content,
            headers=self.headers,
            timeout=timeout,
        )


def params(**given: str | int | bool | None) -> dict[str, str]:
    """What stands in a query: what was given, as text."""

    def text(value: str | int | bool) -> str:
        return str(value).lower() if isinstance(value, bool) else str(value)

    return {name: text(value) for name, value in given.items() if value is not None}


def checked(response: httpx.Response) -> httpx.Response:
    """The response, unless it is that of a failure. Its body must have been read."""
    if response.is_success:
        return response
    raise of_response(response.status_code, response.content)


def broken(error: httpx.HTTPError, read_timeout_ms: int | None = None) -> EyotError:
    """The error of an answer that breaks off."""
    if read_timeout_ms is not None and isinstance(error, httpx.ReadTimeout):
        return silent(read_timeout_ms)
    return Unavailable(f"read the server's answer: {str(error) or type(error).__name__}")


def silent(read_timeout_ms: int) -> EyotError:
    """What reading ends with when nothing comes."""
    return TimedOut(f"read the stream: nothing came for {read_timeout_ms} milliseconds")


class Silence:
    """How long no event came. The server's sign that it is there is none."""

    def __init__(self, most_ms: int | None) -> None:
        self._most_ms = most_ms
        self._since = time.monotonic()

    def end(self) -> None:
        """An event came, and was dealt with."""
        self._since = time.monotonic()

    def check(self) -> None:
        """Raises where it lasts for too long."""
        if self._most_ms is not None and (time.monotonic() - self._since) * 1000 >= self._most_ms:
            raise silent(self._most_ms)


class ClosedClient(Unavailable):
    """The client was closed, and stays so."""


def closed() -> EyotError:
    """What a call of a client is that was closed."""
    return ClosedClient("reach the server: this client is closed")


def may_go_again(request: httpx.Request, error: httpx.HTTPError) -> bool:
    """Whether a request may be sent a second time: one that only reads, on a connection that the server closed meanwhile."""
    return request.method == "GET" and isinstance(error, httpx.RemoteProtocolError | httpx.ReadError | httpx.WriteError)


def nothing(_: httpx.Response) -> None:
    """For answers that say no more than that it was done."""
