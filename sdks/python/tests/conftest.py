"""A real server for the tests: the program that `EYOT_BIN` names, on a state folder of its own."""

from __future__ import annotations

import contextlib
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from eyot import AsyncClient, AsyncSandbox, Client, Sandbox, Unsupported
from eyot._local_server import LocalServer, find_binary

# A kernel or a host may leave these out. Without anything else the native provider is broken, and no test is skipped for it.
MAY_BE_MISSING_NATIVELY = {"network_egress"}


def pytest_sessionstart(session: pytest.Session) -> None:
    if find_binary() is None:
        pytest.exit("these tests need a server: set EYOT_BIN to the program `eyot`", returncode=3)


def pytest_configure(config: pytest.Config) -> None:
    words = "needs(*what): skips a test on a provider without these capabilities; also `images` and `python3`"
    config.addinivalue_line("markers", words)


@pytest.fixture(autouse=True)
def skip_what_the_provider_lacks(request: pytest.FixtureRequest) -> None:
    """Skips what the provider that `EYOT_PROVIDER` names does not say that it can."""
    needs = {need for mark in request.node.iter_markers("needs") for need in mark.args}
    if not needs:
        return
    lacks = needs - request.getfixturevalue("capable_of")
    if lacks:
        provider = request.getfixturevalue("client").capabilities().provider
        missing_natively = lacks - MAY_BE_MISSING_NATIVELY
        if provider == "native" and missing_natively:
            pytest.fail(f"the native provider does not say that it has {', '.join(sorted(missing_natively))}")
        pytest.skip(f"a sandbox of the provider `{provider}` has no {', '.join(sorted(lacks))}")


@pytest.fixture(scope="session")
def capable_of(client: Client) -> set[str]:
    """What the provider can, and what its sandboxes have."""
    told = client.capabilities()
    able = set(told.capabilities)
    # In memory there are only images that were made of snapshots.
    if told.provider != "memory":
        with contextlib.suppress(Unsupported):
            client.images.list()
            able.add("images")
    with client.create() as sandbox:
        if sandbox.exec("command -v python3").ok:
            able.add("python3")
    return able


def skip_without_users(sandbox: Sandbox | AsyncSandbox) -> None:
    """Skips a test that runs commands as other users, where a sandbox has one user alone."""
    if sandbox.info is None or sandbox.info.isolation["identity"] != "range":
        pytest.skip("this host gives sandboxes a single identity, which has no other users")


@pytest.fixture(scope="session")
def state(worker_environment: pytest.MonkeyPatch) -> Iterator[str]:
    """A state folder, in the environment of whatever starts a server."""
    folder = tempfile.mkdtemp(prefix="eyot-state-")
    worker_environment.setenv("EYOT_STATE", folder)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def worker_environment() -> Iterator[pytest.MonkeyPatch]:
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("EYOT_SERVER", raising=False)
        patch.delenv("EYOT_API_KEY", raising=False)
        yield patch


@pytest.fixture(scope="session")
def server(state: str) -> Iterator[str]:
    """A server's address."""
    local = LocalServer()
    yield f"unix:{local.address.socket}"
    with Client(f"unix:{local.address.socket}") as client:
        for info in list(client.list()):
            client.sandbox(info.id).destroy()
    local.close()


@contextmanager
def serving(*options: str) -> Iterator[int]:
    """A server that asks for keys, on a TCP port."""
    binary = find_binary()
    assert binary is not None
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    child = subprocess.Popen([binary, "serve", "--listen", f"127.0.0.1:{port}", *options], stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 15
        while True:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            assert child.poll() is None and time.monotonic() < deadline, "the server does not start"
            time.sleep(0.02)
        yield port
    finally:
        child.terminate()
        child.wait()


@pytest.fixture(scope="session")
def server_with_keys(state: str) -> Iterator[tuple[str, str, str]]:
    """A server on TCP, and the keys of two pools."""
    binary = find_binary()
    assert binary is not None

    def key(pool: str) -> str:
        command = [binary, "--quiet", "keys", "create", f"test-{pool}", "--pool", pool]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()[-1]

    keys = key("one"), key("two")
    with serving() as port:
        yield f"http://127.0.0.1:{port}", *keys


@pytest.fixture(scope="session")
def client(server: str) -> Iterator[Client]:
    with Client(server) as client:
        yield client


@pytest.fixture
def sandbox(client: Client) -> Iterator[Sandbox]:
    with client.create() as sandbox:
        yield sandbox


@pytest.fixture
async def async_client(server: str) -> AsyncIterator[AsyncClient]:
    async with AsyncClient(server) as client:
        yield client


@pytest.fixture
async def async_sandbox(async_client: AsyncClient) -> AsyncIterator[AsyncSandbox]:
    async with await async_client.create() as sandbox:
        yield sandbox


def server_processes() -> set[int]:
    """The servers that this process has started and not waited for."""
    children: set[int] = set()
    for task in Path("/proc/self/task").iterdir():
        # A thread may end meanwhile; its children are another one's then.
        with contextlib.suppress(FileNotFoundError):
            children |= {int(pid) for pid in (task / "children").read_text().split()}
    return children
