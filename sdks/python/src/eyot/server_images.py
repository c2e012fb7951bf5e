"""The images of a server: list, pull, import and remove them."""

from __future__ import annotations

import builtins
from typing import TYPE_CHECKING

from ._calls import images
from ._content import Pieces, as_body
from .images import ImageInfo, OnProgress, RemovedImages, pull_broke_off, pulled

if TYPE_CHECKING:
    from .client import Client


class Images:
    """The images of a server. Keys share them."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def list(self) -> builtins.list[ImageInfo]:
        """All images, by name."""
        return self._client._send(images.all_of_them())

    def pull(self, name: str, *, on_progress: OnProgress | None = None) -> ImageInfo:
        """Pulls an image from its registry, even if there is one of that name. The next pull continues one that broke off."""
        with self._client._numbered_events(images.pull(name)) as events:
            for event in events:
                image = pulled(event, on_progress)
                if image is not None:
                    return image
        raise pull_broke_off(name)

    def import_archive(self, archive: Pieces, *, name: str | None = None) -> builtins.list[ImageInfo]:
        """Imports the images of an archive: an OCI layout as tar, what `docker save` writes, or a tar of a root file system.

        The archive is a file that is open for reading bytes, or bytes, at once or in pieces. `name`: by default the name in
        the archive. With keys this takes one that `eyot serve --image-key` names.
        """
        return self._client._send(images.import_archive(as_body(archive, "import images", "archive"), name))

    def remove(self, name: str, *, force: bool = False) -> RemovedImages:
        """Removes an image, and what no other image and no sandbox needs of it; `Conflict` if sandboxes are made over it.

        With `force` such an image loses its name, and they keep their layers.
        """
        return self._client._send(images.remove(name, force))
