"""Commands whose output comes as it is written."""

from __future__ import annotations

import threading

import pytest

from eyot import ExecStream, NotFound, Outcome, Sandbox, Unavailable


def test_output_comes_before_the_command_ends(sandbox: Sandbox) -> None:
    with sandbox.exec_stream("echo first; read line; echo second >&2", stdin=True) as stream:
        output = iter(stream)
        first = next(output)
        assert (first.type, first.data) == ("stdout", b"first\n") and stream.result is None
        stream.write("go\n")
        second = next(output)
        assert (second.type, second.data) == ("stderr", b"second\n")
        assert stream.wait().outcome == Outcome("exited", code=0)


def test_more_input_than_the_window_is_held_up_and_arrives(sandbox: Sandbox) -> None:
    with sandbox.exec_stream("sleep 0.3; wc -c", stdin=True) as stream:
        stream.write(b"x" * 2_000_000)
        stream.close_stdin()
        assert stream.wait().stdout == "2000000\n"


def test_one_thread_writes_while_another_reads(sandbox: Sandbox) -> None:
    for _ in range(20):  # neither may keep the other from what it waits for, whoever comes first
        with sandbox.exec_stream("cat", stdin=True, timeout_ms=30_000) as stream:

            def feed(stream: ExecStream = stream) -> None:
                for _ in range(20):
                    stream.write(b"y" * 50_000)
                stream.close_stdin()

            feeder = threading.Thread(target=feed)
            feeder.start()
            received = sum(len(output.data) for output in stream)
            feeder.join()
            assert received == 1_000_000


@pytest.mark.needs("signals")
def test_a_signal_reaches_the_command(sandbox: Sandbox) -> None:
    with sandbox.exec_stream("trap 'echo caught; exit 7' INT; echo ready; while :; do sleep 0.05; done") as stream:
        output = iter(stream)
        assert next(output).data == b"ready\n"
        stream.signal(2)
        result = stream.wait()
        assert result.exit_code == 7 and "caught" in result.stdout


def test_a_kill_is_a_cancelled_result(sandbox: Sandbox) -> None:
    with sandbox.exec_stream("echo ready; sleep 60") as stream:
        next(iter(stream))
        stream.kill()
        result = stream.wait()
        assert result.aborted and result.outcome.kind == "cancelled"


def test_leaving_the_block_kills_the_command(sandbox: Sandbox) -> None:
    with sandbox.exec_stream("echo ready; sleep 6543") as stream:
        next(iter(stream))
    gone = sandbox.exec("for i in $(seq 100); do pgrep -f 'sleep 654[3]' || exit 0; sleep 0.1; done; exit 1")
    assert gone.exit_code == 0
    with pytest.raises(Unavailable):
        stream.wait()


@pytest.mark.needs("pty")
def test_a_terminal_has_the_size_that_was_asked_for(sandbox: Sandbox) -> None:
    with sandbox.exec_stream("stty size", pty=(33, 99)) as stream:
        assert b"33 99" in b"".join(output.data for output in stream)


def test_a_program_that_is_missing_is_not_found(sandbox: Sandbox) -> None:
    with pytest.raises(NotFound), sandbox.exec_stream(["no-such-program"]) as stream:
        stream.wait()


def test_a_sandbox_that_is_missing_is_not_found(sandbox: Sandbox) -> None:
    sandbox.destroy()
    with pytest.raises(NotFound):
        sandbox.exec_stream("true")
