"""The images that a server's sandboxes are made from."""

from __future__ import annotations

from collections.abc import AsyncIterable, Iterable

import httpx

from .._call import Call, nothing, params
from .._wire import known
from ..images import ImageInfo, RemovedImages


def all_of_them() -> Call[list[ImageInfo]]:
    """Lists the images."""
    return Call("GET", "/v1/images", _images)


def pull(name: str) -> Call[None]:
    """Pulls an image; the answer is a stream of events."""
    return Call("POST", "/v1/images/pull", nothing, params(name=name))


def import_archive(archive: bytes | Iterable[bytes] | AsyncIterable[bytes], name: str | None) -> Call[list[ImageInfo]]:
    """Imports the images of an archive."""
    return Call("POST", "/v1/images/import", _images, params(name=name), content=archive)


def remove(name: str, force: bool) -> Call[RemovedImages]:
    """Removes an image."""
    return Call("DELETE", "/v1/images", lambda response: known(RemovedImages, response.json()), params(name=name, force=force))


def _images(response: httpx.Response) -> list[ImageInfo]:
    return [known(ImageInfo, image) for image in response.json()["images"]]
