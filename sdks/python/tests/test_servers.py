"""Where the server is: local ones, keys, addresses."""

from __future__ import annotations

import asyncio
import os
import select
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from conftest import server_processes

from eyot import AsyncClient, AsyncSandbox, Client, Invalid, PermissionDenied, SandboxNotFound, Unavailable
from eyot._server_address import ServerAddress


def test_a_key_opens_its_own_pool_and_no_other(server_with_keys: tuple[str, str, str]) -> None:
    url, one, two = server_with_keys
    with Client(url, api_key=one) as mine, Client(url, api_key=two) as others, mine.create() as sandbox:
        assert sandbox.info is not None and sandbox.info.pool == "one"
        assert sandbox.exec("echo hi").stdout == "hi\n"
        with sandbox.exec_stream("echo hi") as stream:
            assert stream.wait().stdout == "hi\n"
        with pytest.raises(SandboxNotFound):
            others.sandbox(sandbox.id).exec("true")
        assert list(others.list()) == []


def test_without_a_key_nobody_is_let_in(server_with_keys: tuple[str, str, str]) -> None:
    url = server_with_keys[0]
    for key in (None, "wrong"):
        with Client(url, api_key=key) as client:
            with pytest.raises(PermissionDenied) as caught:
                client.create()
            assert caught.value.status == 401
            with pytest.raises(PermissionDenied):
                client.sandbox("x").exec_stream("true")


def test_address_and_key_come_from_the_environment(
    server_with_keys: tuple[str, str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    url, one, _ = server_with_keys
    monkeypatch.setenv("EYOT_SERVER", url)
    monkeypatch.setenv("EYOT_API_KEY", one)
    with Client() as client, client.create() as sandbox:
        assert sandbox.info is not None and sandbox.info.pool == "one"


def test_an_error_that_nobody_catches_ends_with_its_hint(tmp_path: Path) -> None:
    script = "from eyot import Client; Client()"
    environment = {"PATH": str(tmp_path), "HOME": str(tmp_path)}
    failed = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=False)
    message, hint = failed.stderr.strip().splitlines()[-2:]
    assert message == "eyot.errors.Unavailable: find a server: no URL was given, and the program `eyot` is not installed"
    assert hint.startswith("hint: give a URL, set EYOT_SERVER, or install eyot")


def test_the_text_of_an_error_is_its_message_alone() -> None:
    error = Unavailable("reach the server", hint="start it")
    assert (str(error), error.detail, error.hint) == ("reach the server", "reach the server", "start it")


def test_without_an_address_a_server_is_started_that_ends_with_the_client(state: str) -> None:
    with Client() as client:
        assert client._local is not None
        child, folder = client._local._child, client._local._folder
        with client.create() as sandbox:
            assert sandbox.exec("echo local").stdout == "local\n"
        assert folder.stat().st_mode & 0o077 == 0
    assert child.poll() is not None and not folder.exists()


def arguments_of(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/cmdline").read_text().split("\0")


async def test_a_server_is_started_as_it_was_asked_for(tmp_path: Path) -> None:
    with Client(state_dir=tmp_path, provider="native", allow_host_networks=True) as client:
        assert client._local is not None and "--allow-host-networks" in arguments_of(client._local._child.pid)
        client.create().destroy()
        assert (tmp_path / "eyot.db").exists()
        with pytest.raises(Unavailable, match="no-such-provider"):
            Client(provider="no-such-provider")
    async with AsyncClient(state_dir=tmp_path, provider="native", allow_host_networks=True) as other:
        await other.version()
        assert other._start is not None and "--allow-host-networks" in arguments_of(other._start.result()._child.pid)


@pytest.mark.parametrize("kind", [Client, AsyncClient])
@pytest.mark.parametrize(
    ("name", "value", "command"),
    [
        ("provider", "memory", "eyot --provider PROVIDER serve"),
        ("state_dir", "state", "eyot --state DIR serve"),
        ("allow_host_networks", True, "eyot serve --allow-host-networks"),
        ("agents_dir", Path("agents"), "eyot serve --agents DIR"),
        ("model", "ollama/qwen3", "eyot serve --model PROVIDER/MODEL"),
    ],
)
def test_an_option_of_a_server_that_is_started_is_refused_beside_a_url(kind: Any, name: str, value: Any, command: str) -> None:
    with pytest.raises(Invalid) as caught:
        kind("http://team:7070", **{name: value})
    assert str(caught.value) == f"`{name}` is for a server that the client starts, and this one is of http://team:7070"
    hint = f"start that server with it: `{command}`; or give no URL, and the client starts one"
    assert (caught.value.field, caught.value.hint) == (name, hint)


def test_an_option_of_a_server_that_is_started_is_refused_where_the_environment_names_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("EYOT_SERVER", "http://team:7070")
    with pytest.raises(Invalid, match="and EYOT_SERVER names http://team:7070") as caught:
        Client(agents_dir="agents")
    assert caught.value.hint is not None and "unset EYOT_SERVER" in caught.value.hint
    Client(allow_host_networks=False).close()


async def test_an_async_client_starts_a_server_too(state: str) -> None:
    async with AsyncClient() as client:
        async with await client.create() as sandbox:
            assert (await sandbox.exec("echo local")).stdout == "local\n"
        assert client._start is not None
        child = client._start.result()._child
    assert child.poll() is not None


def test_a_client_that_is_closed_ends_what_runs_and_then_its_server(state: str) -> None:
    with Client() as client:
        assert client._local is not None
        child = client._local._child
        sandbox = client.create()
        stream = sandbox.exec_stream("echo ready; sleep 600")
        assert next(iter(stream)).data == b"ready\n"
        events = client.events(follow=True)
        next(events)
    with pytest.raises(Unavailable):
        stream.wait()
    with pytest.raises(Unavailable, match="closed"):
        sandbox.exec("true")
    with pytest.raises(Unavailable, match="closed"):
        sandbox.exec_stream("true")
    assert child.returncode == 0
    with Client() as other:
        other.sandbox(sandbox.id).destroy()


async def test_an_async_client_that_is_closed_ends_what_runs_and_then_its_server(state: str) -> None:
    client = AsyncClient()
    sandbox = await client.create()
    assert client._start is not None
    child = client._start.result()._child
    async with sandbox.exec_stream("echo ready; sleep 600") as stream:
        assert (await anext(aiter(stream))).data == b"ready\n"
        await client.close()
        with pytest.raises(Unavailable):
            await stream.wait()
    with pytest.raises(Unavailable, match="closed"):
        await sandbox.exec("true")
    with pytest.raises(Unavailable, match="closed"):
        async with sandbox.exec_stream("true"):
            pass
    assert child.returncode == 0
    with Client() as other:
        other.sandbox(sandbox.id).destroy()


async def test_a_call_that_the_client_s_own_close_cuts_says_that_the_client_is_closed() -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readline()
        asked.set()
        await reader.read()
        writer.close()

    for call in (AsyncSandbox.read_file, AsyncSandbox.exec):
        asked = asyncio.Event()
        async with await asyncio.start_server(silent, "127.0.0.1", 0) as listener:
            client = AsyncClient(f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}")
            cut = asyncio.create_task(call(client.sandbox("x"), "true"))
            await asked.wait()
            await client.close()
            with pytest.raises(Unavailable, match="this client is closed"):
                await cut


async def test_a_client_that_is_closed_starts_no_server() -> None:
    client = AsyncClient()
    await client.close()
    with pytest.raises(Unavailable, match="closed"):
        await client.version()
    assert client._start is None


async def test_a_first_call_that_is_cancelled_leaves_its_server_to_the_client(state: str) -> None:
    before = server_processes()
    async with AsyncClient() as client:
        first = asyncio.create_task(client.version())
        while not server_processes() - before:
            await asyncio.sleep(0)
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
    assert not server_processes() - before


async def test_calls_at_once_start_one_server_and_one_that_is_cancelled_harms_no_other(state: str) -> None:
    before = server_processes()
    async with AsyncClient() as client:
        calls = [asyncio.create_task(client.version()) for _ in range(3)]
        while not server_processes() - before:
            await asyncio.sleep(0)
        calls[0].cancel()
        assert await calls[1] == await calls[2]
        assert len(server_processes() - before) == 1
    assert not server_processes() - before


async def test_a_server_that_did_not_start_is_started_by_the_next_call(state: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with AsyncClient() as client:
        with monkeypatch.context() as patch:
            patch.setenv("EYOT_BIN", "/nowhere/eyot")
            with pytest.raises(Unavailable):
                await client.version()
        assert await client.version()


def test_a_local_server_ends_with_a_program_that_forgets_to_close(state: str) -> None:
    program = "from eyot import Client; client = Client(); client.version(); print(client._local._child.pid)"
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert not os.path.exists(f"/proc/{int(done.stdout)}")


def test_a_local_server_outlives_the_forks_of_its_program(state: str) -> None:
    program = """if True:
        import os, sys
        from eyot import Client
        with Client() as client:
            pid = os.fork()
            if pid == 0:
                sys.exit(0)
            os.waitpid(pid, 0)
            with Client(f"unix:{client._address.socket}") as other:
                print(other.version() == client.version(), client._local._child.poll())
    """
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", program], capture_output=True, text=True)
    assert done.stdout == "True None\n", done.stderr


def test_a_local_server_ends_with_a_program_that_is_killed(state: str) -> None:
    program = "from eyot import Client; client = Client(); print(client._local._child.pid, flush=True); input()"
    command = [sys.executable, "-c", program]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        server = os.pidfd_open(int(child.stdout.readline()))
        child.kill()
        ended, _, _ = select.select([server], [], [], 30)
        os.close(server)
    assert ended


def test_without_an_address_and_a_program_the_error_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("EYOT_BIN", raising=False)
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(Unavailable) as caught:
        Client()
    assert caught.value.hint is not None and "EYOT_BIN" in caught.value.hint


def test_a_local_server_that_does_not_start_says_why(monkeypatch: pytest.MonkeyPatch, state: str) -> None:
    monkeypatch.setenv("EYOT_PROVIDER", "no-such-provider")
    with pytest.raises(Unavailable, match="no-such-provider"):
        Client()


async def test_a_local_server_that_can_t_keep_its_state_says_why(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    nowhere = tmp_path / "file" / "state"
    with pytest.raises(Unavailable, match="start a local server: open the state folder: not a directory"):
        Client(state_dir=nowhere)
    async with AsyncClient(state_dir=nowhere) as client:
        with pytest.raises(Unavailable, match="start a local server: open the state folder: not a directory"):
            await client.version()


#: Ends as the program does: an error, its hint or its usage, behind what it said before.
SPEAKS_AND_ENDS = """#!/bin/sh
printf 'serving soon\\neyot: %s\\n' "$SAID" >&2
exit 125
"""


@pytest.mark.parametrize(
    ("said", "message", "hint"),
    [
        ("no Docker Engine answers\nhint: start it", "no Docker Engine answers", "start it"),
        (
            "invalid value 'x' for '--provider'\n  [possible values: native, docker]\n\nFor more information, try '--help'.",
            "invalid value 'x' for '--provider'",
            "possible values: native, docker",
        ),
        ("the state has moved", "the state has moved", None),
    ],
)
async def test_what_a_local_server_says_at_its_end_is_the_message_and_its_hint(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, said: str, message: str, hint: str | None
) -> None:
    program = tmp_path / "eyot"
    program.write_text(SPEAKS_AND_ENDS)
    program.chmod(0o755)
    monkeypatch.setenv("EYOT_BIN", str(program))
    monkeypatch.setenv("SAID", said)
    with pytest.raises(Unavailable) as caught:
        Client()
    assert (str(caught.value), caught.value.reason, caught.value.hint) == (f"start a local server: {message}", message, hint)
    async with AsyncClient() as client:
        with pytest.raises(Unavailable) as caught:
            await client.version()
        assert (str(caught.value), caught.value.hint) == (f"start a local server: {message}", hint)


def test_a_provider_that_there_is_not_is_answered_with_those_that_there_are() -> None:
    with pytest.raises(Unavailable) as caught:
        Client(provider="nope")
    assert "'nope'" in str(caught.value) and "--help" not in str(caught.value)
    assert caught.value.hint is not None and "native, docker" in caught.value.hint


#: Listens as a server does, and ends with a reason and without an answer when somebody has connected.
LISTENS_AND_ENDS = """#!{python}
import os, socket, sys
path = sys.argv[sys.argv.index("--listen") + 1].removeprefix("unix:")
with socket.socket(socket.AF_UNIX) as listener:
    listener.settimeout(20)
    listener.bind(path)
    listener.listen()
    listener.accept()
    os.remove(path)
    sys.exit("the state has moved")
"""


def test_a_local_server_that_ends_before_it_answers_says_why(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program = tmp_path / "eyot"
    program.write_text(LISTENS_AND_ENDS.format(python=sys.executable))
    program.chmod(0o755)
    monkeypatch.setenv("EYOT_BIN", str(program))
    with pytest.raises(Unavailable, match="it exited with 1; it said: the state has moved"):
        Client()


@pytest.mark.needs("reopen")
def test_a_server_that_dies_under_a_command_is_unavailable(state: str) -> None:
    with Client() as client, Client() as other:
        assert client._local is not None
        child, sandbox = client._local._child, client.create()
        with sandbox.exec_stream("echo ready; sleep 600") as stream:
            output = iter(stream)
            assert next(output).data == b"ready\n"
            killer = threading.Timer(0.3, child.kill)
            killer.start()
            with pytest.raises(Unavailable):
                sandbox.exec("sleep 600")
            with pytest.raises(Unavailable):
                stream.wait()
            killer.join()
        # Another server finds the sandbox as it was.
        assert other.sandbox(sandbox.id).exec("echo alive").stdout == "alive\n"
        other.sandbox(sandbox.id).destroy()


def test_an_interrupt_ends_the_call_and_the_command(server: str, client: Client) -> None:
    with client.create() as sandbox:
        # Below a shell's background job the signal is ignored, and Python leaves that as it is.
        heard = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
        call = f"Client({server!r}).sandbox({sandbox.id!r}).exec('touch begun; sleep 5432')"
        program = f"{heard}; from eyot import Client; {call}"
        with subprocess.Popen([sys.executable, "-c", program], stderr=subprocess.DEVNULL) as child:
            sandbox.exec("until [ -e begun ]; do sleep 0.02; done", timeout_ms=20_000)
            child.send_signal(signal.SIGINT)
            try:
                assert child.wait(20) != 0
            finally:
                child.kill()
        gone = "for i in $(seq 100); do pgrep -f 'sleep 543[2]' || exit 0; sleep 0.1; done; exit 1"
        assert sandbox.exec(gone).exit_code == 0


def test_a_server_that_is_not_there_is_unavailable() -> None:
    with Client("unix:/nowhere.sock") as client:
        with pytest.raises(Unavailable):
            client.create()
        with pytest.raises(Unavailable):
            client.sandbox("x").exec_stream("true")


def test_an_address_that_is_none_is_refused() -> None:
    for text in ("localhost:7070", "unix:relative", "ftp://x"):
        with pytest.raises(Invalid):
            ServerAddress.parse(text)


def test_a_server_that_the_configuration_names_keeps_nobody_from_starting_one(
    state: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "eyot").mkdir()
    (tmp_path / "eyot" / "config.toml").write_text('server = "http://127.0.0.1:9"\n')
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    with Client() as client, client.create() as sandbox:
        assert sandbox.exec("echo local").stdout == "local\n"
