"""Pools, what moves between their sandboxes, and what happened to them."""

from __future__ import annotations

import httpx

from .._arguments import segment
from .._call import Call, nothing, params
from .._wire import known
from ..pools import PoolEntry, Transferred


def names() -> Call[list[str]]:
    """Lists the pools."""
    return Call("GET", "/v1/pools", lambda response: list(response.json()["pools"]))


def entries(pool: str) -> Call[list[PoolEntry]]:
    """Lists a pool's sandboxes."""

    def read(response: httpx.Response) -> list[PoolEntry]:
        return [known(PoolEntry, one) for one in response.json()["sandboxes"]]

    return Call("GET", _path(pool), read)


def close(pool: str) -> Call[None]:
    """Destroys a pool's sandboxes."""
    return Call("DELETE", _path(pool), nothing)


def transfer(pool: str, source: str, source_path: str, target: str, target_path: str, recursive: bool) -> Call[Transferred]:
    """Copies between a pool's sandboxes."""
    body = {"from": source, "to": target, "from_path": source_path, "to_path": target_path, "recursive": recursive}
    return Call("POST", _path(pool) + "/transfer", lambda response: known(Transferred, response.json()), json=body)


def events(pool: str | None, sandbox: str | None, from_seq: int | None, follow: bool) -> Call[None]:
    """Tells what happened; the answer is a stream of events."""
    query = params(pool=pool, sandbox=sandbox, from_seq=from_seq, follow=follow)
    return Call("GET", "/v1/events", nothing, query)


def _path(pool: str) -> str:
    return f"/v1/pools/{segment(pool, 'a pool')}"
