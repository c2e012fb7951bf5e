"""One request to the server and what becomes of its answer, apart from how it is sent: both clients send the same."""

from __future__ import annotations

from collections.abc import AsyncIterable, Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import httpx

from .errors import EyotError, Unavailable, of_response

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

    def request(self, http: httpx.Client | httpx.AsyncClient) -> httpx.Request:
        """The request, to be sent by this client."""
        return http.build_request(
            self.method,
            self.path,
            params=self.params or None,
            json=self.json,
            content=self.content,
            headers=self.headers,
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


def broken(error: httpx.HTTPError) -> EyotError:
    """What a connection that can't be made, or that breaks off, is for the caller."""
    return Unavailable(f"reach the server: {str(error) or type(error).__name__}")


def closed() -> EyotError:
    """What a call of a client is that was closed."""
    return Unavailable("reach the server: this client is closed")


def may_go_again(request: httpx.Request, error: httpx.HTTPError) -> bool:
    """Whether a request may be sent a second time: one that only reads, on a connection that the server closed meanwhile."""
    return request.method == "GET" and isinstance(error, httpx.RemoteProtocolError | httpx.ReadError | httpx.WriteError)


def nothing(_: httpx.Response) -> None:
    """For answers that say no more than that it was done."""
