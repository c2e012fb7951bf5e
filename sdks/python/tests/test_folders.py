"""Folders that are uploaded and downloaded."""

from __future__ import annotations

import os
import tarfile
from pathlib import Path

import pytest

from eyot import AlreadyExists, AsyncSandbox, Invalid, Sandbox, Unsupported

#: Debian 12's own Python 3.11.2 has no such filter.
unpacks = pytest.mark.skipif(
    not hasattr(tarfile, "data_filter"), reason="this Python has no filter for what it unpacks, so folders are not downloaded"
)


def a_folder(at: Path) -> Path:
    (at / "deep").mkdir(parents=True)
    (at / "a.txt").write_text("grün")
    (at / "deep" / "run.sh").write_text("#!/bin/sh\necho ran\n")
    (at / "deep" / "run.sh").chmod(0o755)
    (at / "link").symlink_to("deep/run.sh")
    (at / "deep" / "empty").mkdir()
    return at


@unpacks
def test_a_folder_is_uploaded_and_comes_back_as_it_was(sandbox: Sandbox, tmp_path: Path) -> None:
    sandbox.upload(a_folder(tmp_path / "from"), "new/project")
    assert sandbox.exec(["new/project/link"]).stdout == "ran\n"
    assert sandbox.exec("stat -c %U new/project/a.txt; touch new/project/deep/mine").stdout == "user\n"
    sandbox.download("new/project", tmp_path / "parents" / "back")
    back = tmp_path / "parents" / "back"
    assert (back / "a.txt").read_text() == "grün" and (back / "deep" / "empty").is_dir()
    assert os.access(back / "deep" / "run.sh", os.X_OK) and os.readlink(back / "link") == "deep/run.sh"
    assert sorted(os.listdir(back.parent)) == ["back"]


def test_a_file_is_uploaded_and_downloaded_with_its_permissions(sandbox: Sandbox, tmp_path: Path) -> None:
    (tmp_path / "run.sh").write_text("#!/bin/sh\necho ran\n")
    (tmp_path / "run.sh").chmod(0o755)
    sandbox.upload(tmp_path / "run.sh", "bin/run.sh")
    assert sandbox.exec(["bin/run.sh"]).stdout == "ran\n"
    sandbox.write_file("plot.png", b"\x89PNG")
    (tmp_path / "plot.png").write_bytes(b"old")
    sandbox.download("plot.png", tmp_path / "plot.png")
    sandbox.write_file("nothing", "")
    sandbox.download("nothing", tmp_path / "nothing")
    assert (tmp_path / "plot.png").read_bytes() == b"\x89PNG" and (tmp_path / "nothing").read_bytes() == b""


@unpacks
def test_a_folder_that_is_there_is_not_overwritten(sandbox: Sandbox, tmp_path: Path) -> None:
    sandbox.write_file("out/a", "1")
    (tmp_path / "out").mkdir()
    sandbox.download("out", tmp_path / "out")
    assert (tmp_path / "out" / "a").read_text() == "1"
    with pytest.raises(AlreadyExists):
        sandbox.download("out", tmp_path / "out")
    assert sorted(os.listdir(tmp_path)) == ["out"]


@unpacks
@pytest.mark.parametrize("target", ["/etc/passwd", "../../outside"])
def test_links_out_of_a_downloaded_folder_are_refused(sandbox: Sandbox, tmp_path: Path, target: str) -> None:
    sandbox.exec(["ln", "-s", target, "link"]).check()
    sandbox.exec("mkdir out && mv link out/").check()
    with pytest.raises(Invalid, match="not safe"):
        sandbox.download("out", tmp_path / "out")
    assert os.listdir(tmp_path) == []


def test_a_python_without_filters_downloads_no_folder_and_leaves_nothing(
    sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(tarfile, "data_filter", raising=False)
    sandbox.exec("mkdir d; echo x > d/f").check()
    with pytest.raises(Unsupported, match="can't unpack safely"):
        sandbox.download("d", tmp_path / "d")
    assert list(tmp_path.iterdir()) == []


def test_several_files_are_written_at_once(sandbox: Sandbox) -> None:
    sandbox.write_files({"a.txt": "1", "deep/b": b"\xff", "/tmp/c": "3"})
    assert (sandbox.read_text("a.txt"), sandbox.read_file("deep/b"), sandbox.read_text("/tmp/c")) == ("1", b"\xff", "3")


@unpacks
async def test_the_same_for_async_code(async_sandbox: AsyncSandbox, tmp_path: Path) -> None:
    await async_sandbox.upload(a_folder(tmp_path / "from"), "project")
    await async_sandbox.upload(tmp_path / "from" / "a.txt", "b.txt")
    await async_sandbox.write_files({"project/c": "3"})
    await async_sandbox.download("project", tmp_path / "back")
    await async_sandbox.download("b.txt", tmp_path / "b.txt")
    assert (tmp_path / "back" / "c").read_text() == "3" and (tmp_path / "b.txt").read_text() == "grün"


async def test_an_error_of_this_machine_s_files_names_the_path_that_was_given(
    sandbox: Sandbox, async_sandbox: AsyncSandbox, tmp_path: Path
) -> None:
    # Not even root can make a file in /proc.
    (tmp_path / "folder" / "full").mkdir(parents=True)
    (tmp_path / "file").touch()
    sandbox.write_file("plot", "x")
    await async_sandbox.write_file("plot", "x")
    for target in ("/proc/plot", str(tmp_path / "folder"), str(tmp_path / "file" / "plot")):
        with pytest.raises(OSError) as caught:
            sandbox.download("plot", target)
        assert caught.value.filename == target and ".eyot-" not in str(caught.value)
        with pytest.raises(OSError) as caught:
            await async_sandbox.download("plot", target)
        assert caught.value.filename == target and ".eyot-" not in str(caught.value)
