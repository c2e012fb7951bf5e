"""Started processes."""

from __future__ import annotations

import time

import pytest

from eyot import Client, Conflict, Invalid, NotFound, Outcome, Sandbox, TimedOut, Unavailable


def test_a_started_process_is_waited_for_and_its_log_is_kept(sandbox: Sandbox) -> None:
    process = sandbox.start("echo out; echo err >&2; exit 3")
    ended = sandbox.wait(process)
    assert ended.id == process.id and ended.ended == Outcome("exited", code=3) and not ended.is_running
    chunks = {chunk.stream: chunk.data for chunk in sandbox.logs(process)}
    assert chunks == {"stdout": b"out\n", "stderr": b"err\n"}
    assert [chunk.data for chunk in sandbox.logs(process.id, stream="stderr")] == [b"err\n"]


def test_a_log_is_followed_until_the_process_ends(sandbox: Sandbox) -> None:
    process = sandbox.start("for i in 1 2 3; do echo $i; sleep 0.1; done")
    assert b"".join(chunk.data for chunk in sandbox.logs(process, follow=True)) == b"1\n2\n3\n"


def test_a_log_can_be_read_from_its_end_or_on_from_an_offset(sandbox: Sandbox) -> None:
    process = sandbox.wait(sandbox.start("seq 10"))
    assert b"".join(chunk.data for chunk in sandbox.logs(process, tail_lines=2)) == b"9\n10\n"
    assert b"".join(chunk.data for chunk in sandbox.logs(process, offset=18)) == b"10\n"


def test_a_process_is_listed_until_it_is_killed(sandbox: Sandbox) -> None:
    process = sandbox.start(["sleep", "600"])
    assert process.is_running and process.id in [one.id for one in sandbox.processes()]
    sandbox.kill(process)
    assert sandbox.wait(process).ended == Outcome("signaled", signal=9)


@pytest.mark.needs("signals")
@pytest.mark.parametrize(("name", "number"), [("TERM", 15), ("SIGTERM", 15), ("kill", 9), ("sigint", 2), ("15", 15)])
def test_a_signal_may_be_named_as_on_the_command_line(sandbox: Sandbox, name: str, number: int) -> None:
    process = sandbox.start(["sleep", "600"])
    sandbox.kill(process, name)
    assert sandbox.wait(process).ended == Outcome("signaled", signal=number)
    with sandbox.exec_stream(["sleep", "600"]) as stream:
        stream.signal(name)
        assert stream.wait().outcome == Outcome("signaled", signal=number)


@pytest.mark.parametrize("wrong", ["NOPE", "", 0, 65, True])
def test_a_signal_that_there_is_not_is_refused(sandbox: Sandbox, wrong: int | str) -> None:
    with pytest.raises(Invalid, match=r"kill a process: `signal` (is unknown: .*; use TERM, KILL, INT|must be)") as caught:
        sandbox.kill("p1", wrong)
    assert caught.value.field == "signal"


@pytest.mark.needs("signals")
def test_a_process_gets_the_signal_that_is_asked_for(sandbox: Sandbox) -> None:
    process = sandbox.start(["sleep", "600"])
    sandbox.kill(process, 15)
    assert sandbox.wait(process).ended == Outcome("signaled", signal=15)


@pytest.mark.needs("pty")
def test_a_process_has_input_a_terminal_and_a_deadline(sandbox: Sandbox) -> None:
    process = sandbox.start("cat; read line; echo got $line", stdin="one\n")
    assert sandbox.wait(process).ended == Outcome("exited", code=0)
    assert b"".join(chunk.data for chunk in sandbox.logs(process)) == b"one\ngot\n"
    shell = sandbox.start("stty size; read line; echo got $line", stdin_follows=True, pty=(7, 33))
    sandbox.write_stdin(shell, "typed\n")
    assert not sandbox.wait(shell).timed_out
    shown = b"".join(chunk.data for chunk in sandbox.logs(shell))
    assert b"7 33" in shown and b"got typed" in shown
    with pytest.raises(Conflict):
        sandbox.write_stdin(process, b"more", end=True)
    late = sandbox.wait(sandbox.start("sleep 60", timeout_ms=300))
    assert late.timed_out and late.ended == Outcome("signaled", signal=9)


def test_a_log_in_which_nothing_comes_is_timed_out(sandbox: Sandbox) -> None:
    process = sandbox.start("echo first; sleep 60")
    chunks = sandbox.logs(process, follow=True, read_timeout_ms=1_000)
    assert next(chunks).data == b"first\n"
    with pytest.raises(TimedOut):
        next(chunks)


def test_a_process_that_is_missing_is_not_found(sandbox: Sandbox) -> None:
    with pytest.raises(NotFound):
        sandbox.wait("p999")
    with pytest.raises(NotFound):
        list(sandbox.logs("p999"))


def test_usage_counts_processes(sandbox: Sandbox) -> None:
    before = sandbox.usage()
    sandbox.start(["sleep", "600"])
    assert before.processes == 0 and sandbox.usage().processes == 1


@pytest.mark.needs("live_processes")
def test_everything_that_runs_is_listed(sandbox: Sandbox) -> None:
    started = sandbox.start(["sleep", "9876"])
    deadline = time.monotonic() + 30
    while True:
        live = sandbox.live_processes()
        assert not live.truncated
        found = next(process for process in live.processes if process.pid == started.pid)
        # Just after its exec it has no command line yet, and its memory is counted a little later.
        if (found.command == "sleep 9876" and found.memory_bytes != 0) or time.monotonic() > deadline:
            break
    assert found.command == "sleep 9876" and found.user == "user" and found.memory_bytes != 0
    # In memory nothing is counted by process.
    assert sandbox.info is not None and (found.memory_bytes is None) == (sandbox.info.provider == "memory")


def test_who_only_looks_on_lets_the_sandbox_fall_asleep(client: Client) -> None:
    with client.create(idle_timeout_ms=1000, on_idle="sleep") as sandbox:
        process = sandbox.start("sleep 600")
        with pytest.raises(Unavailable) as caught:
            sandbox.wait(process, observe=True)
        assert caught.value.sleeping and sandbox.refresh().status == "sleeping"
