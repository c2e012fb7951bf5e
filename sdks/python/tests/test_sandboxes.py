"""Sandboxes: made, found, listed, put to sleep, destroyed."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

import pytest

from eyot import AlreadyExists, AsyncClient, Client, Invalid, Mount, PermissionDenied, Sandbox, SandboxNotFound


def unused() -> str:
    return f"t-{uuid.uuid4().hex[:12]}"


@pytest.mark.needs("images")
def test_a_sandbox_is_made_as_it_was_asked_for(client: Client) -> None:
    name = unused()
    made = client.create(
        name=name, image="host", env={"COLOUR": "teal"}, labels={"team": "a"}, ttl_ms=600_000, idle_timeout_ms=60_000,
        files={"a/b.txt": "hello", "raw": b"\xff\x00"}, directories=["empty"], limits={"timeout_ms": 300},
    )  # fmt: skip
    with made as sandbox:
        info = sandbox.info
        assert info is not None and info.name == name and info.labels == {"team": "a"}
        assert info.expires_at is not None and info.idle_timeout_ms == 60_000 and info.env_names == ["COLOUR"]
        assert "teal" not in repr(info)
        assert sandbox.exec("echo $COLOUR; cat a/b.txt", timeout_ms=60_000).stdout == "teal\nhello"
        assert sandbox.read_file("raw") == b"\xff\x00" and sandbox.stat("empty").is_directory
        assert sandbox.exec("sleep 60").timed_out


def test_a_name_that_is_taken_is_refused_unless_it_is_asked_for(client: Client) -> None:
    name = unused()
    with client.get_or_create(name) as first:
        with pytest.raises(AlreadyExists):
            client.create(name=name)
        assert client.get_or_create(name).id == first.id
        assert client.get(name).id == first.id and client.get(first.id).info is not None
        assert client.sandbox(name).exec("true").ok


def test_sandboxes_are_listed_over_several_pages_by_their_labels(client: Client) -> None:
    mark = unused()
    made = [client.create(labels={"mark": mark}) for _ in range(5)]
    try:
        assert [info.id for info in client.list(labels={"mark": mark}, page_size=2)] == [one.id for one in made]
        assert list(client.list(labels={"mark": mark, "other": "x"})) == []
    finally:
        for one in made:
            one.destroy()


def test_a_destroyed_sandbox_is_gone_and_may_be_destroyed_again(client: Client) -> None:
    sandbox = client.create()
    sandbox.destroy()
    sandbox.destroy()
    with pytest.raises(SandboxNotFound):
        sandbox.exec("true")
    with pytest.raises(SandboxNotFound):
        client.get(sandbox.id)


def test_a_create_that_is_undone_leaves_the_workspace_that_was_there(client: Client) -> None:
    workspace = unused()
    with client.create(workspace=workspace) as first:
        first.write_file("kept", "mine")
    undone = client.create(workspace=workspace)
    undone.abandon()
    undone.abandon()
    with pytest.raises(SandboxNotFound):
        client.get(undone.id)
    with client.create(workspace=workspace) as last:
        assert last.read_text("kept") == "mine"


def test_files_outlive_sleep_and_any_use_wakes(client: Client) -> None:
    with client.create() as sandbox:
        sandbox.write_file("a", "kept")
        sandbox.sleep()
        assert sandbox.refresh().status == "sleeping"
        assert sandbox.read_text("a") == "kept"
        sandbox.sleep()
        assert sandbox.wake().status == "running"


def test_a_wrong_option_is_refused_with_its_name(client: Client) -> None:
    with pytest.raises(Invalid) as caught:
        client.create(limits={"pids": 1})
    assert caught.value.field is not None and caught.value.field.endswith("limits.pids")
    with pytest.raises(Invalid, match=r"`limits.memory_mib` must be at least 16, not 1"):
        client.create(limits={"memory_mib": 1})
    with pytest.raises(TypeError, match="imagine"):
        client.create(imagine="x")  # type: ignore[call-arg]


async def test_a_name_or_an_id_that_is_empty_is_asked_for(client: Client, async_client: AsyncClient) -> None:
    sandbox = client.sandbox("x")
    calls: dict[str, list[Any]] = {
        "a sandbox": [client.get, client.sandbox, async_client.sandbox],
        "a snapshot": [client.snapshot, client.remove_snapshot, sandbox.rollback],
        "a snapshot or a sandbox": [client.fork],
        "a pool": [client.pool_entries, client.close_pool],
        "a process": [sandbox.wait, sandbox.kill],
        "a command": [sandbox.attach],
        "a terminal": [sandbox.attach_terminal, sandbox.end_terminal],
        "a run": [client.runs.get],
    }
    for of, of_it in calls.items():
        for call in of_it:
            with pytest.raises(Invalid, match=f"the name or the id of {of} is needed, not an empty text"):
                call("")
    with pytest.raises(Invalid, match="the name or the id of a sandbox is needed, not None"):
        await async_client.get(None)  # type: ignore[arg-type]


@pytest.mark.parametrize("wrong", [5, None, ["x"]])
def test_a_file_of_a_new_sandbox_without_content_is_refused(client: Client, wrong: Any) -> None:
    with pytest.raises(Invalid, match=r"create sandbox: `files\['a'\]` must be a text or bytes, not ") as caught:
        client.create(files={"a": wrong})
    assert caught.value.field == "files['a']"


def test_an_option_of_another_library_is_answered_with_ours(client: Client) -> None:
    for wrong, right in [
        ("memory_mib", r"use limits={'memory_mib': …}"),
        ("memory", "use limits={'memory_mib': …}, in MiB"),
        ("timeout", "use ttl_ms"),
        ("template", "use image"),
        ("lables", "use labels"),
    ]:
        with pytest.raises(TypeError) as caught:
            client.create(**{wrong: 1})  # type: ignore[arg-type]
        assert right in str(caught.value), caught.value


def test_a_keyword_of_another_library_is_answered_with_ours(client: Client) -> None:
    sandbox = client.sandbox("nobody")  # nothing is asked of the server
    with pytest.raises(TypeError, match=r"exec\(\) has no parameter 'timeout'; use timeout_ms, in milliseconds"):
        sandbox.exec("true", timeout=60)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"use env$"):
        sandbox.start("true", envs={})  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"use start\(\)"):
        sandbox.exec("true", background=True)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="use max_output_bytes"):
        sandbox.exec_stream("true", max_output_byte=1)  # type: ignore[call-arg]


async def test_sandboxes_are_listed_and_changed_by_labels_and_not_by_metadata() -> None:
    nowhere = Client("unix:/nowhere.sock")
    with pytest.raises(TypeError, match=r"list\(\) has no parameter 'metadata'; use labels, as create takes them"):
        nowhere.list(metadata={"user": "ada"})  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"update\(\) has no parameter 'metadata'; use labels"):
        nowhere.sandbox("nobody").update(metadata={"user": "ada"})  # type: ignore[call-arg]
    async with AsyncClient("unix:/nowhere.sock") as other:
        with pytest.raises(TypeError, match="use labels, as create takes them"):
            other.list(metadata={"user": "ada"})  # type: ignore[call-arg]


def test_metadata_are_told_again_and_are_no_labels(client: Client) -> None:
    with client.create(metadata={"user_id": "ada"}) as sandbox:
        assert sandbox.info is not None
        assert (sandbox.info.spec["metadata"], sandbox.info.labels) == ({"user_id": "ada"}, {})


def test_what_reaches_the_host_is_refused(client: Client) -> None:
    with pytest.raises(PermissionDenied):
        client.create(image="/")


def test_the_server_says_what_it_is_and_can(client: Client) -> None:
    assert client.version() and "shell" in client.capabilities().capabilities


def test_an_end_of_the_block_destroys_even_when_it_fails(client: Client) -> None:
    kept: list[Sandbox] = []
    with pytest.raises(ZeroDivisionError), client.create() as sandbox:
        kept.append(sandbox)
        raise ZeroDivisionError
    with pytest.raises(SandboxNotFound):
        client.get(kept[0].id)


def test_labels_and_deadlines_are_changed_and_what_is_absent_stays(client: Client) -> None:
    with client.create(labels={"a": "1", "b": "2"}, idle_timeout_ms=3_600_000) as sandbox:
        changed = sandbox.update(labels={"a": None, "c": "3"}, lifecycle={"ttl_ms": 86_400_000})
        assert changed.labels == {"b": "2", "c": "3"} and changed.expires_at is not None
        assert changed.idle_timeout_ms == 3_600_000
        assert sandbox.update(lifecycle={"ttl_ms": None}).expires_at is None
        with pytest.raises(Invalid):
            sandbox.update(labels={"x": "1"}, lifecycle={"ttl_ms": 0})
        assert sandbox.refresh().labels == {"b": "2", "c": "3"}


def test_every_wake_begins_another_life(client: Client) -> None:
    with client.create() as sandbox:
        first = sandbox.refresh().life
        assert first and sandbox.refresh().life == first
        sandbox.sleep()
        assert sandbox.wake().life not in ("", first)


@pytest.mark.needs("mounts")
def test_a_folder_of_the_host_is_mounted_by_a_server_without_keys(
    client: Client, server_with_keys: tuple[str, str, str], tmp_path: Path
) -> None:
    (tmp_path / "note").write_text("of the host")
    tmp_path.chmod(0o755)
    mounts: list[Mount] = [{"source": str(tmp_path), "target": "/mnt/host"}]
    assert "mounts" in client.capabilities().capabilities
    with client.create(mounts=mounts) as sandbox:
        assert sandbox.read_text("/mnt/host/note") == "of the host"
        assert not sandbox.exec("touch /mnt/host/mine").ok
    with Client(server_with_keys[0], api_key=server_with_keys[1]) as keyed, pytest.raises(PermissionDenied):
        keyed.create(mounts=mounts)


RELATIVE: list[Mount] = [{"source": ".", "target": "/mnt/host"}]


@pytest.mark.needs("mounts")
async def test_a_relative_source_of_a_mount_is_of_the_working_directory_with_a_server_of_one_s_own(
    state: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "note").write_text("of the host")
    tmp_path.chmod(0o755)
    with Client() as mine:
        # The server began elsewhere.
        monkeypatch.chdir(tmp_path)
        with mine.create(mounts=RELATIVE) as sandbox:
            assert sandbox.read_text("/mnt/host/note") == "of the host"
        with mine.create(mounts=[{"source": Path("note"), "target": "/mnt/note"}]) as sandbox:
            assert sandbox.read_text("/mnt/note") == "of the host"
        with pytest.raises(Invalid, match=r"`mounts.source` the folder `nope` of this host, from `.*`: no such file") as caught:
            mine.create(mounts=[{"source": "nope", "target": "/mnt/host"}])
        assert caught.value.field == "mounts.source"
    async with AsyncClient() as other, await other.create(mounts=RELATIVE) as sandbox_of_tasks:
        assert await sandbox_of_tasks.read_text("/mnt/host/note") == "of the host"


def test_a_relative_source_of_a_mount_says_whose_folder_it_is_with_another_server(client: Client) -> None:
    with pytest.raises(Invalid, match=r"`mounts.source` must be absolute: \.") as caught:
        client.create(mounts=RELATIVE)
    assert caught.value.hint is not None and caught.value.hint.startswith("it is a folder of the server's host")


@pytest.mark.needs("mounts")
def test_a_mount_may_be_a_text_as_for_the_command(client: Client, tmp_path: Path) -> None:
    folder = tmp_path / "a:b"
    folder.mkdir()
    folder.chmod(0o777)
    tmp_path.chmod(0o755)
    texts = [f"{folder}:/mnt/read", f"{folder}:/mnt/too:ro", f"{folder}:/mnt/write:rw"]
    with client.create(mounts=texts) as sandbox:
        assert sandbox.exec("echo mine > /mnt/write/note; cat /mnt/read/note /mnt/too/note").stdout == "mine\nmine\n"
        assert not sandbox.exec("touch /mnt/read/x || touch /mnt/too/x").ok


@pytest.mark.parametrize(
    ("mounts", "right"),
    [
        (["/data"], r"`/data` is no mount; write SOURCE:TARGET:ro, as in ./data:/data:ro"),
        ([":/x"], "`:/x` is no mount; write SOURCE:TARGET:ro"),
        (["/a:relative"], "`/a:relative` is no mount; write SOURCE:TARGET:ro"),
        (["/a:/b:z"], "`z` is not an option of a mount; write /a:/b:ro, or /a:/b:rw"),
        (["/a:/b:rw,z"], "`rw,z` is not an option of a mount; write /a:/b:ro"),
        ("/a:/b", "`mounts` is a list, such as ['./data:/data:ro']"),
        ({"/a": {"bind": "/b"}}, "`mounts` is a list"),
    ],
)
def test_a_text_that_is_no_mount_is_answered_with_the_right_form(mounts: Any, right: str) -> None:
    with pytest.raises(Invalid) as caught:
        Client("unix:/nowhere.sock").create(mounts=mounts)
    assert right in str(caught.value) and caught.value.field == "mounts"
