"""Connections that the server closes between two requests."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

import pytest

from eyot import AsyncClient, Client, Unavailable

ANSWER = b'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 15\r\n\r\n{"version":"1"}'


class Moody:
    """A server that answers the first request of a connection, and hangs up on the second."""

    def __init__(self) -> None:
        self.requests = 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with connection:
                if self._read(connection):
                    connection.sendall(ANSWER)
                    self._read(connection)

    def _read(self, connection: socket.socket) -> bool:
        received = b""
        while b"\r\n\r\n" not in received:
            more = connection.recv(4096)
            if not more:
                return False
            received += more
        self.requests += 1
        return True

    def close(self) -> None:
        self._listener.close()


@pytest.fixture
def moody() -> Iterator[Moody]:
    server = Moody()
    yield server
    server.close()


def test_what_only_reads_is_asked_again_on_a_new_connection(moody: Moody) -> None:
    with Client(moody.url) as client:
        assert [client.version(), client.version()] == ["1", "1"]
    assert moody.requests == 3


async def test_what_only_reads_is_asked_again_in_async_code(moody: Moody) -> None:
    async with AsyncClient(moody.url) as client:
        assert [await client.version(), await client.version()] == ["1", "1"]
    assert moody.requests == 3


def test_what_changes_something_is_never_sent_twice(moody: Moody) -> None:
    with Client(moody.url) as client:
        client.version()
        with pytest.raises(Unavailable):
            client.sandbox("x").sleep()
    assert moody.requests == 2
