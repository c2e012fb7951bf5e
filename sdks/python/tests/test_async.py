"""The client for async code. What both share is tested with the other one; here is what they don't."""

from __future__ import annotations

import asyncio
import inspect
import io
import time
from collections.abc import AsyncIterator

import pytest

from eyot import (
    AlreadyExists,
    AsyncClient,
    AsyncSandbox,
    Client,
    NotFound,
    Outcome,
    Sandbox,
    SandboxNotFound,
    Unavailable,
)


@pytest.mark.parametrize(("sync", "other"), [(Client, AsyncClient), (Sandbox, AsyncSandbox)])
def test_both_clients_have_the_same_methods_and_parameters(sync: type, other: type) -> None:
    def public(of: type) -> dict[str, list[str]]:
        members = inspect.getmembers(of, inspect.isfunction)
        own = {name: one for name, one in members if not name.startswith("_") and name != "asynchronous"}
        return {name: list(inspect.signature(one).parameters) for name, one in own.items()}

    assert public(sync) == public(other)


async def test_commands_files_and_processes_work(async_sandbox: AsyncSandbox) -> None:
    sandbox = async_sandbox
    assert (await sandbox.exec("cat; exit 3", stdin="hi")).exit_code == 3
    await sandbox.write_file("a/b", "x\ny\n")
    await sandbox.append_file("a/b", b"z\n")
    assert await sandbox.read_text("a/b") == "x\ny\nz\n" and await sandbox.read_file("a/b", offset=4) == b"z\n"
    assert await sandbox.exists("a/b") and (await sandbox.stat("a/b")).size == 6
    assert [entry.name for entry in await sandbox.list("a")] == ["b"]
    assert (await sandbox.glob("**/b")).paths == ["/workspace/a/b"]
    assert (await sandbox.grep("y")).matches[0].line_number == 2
    await sandbox.mkdir("d")
    assert await sandbox.tar_in("d", await sandbox.tar_out("a")) == 2
    await sandbox.rename("d/a", "e")
    await sandbox.remove("e", recursive=True)
    process = await sandbox.start("echo 1; sleep 0.1; echo 2")
    assert b"".join([chunk.data async for chunk in sandbox.logs(process, follow=True)]) == b"1\n2\n"
    assert (await sandbox.wait(process)).ended == Outcome("exited", code=0)
    sleeper = await sandbox.start(["sleep", "600"])
    assert len(await sandbox.processes()) == 2
    await sandbox.kill(sleeper)
    assert (await sandbox.usage()).uptime_ms is not None
    with pytest.raises(NotFound):
        await sandbox.read_file("nope")


async def test_sandboxes_are_made_found_listed_put_to_sleep_and_destroyed(async_client: AsyncClient) -> None:
    sandbox = await async_client.create(labels={"mark": "async"})
    assert sandbox.info is not None
    with pytest.raises(AlreadyExists):
        await async_client.create(name=sandbox.info.name)
    assert (await async_client.get_or_create(sandbox.info.name)).id == sandbox.id
    assert [info.id async for info in async_client.list(labels={"mark": "async"})] == [sandbox.id]
    await sandbox.sleep()
    assert (await sandbox.refresh()).status == "sleeping"
    assert (await sandbox.wake()).status == "running"
    await sandbox.destroy()
    await sandbox.destroy()
    undone = await async_client.create()
    await undone.abandon()
    for gone in (sandbox, undone):
        with pytest.raises(SandboxNotFound):
            await async_client.get(gone.id)


async def test_commands_run_side_by_side(async_sandbox: AsyncSandbox) -> None:
    await async_sandbox.exec("true")
    begun = time.monotonic()
    results = await asyncio.gather(*(async_sandbox.exec("sleep 1") for _ in range(20)))
    assert all(result.ok for result in results) and time.monotonic() - begun < 15


async def _is_gone(sandbox: AsyncSandbox, pattern: str) -> bool:
    waiting = f"for i in $(seq 100); do pgrep -f '{pattern}' >/dev/null || exit 0; sleep 0.1; done; exit 1"
    return (await sandbox.exec(waiting)).exit_code == 0


async def _begun(sandbox: AsyncSandbox) -> None:
    await sandbox.exec("until [ -e begun ]; do sleep 0.02; done", timeout_ms=20_000)


@pytest.mark.parametrize("stdin", [None, b"x" * 2_000_000], ids=["small", "large"])
async def test_cancelling_the_task_kills_the_command(async_sandbox: AsyncSandbox, stdin: bytes | None) -> None:
    task = asyncio.create_task(async_sandbox.exec("touch begun; sleep 7654", stdin=stdin))
    await _begun(async_sandbox)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await _is_gone(async_sandbox, "sleep 765[4]")
    assert (await async_sandbox.exec("echo alive")).stdout == "alive\n"


async def test_a_stream_gives_output_takes_input_and_dies_with_its_block(async_sandbox: AsyncSandbox) -> None:
    async with async_sandbox.exec_stream("cat", stdin=True) as stream:

        async def feed() -> None:
            for _ in range(40):
                await stream.write(b"y" * 50_000)
            await stream.close_stdin()

        feeder = asyncio.create_task(feed())
        assert sum([len(output.data) async for output in stream]) == 2_000_000
        await feeder
        assert stream.result is not None and stream.result.outcome == Outcome("exited", code=0)
    async with async_sandbox.exec_stream("touch begun; sleep 8765") as stream:
        await _begun(async_sandbox)
    assert await _is_gone(async_sandbox, "sleep 876[5]")
    with pytest.raises(Unavailable):
        await stream.wait()


@pytest.mark.needs("signals", "pty")
async def test_a_stream_takes_signals_kills_and_sizes(async_sandbox: AsyncSandbox) -> None:
    async with async_sandbox.exec_stream("touch begun; sleep 600") as stream:
        await _begun(async_sandbox)
        await stream.signal(15)
        assert (await stream.wait()).exit_code == 143
    async with async_sandbox.exec_stream("sleep 600") as stream:
        await stream.kill()
        assert (await stream.wait()).outcome.kind == "cancelled"
    async with async_sandbox.exec_stream("read x; stty size", stdin=True, pty=(10, 20)) as stream:
        await stream.resize(30, 40)
        await stream.write("\n")
        assert "30 40" in (await stream.wait()).stdout


async def test_a_watch_tells_what_happens(async_sandbox: AsyncSandbox) -> None:
    async with async_sandbox.watch() as events:
        await async_sandbox.mkdir("d")
        event = await anext(events)
    assert (event.kind, event.path) == ("created", "/workspace/d")


async def test_a_watch_tells_names_with_every_line_separator_of_unicode(async_sandbox: AsyncSandbox) -> None:
    name = "a\u2028b\u2029c\u0085d"
    async with async_sandbox.watch() as events:
        await async_sandbox.mkdir(name)
        assert (await anext(events)).path == f"/workspace/{name}"


async def test_files_and_trees_go_in_and_out_in_pieces(async_client: AsyncClient, async_sandbox: AsyncSandbox) -> None:
    sandbox = async_sandbox

    async def pieces() -> AsyncIterator[bytes]:
        for at in range(64):
            yield bytes([at]) * 65_536

    assert await sandbox.write_file("a/big", pieces()) == 64 * 65_536
    async with sandbox.read_stream("a/big") as data:
        assert b"".join([piece async for piece in data]) == b"".join([piece async for piece in pieces()])
    assert await sandbox.append_file("a/big", iter([b"a", b"b"])) == 64 * 65_536 + 2
    with io.BytesIO(b"from a file") as file:
        assert await sandbox.write_file("copy", file) == 11
    async with await async_client.create() as other:
        async with sandbox.tar_out_stream("a") as tar:
            assert await other.tar_in(".", tar) == 2
        assert (await other.stat("a/big")).size == 64 * 65_536 + 2
    with pytest.raises(NotFound):
        async with sandbox.read_stream("nope"):
            pass


async def test_a_server_that_is_not_there_is_unavailable() -> None:
    async with AsyncClient("unix:/nowhere.sock") as client:
        with pytest.raises(Unavailable):
            await client.create()
        with pytest.raises(Unavailable):
            async with client.sandbox("x").exec_stream("true"):
                pass
