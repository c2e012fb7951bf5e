"""Files and folders of this machine on their way to a sandbox, and back."""

from __future__ import annotations

import os
import shutil
import stat
import tarfile
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from .errors import AlreadyExists, Invalid, Unsupported

#: A folder that packs to no more than this stays in memory.
_MEMORY_BYTES = 16 * 1024 * 1024


def permissions_of(path: str | os.PathLike[str]) -> int:
    """The permission bits of a file."""
    return stat.S_IMODE(os.stat(path).st_mode) & 0o777


def packed(folder: str | os.PathLike[str]) -> IO[bytes]:
    """A folder's content as tar, by names relative to it."""
    file = tempfile.SpooledTemporaryFile(_MEMORY_BYTES)
    with tarfile.open(fileobj=file, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name in sorted(os.listdir(folder)):
            tar.add(Path(folder) / name, arcname=name, filter=_without_owner)
    file.seek(0)
    return file


def _without_owner(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    return entry


class PartialCopy:
    """What is downloaded, beside its place, until it is there as a whole."""

    def __init__(self, beside: Path, target: Path) -> None:
        self._target = target
        self._received = beside / "received"
        self._tree = beside / "tree"

    def write(self, pieces: Iterable[bytes]) -> None:
        """Adds to the file."""
        with _named(self._target), open(self._received, "ab") as file:
            file.writelines(pieces)

    def unpack(self, pieces: Iterable[bytes]) -> None:
        """Adds to the file, which is a tar with one folder, and unpacks it."""
        self.write(pieces)
        if not hasattr(tarfile, "data_filter"):
            raise Unsupported("download a folder: this Python can't unpack safely; 3.10.12, 3.11.4 and 3.12 can")
        try:
            with _named(self._target), tarfile.open(self._received) as tar:
                # A sandbox may pack anything: links that lead out, devices, paths with `..`.
                tar.extractall(self._tree, filter="data")
        except (tarfile.FilterError, tarfile.TarError) as error:
            raise Invalid(f"download a folder: it is not safe to unpack: {error}") from error

    def put(self) -> None:
        """Puts it in its place."""
        target = self._target
        if not self._tree.exists():
            with _named(target):
                self._received.touch()
                os.replace(self._received, target)
            return
        (top,) = self._tree.iterdir()
        try:
            os.rename(top, target)
        except OSError as error:
            raise AlreadyExists(f"download a folder: `{target}` is there, and is not an empty folder") from error


@contextmanager
def _named(target: Path) -> Iterator[None]:
    """Makes an error of this machine's files name the target, not the copy beside it, of which the caller knows nothing."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(target)) from error


@contextmanager
def partial_copy(target: str | os.PathLike[str]) -> Iterator[PartialCopy]:
    """A copy that is put in its place at the end of the block, or removed."""
    place = Path(target)
    with _named(place):
        place.parent.mkdir(parents=True, exist_ok=True)
        beside = tempfile.mkdtemp(prefix=".eyot-", dir=place.parent)
    try:
        copy = PartialCopy(Path(beside), place)
        yield copy
        copy.put()
    finally:
        shutil.rmtree(beside, ignore_errors=True)
