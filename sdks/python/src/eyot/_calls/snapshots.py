"""Snapshots, and what is made of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .._arguments import needs_name, segment
from .._call import Call, nothing, params
from ..snapshots import FileChanges, ImageCommitted, SnapshotInfo
from .at import At


def take(at: At, name: str | None, labels: Mapping[str, str] | None, stop: bool) -> Call[SnapshotInfo]:
    """Keeps the files of a sandbox."""
    body: dict[str, Any] = {"name": name, "labels": dict(labels or {}), "stop": stop}
    return Call("POST", at.path("/snapshots"), lambda response: SnapshotInfo.of_wire(response.json()), at.params(), body)


def rollback(at: At, snapshot: str, stop: bool) -> Call[list[str]]:
    """Gives a sandbox the files of a snapshot."""
    if not snapshot:
        raise needs_name(snapshot, "a snapshot")
    body = {"snapshot": snapshot, "stop": stop}
    return Call("POST", at.path("/rollback"), lambda response: list(response.json()["stopped"]), at.params(), body)


def names(pool: str | None, sizes: bool) -> Call[list[SnapshotInfo]]:
    """Lists the snapshots of a pool."""
    query = params(pool=pool, sizes=sizes)
    return Call(
        "GET",
        "/v1/snapshots",
        lambda response: [SnapshotInfo.of_wire(one) for one in response.json()["snapshots"]],
        query,
    )


def get(pool: str | None, snapshot: str) -> Call[SnapshotInfo]:
    """Looks a snapshot up."""
    return Call("GET", _path(snapshot), lambda response: SnapshotInfo.of_wire(response.json()), params(pool=pool))


def remove(pool: str | None, snapshot: str) -> Call[None]:
    """Removes a snapshot."""
    return Call("DELETE", _path(snapshot), nothing, params(pool=pool))


def fork(pool: str | None, source: str, count: int, name: str | None, stop: bool) -> Call[list[At]]:
    """Makes sandboxes of a snapshot or a sandbox."""
    if not isinstance(source, str) or not source:
        raise needs_name(source, "a snapshot or a sandbox")
    body = {"from": source, "count": count, "name": name, "stop": stop}
    of_name, slash, _ = source.partition("/")
    where = of_name if slash else pool
    return Call(
        "POST",
        "/v1/fork",
        lambda response: [At(one, where) for one in response.json()["names"]],
        params(pool=pool),
        body,
    )


def commit(pool: str | None, source: str, reference: str, stop: bool) -> Call[ImageCommitted]:
    """Makes an image of a snapshot or a sandbox."""
    if not isinstance(source, str) or not source:
        raise needs_name(source, "a snapshot or a sandbox")
    if not isinstance(reference, str) or not reference:
        raise needs_name(reference, "an image")
    body = {"from": source, "reference": reference, "stop": stop}
    return Call("POST", "/v1/commit", lambda response: ImageCommitted.of_wire(response.json()), params(pool=pool), body)


def diff(pool: str | None, source: str, target: str | None, path: str | None, text: bool) -> Call[FileChanges]:
    """Compares two sides; without the second, a sandbox with its last snapshot."""
    query = params(pool=pool, to=target, path=path, text=text)
    return Call("GET", "/v1/diff", lambda response: FileChanges.of_wire(response.json()), {"from": source, **query})


def _path(snapshot: str) -> str:
    return f"/v1/snapshots/{segment(snapshot, 'a snapshot')}"
