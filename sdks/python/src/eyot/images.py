"""What is told of images, and of their pulls."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ._events import StreamEvent
from ._wire import known
from .errors import EyotError, Unavailable


@dataclass(frozen=True)
class ImageInfo:
    """An image of a server."""

    #: Its name, as short as it can be.
    name: str
    #: The digest of its manifest.
    digest: str
    layers: int
    #: The size of its blobs, as they are kept. Layers that images share count for each.
    size_bytes: int
    #: The time at which it was made, as the image says (RFC 3339).
    created: str | None
    #: Tells whether every part is there.
    complete: bool


@dataclass(frozen=True)
class PullProgress:
    """The progress of a pull."""

    received_bytes: int
    #: The size of the blobs that were begun; it grows until the last one is.
    total_bytes: int
    #: The blobs that were begun, and those that are in the store.
    blobs: int
    blobs_done: int


@dataclass(frozen=True)
class RemovedImages:
    """What a removal removed."""

    #: Names of images.
    images: list[str]
    layers: int
    blobs: int
    blob_bytes: int


#: Is told the progress of a pull, up to ten times a second.
OnProgress = Callable[[PullProgress], None]


def pulled(event: StreamEvent, on_progress: OnProgress | None) -> ImageInfo | None:
    """The image, once a pull has ended. An event before that is told."""
    if event.name == "image":
        return known(ImageInfo, event.value)
    if event.name == "progress" and on_progress is not None:
        on_progress(known(PullProgress, event.value))
    return None


def pull_broke_off(name: str) -> EyotError:
    """What a pull is whose answer ends without an image."""
    return Unavailable(f"pull image `{name}`: the server's answer broke off")
