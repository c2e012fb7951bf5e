"""Modal's own client, as its quickstart uses it. Each case is a function; its name is the argument."""

import sys

import modal


def app():
    return modal.App.lookup("quickstart", create_if_missing=True)


def the_quickstart_runs():
    sandbox = modal.Sandbox.create(app=app())
    process = sandbox.exec("python3", "-c", "print('hello')", timeout=20)
    assert process.stdout.read() == "hello\n"
    process = sandbox.exec("bash", "-c", "for i in {1..5}; do echo $i; sleep 0.1; done", timeout=20)
    assert [line for line in process.stdout] == [f"{i}\n" for i in range(1, 6)]
    assert process.wait() == 0
    sandbox.terminate()


def output_and_exit_codes_are_told():
    sandbox = modal.Sandbox.create("sleep", "infinity", app=app(), env={"WORD": "kept"})
    process = sandbox.exec("sh", "-c", "echo $WORD; echo err >&2; exit 3", workdir="/tmp")
    assert process.wait() == 3
    assert process.stdout.read() == "kept\n"
    assert process.stderr.read() == "err\n"
    process = sandbox.exec("sh", "-c", "pwd; echo $EXTRA", workdir="/tmp", env={"EXTRA": "more"})
    assert process.stdout.read() == "/tmp\nmore\n"
    process = sandbox.exec("sh", "-c", "kill -9 $$")
    assert process.wait() == 128 + 9
    sandbox.terminate()


def input_is_read():
    sandbox = modal.Sandbox.create(app=app())
    process = sandbox.exec("cat")
    process.stdin.write("one\n")
    process.stdin.write("two\n")
    process.stdin.write_eof()
    process.stdin.drain()
    assert process.stdout.read() == "one\ntwo\n"
    assert process.wait() == 0
    sandbox.terminate()


def a_long_output_is_whole():
    sandbox = modal.Sandbox.create(app=app())
    process = sandbox.exec("sh", "-c", "seq 1 200000", text=False)
    assert process.stdout.read() == b"".join(b"%d\n" % number for number in range(1, 200001))
    sandbox.terminate()


def a_command_that_takes_too_long_is_ended():
    sandbox = modal.Sandbox.create(app=app())
    process = sandbox.exec("sleep", "100", timeout=1)
    assert process.wait() != 0
    sandbox.terminate()


def sandboxes_are_listed_found_and_ended():
    place = app()
    sandboxes = [modal.Sandbox.create(app=place, name=f"one-{i}", tags={"kind": "x"}) for i in range(4)]
    ids = {sandbox.object_id for sandbox in sandboxes}
    assert {found.object_id for found in modal.Sandbox._experimental_list(app_id=place.app_id)} == ids
    tagged = modal.Sandbox._experimental_list(app_id=place.app_id, tags={"kind": "x"})
    assert {found.object_id for found in tagged} == ids
    assert sandboxes[0].get_tags() == {"kind": "x"}
    found = modal.Sandbox.from_id(sandboxes[1].object_id)
    assert found.exec("echo", "found").stdout.read() == "found\n"
    assert found.poll() is None
    for sandbox in sandboxes:
        sandbox.terminate()
        sandbox.wait(raise_on_termination=False)
        assert sandbox.poll() == 137
    assert not list(modal.Sandbox._experimental_list(app_id=place.app_id))


def a_name_is_taken_once():
    place = app()
    sandbox = modal.Sandbox.create(app=place, name="only")
    try:
        modal.Sandbox.create(app=place, name="only")
    except modal.exception.AlreadyExistsError:
        pass
    else:
        raise AssertionError("two sandboxes have the name")
    sandbox.terminate()


def a_sandbox_ends_with_its_first_process():
    sandbox = modal.Sandbox.create("sh", "-c", "exit 5", app=app())
    sandbox.wait()
    assert sandbox.returncode == 5


def a_wrong_token_is_refused():
    import os

    client = modal.Client.from_credentials(os.environ["MODAL_TOKEN_ID"], "as-wrong")
    try:
        modal.App.lookup("quickstart", create_if_missing=True, client=client)
    except modal.exception.AuthError:
        return
    raise AssertionError("it was taken")


globals()[sys.argv[1]]()
