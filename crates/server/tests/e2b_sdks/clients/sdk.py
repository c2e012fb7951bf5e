"""E2B's SDK for Python, as its users write with it. It finds the server by E2B_API_URL, E2B_SANDBOX_URL and
E2B_API_KEY; nothing here is Eyot's. The argument names the case."""

import asyncio
import sys
import time

from e2b import (
    AsyncSandbox,
    CommandExitException,
    FileNotFoundException,
    FileType,
    PtySize,
    Sandbox,
    SandboxQuery,
    SandboxState,
    TimeoutException,
)


def raises(kind, call):
    try:
        call()
    except kind as error:
        return error
    raise AssertionError(f"{kind.__name__} was due")


def commands_run_and_their_output_streams(sandbox):
    pieces = []
    ran = sandbox.commands.run(
        'echo "Hello $NAME"; echo problem >&2; sleep 0.1; echo bye', envs={"NAME": "E2B"}, on_stdout=pieces.append
    )
    assert (ran.exit_code, ran.stdout, ran.stderr) == (0, "Hello E2B\nbye\n", "problem\n"), ran
    assert "".join(pieces) == ran.stdout
    assert raises(CommandExitException, lambda: sandbox.commands.run("exit 3")).exit_code == 3


def a_command_that_takes_too_long_is_ended(sandbox):
    raises(TimeoutException, lambda: sandbox.commands.run("sleep 600", timeout=1))
    assert sandbox.commands.run("echo alive").stdout == "alive\n"


def files_are_written_read_and_listed(sandbox):
    written = sandbox.files.write("notes/today.txt", "one\ntwo\n")
    assert written.path == "/home/user/notes/today.txt", written
    assert sandbox.files.read("notes/today.txt") == "one\ntwo\n"
    data = bytes([0, 255, 10, 13]) * 100_000
    sandbox.files.write_files([{"path": "/tmp/a.bin", "data": data}, {"path": "/tmp/b.txt", "data": "b"}])
    assert bytes(sandbox.files.read("/tmp/a.bin", format="bytes")) == data
    (entry,) = sandbox.files.list("notes")
    assert (entry.name, entry.type, entry.size) == ("today.txt", FileType.FILE, 8), entry
    assert sandbox.files.make_dir("notes/deep") and not sandbox.files.make_dir("notes/deep")
    assert sandbox.files.rename("notes/today.txt", "notes/deep/kept.txt").path == "/home/user/notes/deep/kept.txt"
    sandbox.commands.run("ln -s deep notes/link")
    assert sandbox.files.get_info("notes/link").symlink_target == "deep"
    sandbox.files.remove("notes")
    assert not sandbox.files.exists("notes")
    raises(FileNotFoundException, lambda: sandbox.files.read("notes/deep/kept.txt"))


def a_process_runs_in_the_background_reads_input_and_is_killed(sandbox):
    echo = sandbox.commands.run("cat", background=True, stdin=True)
    sandbox.commands.send_stdin(echo.pid, "to the process\n")
    for stdout, _, _ in echo:
        assert stdout == "to the process\n", stdout
        break
    assert any(process.pid == echo.pid for process in sandbox.commands.list())
    assert sandbox.commands.kill(echo.pid) and not sandbox.commands.kill(echo.pid)
    endless = sandbox.commands.run("sleep 600", background=True)
    assert endless.kill()
    raises(CommandExitException, endless.wait)


def a_terminal_is_typed_into_and_resized(sandbox):
    terminal = sandbox.pty.create(PtySize(rows=24, cols=80), envs={"PS1": "$ "})
    sandbox.pty.send_stdin(terminal.pid, b"stty size\n")
    screen, resized = b"", False
    for _, _, data in terminal:
        screen += data or b""
        if b"24 80" in screen and not resized:
            sandbox.pty.resize(terminal.pid, PtySize(rows=30, cols=100))
            sandbox.pty.send_stdin(terminal.pid, b"stty size\n")
            resized = True
        if b"30 100" in screen:
            break
    assert sandbox.pty.kill(terminal.pid)


def a_directory_is_watched(sandbox):
    sandbox.files.make_dir("watched")
    watch = sandbox.files.watch_dir("watched")
    sandbox.files.write("watched/new.txt", "x")
    seen = []
    while not any(event.name == "new.txt" for event in seen):
        seen += watch.get_new_events()
        time.sleep(0.05)
    watch.stop()


def sandboxes_are_listed_found_and_killed(sandbox):
    other = Sandbox.create(metadata={"purpose": "list", "odd key": "a/b c"})
    page = Sandbox.list(query=SandboxQuery(metadata={"odd key": "a/b c"})).next_items()
    assert [info.sandbox_id for info in page] == [other.sandbox_id], page
    again = Sandbox.connect(other.sandbox_id)
    again.files.write("/tmp/x", "by the second")
    assert other.files.read("/tmp/x") == "by the second"
    other.set_timeout(600)
    assert other.get_info().metadata["purpose"] == "list"
    assert other.is_running() and other.kill() and not other.is_running()
    assert not Sandbox.kill(other.sandbox_id)


def a_paused_sandbox_keeps_its_files(sandbox):
    sandbox.files.write("kept.txt", "kept")
    sandbox.pause()
    page = Sandbox.list(query=SandboxQuery(state=[SandboxState.PAUSED])).next_items()
    assert any(info.sandbox_id == sandbox.sandbox_id for info in page)
    assert Sandbox.connect(sandbox.sandbox_id).files.read("kept.txt") == "kept"


def the_asynchronous_client_works_too(sandbox):
    async def job():
        other = await AsyncSandbox.connect(sandbox.sandbox_id)
        ran = await asyncio.gather(*(other.commands.run(f"echo {number}") for number in range(10)))
        assert [one.stdout for one in ran] == [f"{number}\n" for number in range(10)]
        await other.files.write("x", "y")
        assert await other.files.read("x") == "y"

    asyncio.run(job())


if __name__ == "__main__":
    made = Sandbox.create()
    try:
        globals()[sys.argv[1]](made)
    finally:
        Sandbox.kill(made.sandbox_id)
