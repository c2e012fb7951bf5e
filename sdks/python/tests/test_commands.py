"""Commands whose result is one answer."""

from __future__ import annotations

from typing import Any

import pytest
from conftest import skip_without_users

from eyot import AsyncSandbox, Client, CommandFailed, Invalid, NotFound, Outcome, Sandbox, Unsupported, UnsupportedOperation
from eyot._exec_socket import ExecSocketState


def test_a_string_is_run_by_the_shell_and_a_list_is_not(sandbox: Sandbox) -> None:
    assert sandbox.exec("echo $((1 + 1)) | cat").stdout == "2\n"
    assert sandbox.exec(["echo", "$((1 + 1)) | cat"]).stdout == "$((1 + 1)) | cat\n"


def test_a_command_that_fails_is_a_result(sandbox: Sandbox) -> None:
    result = sandbox.exec("echo out; echo err >&2; exit 3")
    assert (result.exit_code, result.stdout, result.stderr) == (3, "out\n", "err\n")
    assert result.outcome == Outcome("exited", code=3) and not result.ok


@pytest.mark.needs("signals")
def test_a_signal_is_told_apart_from_an_exit(sandbox: Sandbox) -> None:
    result = sandbox.exec(["sh", "-c", "kill -9 $$"])
    assert result.outcome == Outcome("signaled", signal=9) and result.exit_code == 137


def test_a_deadline_is_a_result_that_keeps_what_was_written(sandbox: Sandbox) -> None:
    result = sandbox.exec("echo before; sleep 60", timeout_ms=3_000)
    assert result.timed_out and result.outcome.kind == "timed_out" and result.exit_code == 124
    assert result.stdout == "before\n" and result.duration_ms < 30_000


def test_directory_and_variables_are_the_commands_own(sandbox: Sandbox) -> None:
    result = sandbox.exec("pwd; echo $COLOUR", cwd="/tmp", env={"COLOUR": "teal"})
    assert result.stdout == "/tmp\nteal\n"
    assert sandbox.exec("pwd; echo $COLOUR").stdout == "/workspace\n\n"


def test_another_user_runs_it_when_asked(sandbox: Sandbox) -> None:
    skip_without_users(sandbox)
    assert sandbox.exec("id -u", user="root").stdout == "0\n"
    assert sandbox.exec("id -u").stdout == "1000\n"


def test_input_arrives_byte_for_byte(sandbox: Sandbox) -> None:
    given = bytes(range(256)) * 4
    result = sandbox.exec("cat", stdin=given)
    assert result.stdout_raw == given and "\ufffd" in result.stdout
    assert sandbox.exec("cat", stdin="grün").stdout == "grün"


def test_input_larger_than_a_request_may_be_arrives_too(sandbox: Sandbox) -> None:
    result = sandbox.exec("wc -c", stdin=b"x" * 5_000_000)
    assert result.stdout == "5000000\n"


def test_large_input_of_a_command_that_does_not_read_is_no_failure(sandbox: Sandbox) -> None:
    result = sandbox.exec("exit 4", stdin=b"x" * 5_000_000)
    assert result.exit_code == 4


@pytest.fixture
def held_bytes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How much output a stream held after each message."""
    held: list[int] = []
    take = ExecSocketState.take

    def watched(state: ExecSocketState, message: str | bytes) -> None:
        take(state, message)
        held.append(sum(len(output.data) for output in state.waiting))

    monkeypatch.setattr(ExecSocketState, "take", watched)
    return held


async def test_output_that_the_result_cuts_is_not_held_while_input_is_written(
    sandbox: Sandbox, client: Client, held_bytes: list[int]
) -> None:
    given = b"x" * 5_000_000
    result = sandbox.exec("cat", stdin=given, max_output_bytes=1000)
    async with client.asynchronous() as other:
        again = await other.sandbox(sandbox.id).exec("cat", stdin=given, max_output_bytes=1000)
    for one in (result, again):
        assert one.stdout_total_bytes == len(given) and len(one.stdout_raw) == 1000
    assert held_bytes and max(held_bytes) == 0


def test_without_input_a_command_reads_end_of_file(sandbox: Sandbox) -> None:
    assert sandbox.exec("cat", timeout_ms=20_000).outcome == Outcome("exited", code=0)


def test_output_beyond_the_limit_is_counted_and_cut(sandbox: Sandbox) -> None:
    result = sandbox.exec("head -c 5000 /dev/zero", max_output_bytes=1000)
    assert result.stdout_truncated and len(result.stdout_raw) == 1000 and result.stdout_total_bytes == 5000
    assert not result.stderr_truncated


def test_a_program_that_is_missing_is_not_found(sandbox: Sandbox) -> None:
    with pytest.raises(NotFound, match="no-such-program"):
        sandbox.exec(["no-such-program"])


def test_a_wrong_request_names_its_field(sandbox: Sandbox) -> None:
    with pytest.raises(Invalid) as caught:
        sandbox.exec([])
    assert caught.value.kind == "invalid" and caught.value.status == 400


@pytest.mark.parametrize("wrong", [5, None, b"true", {"a": 1}, ["echo", 5]])
async def test_what_is_no_command_is_answered_with_what_one_is(
    sandbox: Sandbox, async_sandbox: AsyncSandbox, wrong: Any
) -> None:
    words = r"a command is a text for the shell, or a list of words such as \['python3', 'main.py'\], not "
    for call in (sandbox.exec, sandbox.exec_stream, sandbox.keep, sandbox.start):
        with pytest.raises(Invalid, match=words) as caught:
            call(wrong)
        assert caught.value.field == "command"
    with pytest.raises(Invalid, match=words):
        await async_sandbox.exec(wrong)


def test_input_that_is_neither_text_nor_bytes_is_refused(sandbox: Sandbox) -> None:
    wrong: Any = 5
    for call in (sandbox.exec, sandbox.keep, sandbox.start):
        with pytest.raises(Invalid, match="`stdin` must be a text or bytes, not 5") as caught:
            call("cat", stdin=wrong)
        assert caught.value.field == "stdin"
    with pytest.raises(Invalid, match="`stdin` must be True"):
        sandbox.exec_stream("cat", stdin="text")  # type: ignore[arg-type]
    with sandbox.exec_stream("cat", stdin=True) as stream:
        with pytest.raises(Invalid, match="`data` must be a text or bytes, not None"):
            stream.write(None)  # type: ignore[arg-type]
        stream.close_stdin()
    with pytest.raises(Invalid, match="write to a process: `data` must be a text or bytes, not None"):
        sandbox.write_stdin("p1", None)  # type: ignore[arg-type]


def test_many_variables_are_no_large_input(sandbox: Sandbox) -> None:
    # Control characters are six times as long in JSON: 5 MB of it, of which a WebSocket's first message takes 4 MiB.
    env = {f"V{number}": "\x01" * 120_000 for number in range(7)}
    assert sandbox.exec("cat; printf %s $V6 | wc -c", env=env, stdin="in").stdout == "in120000\n"


def test_what_the_provider_does_not_do_is_named(client: Client) -> None:
    with pytest.raises(Unsupported) as caught:
        client.create(network="bridge")
    # A provider without any network names the whole field.
    option = "network: bridge" if "network_egress" in client.capabilities().capabilities else "network"
    assert caught.value.unsupported == UnsupportedOperation("create", client.capabilities().provider, [option])
    with pytest.raises(Invalid) as other, client.create() as sandbox:
        sandbox.exec([])
    assert other.value.unsupported is None


def test_output_is_told_as_it_comes_as_text(sandbox: Sandbox) -> None:
    told: list[tuple[str, str]] = []
    result = sandbox.exec(
        "printf '\\xc3'; sleep 0.1; printf '\\xbc\\n'; cat >&2; printf '\\xff'",
        stdin="typed",
        on_stdout=lambda text: told.append(("stdout", text)),
        on_stderr=lambda text: told.append(("stderr", text)),
    )
    said = {stream: "".join(text for one, text in told if one == stream) for stream in ("stdout", "stderr")}
    assert said == {"stdout": "ü\n\ufffd", "stderr": "typed"} and result.ok
    assert result.stdout == said["stdout"]


def test_what_is_told_of_output_may_break_off(sandbox: Sandbox) -> None:
    class Enough(Exception):
        pass

    def enough(text: str) -> None:
        raise Enough

    with pytest.raises(Enough):
        sandbox.exec("echo once; sleep 60", on_stdout=enough)


async def test_async_code_is_told_too(async_sandbox: AsyncSandbox) -> None:
    told: list[str] = []

    async def tell(text: str) -> None:
        told.append(text)

    await async_sandbox.exec("echo out; echo err >&2", on_stdout=tell, on_stderr=told.append)
    assert sorted(told) == ["err\n", "out\n"]


def test_a_result_that_is_checked_is_raised_where_it_failed(sandbox: Sandbox) -> None:
    assert sandbox.exec("echo fine").check().stdout == "fine\n"
    with pytest.raises(CommandFailed, match="the command exited with 3: no luck") as failed:
        sandbox.exec("echo no luck >&2; exit 3").check()
    assert failed.value.result.exit_code == 3 and failed.value.kind == "command_failed"
    with pytest.raises(CommandFailed, match="timed out"):
        sandbox.exec("sleep 9", timeout_ms=50).check()
