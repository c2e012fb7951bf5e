"""Snapshots, rollbacks, forks and differences."""

from __future__ import annotations

import pytest

from eyot import AsyncClient, Client, Conflict, FileChanges, Invalid, NotFound, SnapshotInfo, Unsupported

pytestmark = pytest.mark.needs("snapshots")


def lines(found: FileChanges) -> list[str]:
    return [f"{one.change} {one.path}" for one in found.changes]


def test_a_bad_step_is_undone_and_others_begin_where_it_was_good(client: Client) -> None:
    with client.create(name="kept-py", env={"WORD": "hello"}) as sandbox:
        sandbox.write_file("a", "one")
        assert lines(sandbox.diff(path="/workspace")) == ["added /workspace/a"]
        good = sandbox.snapshot(name="good-py", labels={"step": "1"})
        assert isinstance(good, SnapshotInfo)
        assert (good.name, good.sandbox_name, good.labels, good.stopped) == ("good-py", "kept-py", {"step": "1"}, ())
        sandbox.write_file("a", "two")
        sandbox.write_file("b", "new")
        changed = ["changed /workspace/a", "added /workspace/b"]
        assert lines(sandbox.diff()) == changed
        assert lines(sandbox.diff(source="good-py")) == changed
        [added] = client.diff("good-py", "kept-py", path="/workspace/b").changes
        assert added.before is None and added.after is not None and added.after.size_bytes == 3
        [changed_text] = sandbox.diff(path="/workspace/a", text=True).changes
        assert added.text is None and changed_text.text is not None
        assert changed_text.text.startswith("--- a/workspace/a\n+++ b/workspace/a\n@@ -1,1 +1,1 @@\n-one\n")
        forks = client.fork("good-py", count=2)
        forks += sandbox.fork(name="third-py")
        forks.append(client.create(snapshot=good.id, limits={"memory_mib": 128}))
        assert [fork.read_text("a") for fork in forks] == ["one", "one", "two", "one"]
        assert forks[0].exec("echo $WORD").stdout == "hello\n"
        assert sandbox.rollback("good-py") == []
        assert sandbox.read_text("a") == "one"
        [listed] = [one for one in client.snapshots(sizes=True) if one.id == good.id]
        assert listed.own_bytes is not None and client.snapshot("good-py").id == good.id
        client.remove_snapshot("good-py")
        assert good.id not in [one.id for one in client.snapshots()]
        assert forks[0].read_text("a") == "one"
        for fork in forks:
            fork.destroy()


def test_a_sandbox_that_works_is_refused_unless_what_runs_may_be_stopped(client: Client) -> None:
    with client.create() as sandbox:
        sandbox.start(["sleep", "1000"])
        with pytest.raises(Conflict):
            sandbox.snapshot()
        with pytest.raises(Conflict):
            sandbox.fork()
        taken = sandbox.snapshot(stop=True)
        assert taken.stopped == ("sleep 1000",)
        assert sandbox.rollback(taken.id, stop=True) == []
        client.remove_snapshot(taken.id)


def test_what_is_not_there_is_refused(client: Client) -> None:
    with client.create(name="alone-py") as sandbox:
        with pytest.raises(NotFound):
            sandbox.rollback("nothing")
        with pytest.raises(NotFound):
            client.snapshot("nothing")
        with pytest.raises(NotFound):
            client.remove_snapshot("nothing")
        with pytest.raises(NotFound):
            client.fork("nothing")
        with pytest.raises(NotFound):
            client.diff("nothing", "alone-py")
        with pytest.raises(Invalid):
            client.fork("alone-py", count=65)
        with pytest.raises(TypeError):
            sandbox.snapshot(names="x")  # type: ignore[call-arg]


async def test_the_same_in_async_code(async_client: AsyncClient) -> None:
    async with await async_client.create() as sandbox:
        await sandbox.write_file("a", "one")
        good = await sandbox.snapshot()
        await sandbox.write_file("a", "two")
        assert lines(await sandbox.diff()) == ["changed /workspace/a"]
        [fork] = await async_client.fork(good.id)
        [other] = await sandbox.fork()
        assert [await fork.read_text("a"), await other.read_text("a")] == ["one", "two"]
        assert await sandbox.rollback(good.id) == []
        assert await sandbox.read_text("a") == "one"
        assert lines(await async_client.diff(good.id, (await other.refresh()).id)) != []
        assert (await async_client.snapshot(good.id)).id == good.id
        assert good.id in [one.id for one in await async_client.snapshots()]
        await async_client.remove_snapshot(good.id)
        await fork.destroy()
        await other.destroy()


@pytest.mark.needs("commit", "images")
def test_what_is_made_of_the_hosts_programs_can_not_be_committed_and_says_what_can(client: Client) -> None:
    with client.create(name="plain-py") as sandbox:
        with pytest.raises(Unsupported, match="host"):
            sandbox.commit("app:1")
        with pytest.raises(Unsupported) as refused:
            client.commit("plain-py", "app:1")
        assert refused.value.hint and "--image" in refused.value.hint
        for wrong in ["Not A Name", ""]:
            with pytest.raises(Invalid):
                sandbox.commit(wrong)
        assert "app:1" not in [image.name for image in client.images.list()]
