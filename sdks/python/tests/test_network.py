"""A sandbox's network: rules, decisions, ports."""

from __future__ import annotations

import asyncio
import socket
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from eyot import AsyncClient, AsyncSandbox, Client, EgressRules, Invalid, Sandbox, Unsupported

DIAL = "curl --silent --max-time 5 --output /dev/null http://192.0.2.1/; true"


@pytest.mark.needs("network_egress")
def test_rules_are_replaced_and_what_they_refuse_is_told(client: Client) -> None:
    with client.create(network="egress", egress={"allow": ["example.com"]}) as sandbox:
        assert (sandbox.egress_rules().allow, sandbox.egress_rules().deny) == (["example.com"], [])
        sandbox.set_egress_rules(deny=["192.0.2.0/24"])
        assert (sandbox.egress_rules().allow, sandbox.egress_rules().deny) == ([], ["192.0.2.0/24"])
        sandbox.exec(DIAL, timeout_ms=20_000)
        decisions = list(sandbox.egress_decisions())
        assert decisions[-1].host == "192.0.2.1" and decisions[-1].port == 80 and decisions[-1].verdict == "refused"
        assert list(sandbox.egress_decisions(last=1)) == decisions[-1:]


@pytest.mark.needs("network_egress")
def test_following_decisions_tells_what_comes(client: Client) -> None:
    with client.create(network="egress", egress={"deny": ["192.0.2.0/24"]}) as sandbox:
        sandbox.start(DIAL)
        decision = next(sandbox.egress_decisions(follow=True))
        assert decision.host == "192.0.2.1" and decision.number == 1


@pytest.mark.needs("network_egress")
def test_a_rule_that_is_none_is_refused(client: Client) -> None:
    with client.create(network="egress") as sandbox, pytest.raises(Invalid):
        sandbox.set_egress_rules(allow=["http://not a rule"])


@pytest.mark.needs("network_egress")
def test_a_sandbox_without_a_network_has_no_rules(sandbox: Sandbox) -> None:
    with pytest.raises(Invalid):
        sandbox.egress_rules()


@pytest.mark.needs("network_egress")
async def test_rules_and_decisions_work_in_async_code(async_client: AsyncClient) -> None:
    async with await async_client.create(network="egress", egress={"deny": ["192.0.2.0/24"]}) as sandbox:
        await sandbox.set_egress_rules(allow=["example.com"])
        assert (await sandbox.egress_rules()).allow == ["example.com"]
        await sandbox.start(DIAL)
        async for decision in sandbox.egress_decisions(follow=True):
            assert decision.verdict == "refused"
            break


def test_a_sandbox_that_publishes_no_ports_has_none(sandbox: Sandbox) -> None:
    assert sandbox.published_ports() == []


SERVER = "python3 -m http.server 8000 --bind 127.0.0.1"


@pytest.mark.needs("dial")
def test_a_port_is_seen_as_a_web_page_by_who_has_the_token(client: Client, server: str) -> None:
    transport = httpx.HTTPTransport(uds=server.removeprefix("unix:"))
    with httpx.Client(transport=transport, timeout=60) as browser, client.create(files={"hello.txt": "from inside"}) as sandbox:
        sandbox.start(SERVER)
        sandbox.exec("until curl --silent http://127.0.0.1:8000/ >/dev/null; do sleep 0.05; done", timeout_ms=20_000)
        preview = sandbox.preview(8000, ttl_ms=60_000)
        assert preview.port == 8000 and preview.token is not None and not preview.public
        address = f"http://localhost/preview/{preview.sandbox}/8000/hello.txt"
        assert browser.get(address).status_code == 401
        seen = browser.get(address, headers={preview.header: preview.token})
        assert (seen.status_code, seen.text) == (200, "from inside")
        sandbox.end_previews(8000)
        assert browser.get(address, headers={preview.header: preview.token}).status_code == 401


async def test_a_server_of_the_client_s_own_has_no_page_for_a_port_and_the_error_names_forward(state: str) -> None:
    with Client() as client:
        with pytest.raises(Unsupported, match=r"preview port 8000 of sandbox `x`: .*use forward\(8000\)") as caught:
            client.sandbox("x").preview(8000)
        assert caught.value.hint is not None and "EYOT_SERVER" in caught.value.hint
        async with client.asynchronous() as other:
            with pytest.raises(Unsupported):
                await other.sandbox("x").preview(8000)
    async with AsyncClient() as client_of_a_loop:
        with pytest.raises(Unsupported):
            await client_of_a_loop.sandbox("x").preview(8000)


@pytest.mark.needs("network_egress")
def test_rules_are_changed_with_labels_or_not_at_all(client: Client) -> None:
    with client.create(network="egress", egress={"deny": ["192.0.2.0/24"]}) as sandbox:
        with pytest.raises(Invalid):
            sandbox.update(egress={"allow": ["example.com"]}, lifecycle={"ttl_ms": 0})
        assert sandbox.egress_rules().allow == []
        sandbox.update(egress={"allow": ["example.com"]}, labels={"a": "1"})
        assert sandbox.egress_rules() == EgressRules(allow=["example.com"], deny=[])


#: Greets every connection, and says how much it has sent, once it has ended its side.
COUNTER = """
import socketserver
class Counter(socketserver.StreamRequestHandler):
    def handle(self):
        self.wfile.write(b"hello ")
        self.wfile.write(b"%d" % len(self.rfile.read()) + b"." * 1_000_000)
socketserver.ThreadingTCPServer.allow_reuse_address = True
socketserver.ThreadingTCPServer(("127.0.0.1", 8001), Counter).serve_forever()
"""
COUNTER_LISTENS = "until (echo >/dev/tcp/127.0.0.1/8001) 2>/dev/null; do sleep 0.05; done"


def counted(host: str, port: int, sent: int) -> bytes:
    """What the counter says, with the dots behind it."""
    with socket.create_connection((host, port)) as connection:
        connection.sendall(b"x" * sent)
        connection.shutdown(socket.SHUT_WR)
        with connection.makefile("rb") as answer:
            return answer.read()


@pytest.mark.needs("dial")
def test_a_port_inside_is_a_port_here_within_the_block(sandbox: Sandbox) -> None:
    sandbox.start(["python3", "-c", COUNTER])
    sandbox.exec(COUNTER_LISTENS, timeout_ms=20_000)
    with sandbox.forward(8001) as forward:
        assert (forward.sandbox_port, forward.host) == (8001, "127.0.0.1")
        with ThreadPoolExecutor() as pool:
            answers = list(pool.map(lambda sent: counted(forward.host, forward.port, sent), [0, 7, 3_000_000]))
        assert answers == [b"hello %d" % sent + b"." * 1_000_000 for sent in (0, 7, 3_000_000)]
        left_open = socket.create_connection((forward.host, forward.port))
        assert left_open.recv(6, socket.MSG_WAITALL) == b"hello "
    with left_open, pytest.raises(ConnectionResetError):
        left_open.recv(1)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((forward.host, forward.port))


@pytest.mark.needs("dial")
def test_a_client_that_is_closed_ends_what_is_forwarded_before_its_server(state: str) -> None:
    with Client() as client:
        assert client._local is not None
        child, sandbox = client._local._child, client.create(ttl_ms=60_000)
        sandbox.start(["python3", "-c", COUNTER])
        sandbox.exec(COUNTER_LISTENS, timeout_ms=20_000)
        with sandbox.forward(8001) as forward, socket.create_connection((forward.host, forward.port)) as connection:
            assert connection.recv(6, socket.MSG_WAITALL) == b"hello "
            client.close()
            with pytest.raises(ConnectionResetError):
                connection.recv(1)
    assert child.returncode == 0


def test_a_port_on_which_nobody_listens_resets_connections(sandbox: Sandbox) -> None:
    with sandbox.forward(8002) as forward, pytest.raises(ConnectionResetError):
        counted(forward.host, forward.port, 0)


@pytest.mark.needs("dial")
async def test_a_port_inside_is_a_port_here_for_async_code(async_sandbox: AsyncSandbox) -> None:
    await async_sandbox.start(["python3", "-c", COUNTER])
    await async_sandbox.exec(COUNTER_LISTENS, timeout_ms=20_000)
    async with async_sandbox.forward(8001) as forward:
        answers = [asyncio.to_thread(counted, forward.host, forward.port, sent) for sent in (1, 2_000_000)]
        assert await asyncio.gather(*answers) == [b"hello %d" % sent + b"." * 1_000_000 for sent in (1, 2_000_000)]
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((forward.host, forward.port))


@pytest.mark.parametrize("port", [0, -1, 65_536, 99_999, "8000", True, None])
async def test_a_port_that_there_can_t_be_is_refused_at_once(sandbox: Sandbox, async_sandbox: AsyncSandbox, port: Any) -> None:
    words = "`port` must be a number from 1 to 65535, not "
    with pytest.raises(Invalid, match=f"forward: {words}") as caught, sandbox.forward(port):
        pass
    assert caught.value.field == "port"
    for call in (sandbox.preview, sandbox.end_previews):
        with pytest.raises(Invalid, match=words):
            call(port)
    with pytest.raises(Invalid, match=words):
        async with async_sandbox.forward(port):
            pass


@pytest.mark.needs("network_egress")
def test_a_network_that_is_true_is_egress_and_one_that_is_false_is_none(client: Client) -> None:
    for given, network in ((True, "egress"), (False, "none")):
        with client.create(network=given) as sandbox:
            assert sandbox.info is not None and sandbox.info.spec.get("network", "none") == network
