"""Daytona's own SDK for Python, as its guides use it. Each case is a function; its name is the argument."""

import sys

from daytona import CreateSandboxFromSnapshotParams, Daytona, DaytonaConfig, DaytonaError


def the_quickstart_runs():
    daytona = Daytona()
    sandbox = daytona.create()
    response = sandbox.process.code_run('print("Hello World from code!")')
    assert response.exit_code == 0, response.result
    assert response.result.strip() == "Hello World from code!"
    sandbox.delete()


def commands_run_and_their_ends_are_told():
    daytona = Daytona()
    sandbox = daytona.create(CreateSandboxFromSnapshotParams(env_vars={"KEPT": "kept"}))
    ran = sandbox.process.exec("echo $WORD $KEPT; pwd; exit 3", cwd="/tmp", env={"WORD": "said"})
    assert (ran.exit_code, ran.result) == (3, "said kept\n/tmp\n"), ran
    sandbox.delete()


def files_are_written_read_and_listed():
    daytona = Daytona()
    sandbox = daytona.create()
    content = bytes(range(256))
    sandbox.fs.upload_file(content, "/root/file.bin")
    assert sandbox.fs.download_file("/root/file.bin") == content
    listed = [file.name for file in sandbox.fs.list_files("/root")]
    assert "file.bin" in listed, listed
    sandbox.delete()


def sandboxes_are_found_stopped_and_started():
    daytona = Daytona()
    sandbox = daytona.create(CreateSandboxFromSnapshotParams(name="mine", labels={"project": "a"}))
    sandbox.process.exec("echo kept > /root/file")
    sandbox.stop()
    sandbox.start()
    again = daytona.get("mine")
    assert again.id == sandbox.id
    assert again.process.exec("cat /root/file").result == "kept\n"
    sandbox.delete()


def a_wrong_key_is_refused():
    try:
        Daytona(DaytonaConfig(api_key="dtn_wrong")).create()
    except DaytonaError:
        return
    raise AssertionError("it was taken")


globals()[sys.argv[1]]()
