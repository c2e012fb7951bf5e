"""Commands and terminals that outlive their connection."""

from __future__ import annotations

import pytest

from eyot import AsyncSandbox, NotFound, Sandbox, TimedOut


def test_a_kept_command_is_read_on_behind_what_was_read(sandbox: Sandbox) -> None:
    waits = "echo first; cat; until [ -e go ]; do sleep 0.02; done; echo second >&2; exit 3"
    with sandbox.keep(waits, stdin="typed\n", timeout_ms=60_000) as command:
        read = ""
        for output in command:
            read += output.text
            if read == "first\ntyped\n":
                break
        assert command.result is None
    sandbox.write_file("go", "")
    with sandbox.attach(command.id, after=command.last_event) as again:
        (second,) = list(again)
        assert (second.type, second.text) == ("stderr", "second\n") and again.id == command.id
        assert again.result is not None and again.wait().exit_code == 3


def test_a_kept_command_is_killed_and_one_that_is_not_there_is_not_found(sandbox: Sandbox) -> None:
    with sandbox.keep(["sleep", "60"]) as command:
        command.kill()
        assert command.wait().aborted
    with pytest.raises(NotFound):
        sandbox.attach("ex_none")
    with pytest.raises(NotFound):
        sandbox.keep(["no-such-program"])


@pytest.mark.needs("pty")
def test_a_terminal_is_attached_to_again_and_shows_what_it_showed(sandbox: Sandbox) -> None:
    opened = sandbox.open_terminal("read line; echo got $line; read line; stty size", rows=10, cols=40)
    with sandbox.attach_terminal(opened) as terminal:
        terminal.write("once\n")
        shown = ""
        for output in terminal:
            shown += output.text
            if "got once" in shown:
                break
    assert [(one.id, one.command is not None) for one in sandbox.terminals()] == [(opened.id, True)]
    with sandbox.attach_terminal(opened.id) as again:
        again.resize(33, 99)
        again.write("twice\n")
        assert "got once" in (rest := "".join(output.text for output in again)) and "33 99" in rest
        assert again.result is not None and again.result.ok
    shell = sandbox.open_terminal()
    sandbox.end_terminal(shell)
    with pytest.raises(NotFound):
        sandbox.attach_terminal(shell)


def test_a_stream_that_is_silent_for_too_long_is_timed_out(sandbox: Sandbox) -> None:
    with sandbox.exec_stream("echo first; sleep 60", read_timeout_ms=2_000) as stream, pytest.raises(TimedOut):
        stream.wait()


@pytest.mark.needs("pty")
async def test_the_same_for_async_code(async_sandbox: AsyncSandbox) -> None:
    async with async_sandbox.keep("echo out; sleep 60", linger_ms=60_000) as command:
        async for output in command:
            assert output.text == "out\n"
            break
    async with async_sandbox.attach(command.id, after=command.last_event) as again:
        await again.kill()
        assert (await again.wait()).aborted
    opened = await async_sandbox.open_terminal("read line; echo got $line")
    async with async_sandbox.attach_terminal(opened) as terminal:
        await terminal.write("once\n")
        assert "got once" in "".join([output.text async for output in terminal])
    assert [one.id for one in await async_sandbox.terminals()] in ([opened.id], [])
    with pytest.raises(TimedOut):
        async with async_sandbox.exec_stream("sleep 60", read_timeout_ms=500) as stream:
            await stream.wait()
