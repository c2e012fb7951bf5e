"""How the server is reached: connections that it closes between two requests, proxies, deadlines, keep-alive, TLS."""

from __future__ import annotations

import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import serving

from eyot import AsyncClient, Client, EyotError, Sandbox, Unavailable, _websocket
from eyot._connection import tls

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


@pytest.fixture
def dead_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """An environment whose proxy answers nobody."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{port}")
        monkeypatch.setenv(name.lower(), f"http://127.0.0.1:{port}")
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)


@pytest.mark.usefixtures("dead_proxy")
async def test_proxies_of_the_environment_are_none_of_ours(server_with_keys: tuple[str, str, str]) -> None:
    url, key, _ = server_with_keys
    with Client(url, api_key=key) as client, client.create() as sandbox:
        assert sandbox.exec("true").ok
        with sandbox.exec_stream("true") as stream:
            assert stream.wait().ok
        async with client.asynchronous() as other:
            assert (await other.sandbox(sandbox.id).exec("true")).ok
            async with other.sandbox(sandbox.id).exec_stream("true") as running:
                assert (await running.wait()).ok


def told(caught: pytest.ExceptionInfo[Unavailable]) -> tuple[str, str | None]:
    return str(caught.value), caught.value.hint


async def test_an_error_of_a_connection_names_the_address_and_what_helps(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        url = f"http://127.0.0.1:{probe.getsockname()[1]}"
    hint = "is the address right? `eyot serve` starts a server"
    for address, reason in ((url, "connection refused"), (f"unix:{tmp_path}/s.sock", "no such file or directory")):
        expected = (f"reach the server at {address}: {reason}", hint)
        with Client(address) as client:
            with pytest.raises(Unavailable) as caught:
                client.version()
            assert told(caught) == expected
            with pytest.raises(Unavailable) as caught:
                client.sandbox("x").exec_stream("true")
            assert told(caught) == expected
        async with AsyncClient(address) as other:
            with pytest.raises(Unavailable) as caught:
                await other.version()
            assert told(caught) == expected
            with pytest.raises(Unavailable) as caught:
                await other.sandbox("x").exec_stream("true").__aenter__()
            assert told(caught) == expected


def test_an_error_of_a_connection_says_who_named_the_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EYOT_SERVER", "http://ada:secret@127.0.0.1:9/")
    with Client() as client, pytest.raises(Unavailable) as caught:
        client.version()
    assert told(caught) == (
        "reach the server at http://127.0.0.1:9: connection refused",
        "EYOT_SERVER names it: is the address right? `eyot serve` starts a server",
    )


def test_an_error_of_a_server_of_one_s_own_that_has_ended_says_so(state: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with Client() as client:
        assert client._local is not None
        client._local._child.kill()
        client._local._child.wait()
        with pytest.raises(Unavailable) as caught:
            client.sandbox("x").sleep()
        assert caught.value.hint == "this client started it, and it has ended; a new client starts another"


def test_an_address_with_https_of_a_server_without_is_found_out(server_with_keys: tuple[str, str, str]) -> None:
    with Client(server_with_keys[0].replace("http:", "https:")) as client, pytest.raises(Unavailable) as caught:
        client.version()
    assert caught.value.hint is not None and caught.value.hint.startswith("does the server speak https?")


class Drowsy:
    """A server that answers the first upgrade only after a time, as one that wakes a sandbox before, and then refuses it."""

    def __init__(self, after_s: float) -> None:
        self._after_s = after_s
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        connection, _ = self._listener.accept()
        with connection:
            received = b""
            while b"\r\n\r\n" not in received:
                received += connection.recv(4096)
            time.sleep(self._after_s)
            connection.sendall(b"HTTP/1.1 409 Conflict\r\ncontent-length: 5\r\n\r\nwoken")

    def close(self) -> None:
        self._listener.close()


@pytest.fixture
def drowsy(monkeypatch: pytest.MonkeyPatch) -> Iterator[Drowsy]:
    """A server that takes three times as long as getting through may take."""
    monkeypatch.setattr(_websocket, "CONNECT_TIMEOUT_S", 0.5)
    server = Drowsy(1.5)
    yield server
    server.close()


def test_a_server_that_wakes_a_sandbox_first_may_take_its_time(drowsy: Drowsy) -> None:
    with Client(drowsy.url) as client, pytest.raises(EyotError, match="woken"):
        client.sandbox("x").exec_stream("true")


async def test_a_server_that_wakes_a_sandbox_first_may_take_its_time_in_async_code(drowsy: Drowsy) -> None:
    async with AsyncClient(drowsy.url) as client:
        with pytest.raises(EyotError, match="woken"):
            async with client.sandbox("x").exec_stream("true"):
                pass


def kept_alive(opened: socket.socket) -> list[int]:
    """What a socket does to learn that nobody is at its other end."""
    tcp = (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT)
    switch = opened.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
    return [switch, *(opened.getsockopt(socket.IPPROTO_TCP, option) for option in tcp)]


async def test_a_server_that_is_gone_without_a_word_is_noticed(server_with_keys: tuple[str, str, str]) -> None:
    url, key, _ = server_with_keys
    sockets: list[socket.socket] = []
    with Client(url, api_key=key) as client, client.create() as sandbox:
        answer = client._http.get("/v1/version")
        sockets.append(answer.extensions["network_stream"].get_extra_info("socket"))
        async with client.asynchronous() as other:
            answer = await (await other._ready()).get("/v1/version")
            sockets.append(answer.extensions["network_stream"].get_extra_info("socket"))
            async with other.sandbox(sandbox.id).exec_stream("true") as running:
                sockets.append(running._connection.transport.get_extra_info("socket"))
                with sandbox.exec_stream("true") as stream:
                    sockets.append(stream._connection.socket)
                    assert [kept_alive(one) for one in sockets] == [[1, 30, 10, 3]] * 4


@pytest.fixture
def certificates_read(monkeypatch: pytest.MonkeyPatch) -> list[ssl.SSLContext]:
    """The TLS contexts that read certificates, which takes tens of milliseconds."""
    read: list[ssl.SSLContext] = []
    load = ssl.SSLContext.load_verify_locations

    def counted(context: ssl.SSLContext, *arguments: Any, **named: Any) -> None:
        read.append(context)
        load(context, *arguments, **named)

    monkeypatch.setattr(ssl.SSLContext, "load_verify_locations", counted)
    return read


async def test_a_client_without_tls_reads_no_certificates(
    server: str, sandbox: Sandbox, certificates_read: list[ssl.SSLContext]
) -> None:
    with Client(server) as client, Client("http://127.0.0.1:9"):
        async with client.asynchronous() as other:
            assert (await other.sandbox(sandbox.id).exec("true")).ok
            async with AsyncClient("http://127.0.0.1:9") as third:
                with pytest.raises(Unavailable):
                    await third.version()
    assert certificates_read == []


@pytest.fixture
def server_with_tls(state: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A server on TLS, which the environment trusts."""
    certificate, key = tmp_path / "certificate.pem", tmp_path / "key.pem"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"]
    command += ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    subprocess.run([*command, "-keyout", key, "-out", certificate], check=True, capture_output=True)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    tls.cache_clear()
    with serving("--tls-cert", str(certificate), "--tls-key", str(key)) as port:
        yield f"https://localhost:{port}"
    tls.cache_clear()


async def test_all_clients_trust_a_server_by_certificates_that_are_read_once(
    server_with_tls: str, server_with_keys: tuple[str, str, str], certificates_read: list[ssl.SSLContext]
) -> None:
    with Client(server_with_tls, api_key=server_with_keys[1]) as client, client.create() as sandbox:
        with sandbox.exec_stream("echo hi") as stream:
            assert stream.wait().stdout == "hi\n"
        async with client.asynchronous() as other:
            assert (await other.sandbox(sandbox.id).exec("true")).ok
            async with other.sandbox(sandbox.id).exec_stream("echo hi") as running:
                assert (await running.wait()).stdout == "hi\n"
    assert len(certificates_read) == 1


@pytest.mark.usefixtures("server_with_tls")
async def test_a_server_that_nobody_vouches_for_is_unavailable(server_with_tls: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SSL_CERT_FILE")
    with Client(server_with_tls) as client:
        with pytest.raises(Unavailable, match="certificate") as caught:
            client.version()
        assert caught.value.hint is not None and caught.value.hint.startswith("SSL_CERT_FILE names")
        with pytest.raises(Unavailable, match="certificate"):
            client.sandbox("x").exec_stream("true")
        async with client.asynchronous() as other:
            with pytest.raises(Unavailable, match="certificate"):
                async with other.sandbox("x").exec_stream("true"):
                    pass
