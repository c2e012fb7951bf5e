"""The images of a server."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import platform
import tarfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from eyot import AsyncClient, Client, Conflict, Invalid, NotFound, PermissionDenied, PullProgress

pytestmark = pytest.mark.needs("images")


@pytest.fixture(scope="module")
def tarball() -> bytes:
    """A root file system."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        entry = tarfile.TarInfo("bin/sh")
        entry.size = 2
        tar.addfile(entry, io.BytesIO(b"#!"))
    return packed.getvalue()


@contextmanager
def registry(layer: bytes) -> Iterator[str]:
    """A registry with one image, `app:1`, of one layer."""

    def digest(content: bytes) -> str:
        return "sha256:" + hashlib.sha256(content).hexdigest()

    def described(content: bytes, kind: str) -> dict[str, object]:
        return {"mediaType": f"application/vnd.oci.image.{kind}", "digest": digest(content), "size": len(content)}

    packed = gzip.compress(layer)
    architecture = "arm64" if platform.machine() in ("aarch64", "arm64") else "amd64"
    rootfs = {"type": "layers", "diff_ids": [digest(layer)]}
    config = json.dumps({"architecture": architecture, "os": "linux", "config": {}, "rootfs": rootfs}).encode()
    media_type = "application/vnd.oci.image.manifest.v1+json"
    parts = {"config": described(config, "config.v1+json"), "layers": [described(packed, "layer.v1.tar+gzip")]}
    manifest = json.dumps({"schemaVersion": 2, "mediaType": media_type, **parts}).encode()
    served = {"/v2/": b"{}", "/v2/app/manifests/1": manifest}
    served.update({f"/v2/app/blobs/{digest(blob)}": blob for blob in (config, packed)})

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            content = served.get(self.path)
            self.send_response(404 if content is None else 200)
            self.send_header("content-type", media_type)
            self.send_header("content-length", str(len(content or b"")))
            self.end_headers()
            self.wfile.write(content or b"")

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


def test_an_image_is_imported_listed_used_and_removed(client: Client, tarball: bytes) -> None:
    (imported,) = client.images.import_archive(io.BytesIO(tarball), name="base:1")
    assert imported.name == "base:1" and imported.complete and imported.size_bytes > 0
    assert imported in client.images.list()
    with pytest.raises(Invalid):
        client.images.import_archive(tarball)
    with client.create(image="base:1"), pytest.raises(Conflict):
        client.images.remove("base:1")
    assert client.images.remove("base:1").images == ["base:1"]
    with pytest.raises(NotFound):
        client.images.remove("base:1")


def test_an_image_is_pulled_with_its_progress(client: Client, tarball: bytes) -> None:
    told: list[PullProgress] = []
    with registry(tarball) as host:
        pulled = client.images.pull(f"{host}/app:1", on_progress=told.append)
        assert pulled.name == f"{host}/app:1" and pulled in client.images.list()
        assert told[-1].received_bytes == told[-1].total_bytes > 0 and told[-1].blobs_done == 2
        with pytest.raises(NotFound):
            client.images.pull(f"{host}/none:1")
    client.images.remove(pulled.name)


async def test_async_code_does_the_same(async_client: AsyncClient, tarball: bytes) -> None:
    told: list[PullProgress] = []
    with registry(tarball) as host:
        pulled = await async_client.images.pull(f"{host}/app:1", on_progress=told.append)
    (imported,) = await async_client.images.import_archive(io.BytesIO(tarball), name="base:2")
    assert {pulled.name, imported.name} <= {image.name for image in await async_client.images.list()}
    assert told
    for image in (pulled, imported):
        assert (await async_client.images.remove(image.name)).images == [image.name]


def test_a_key_that_only_opens_pools_is_refused(server_with_keys: tuple[str, str, str], tarball: bytes) -> None:
    url, key, _ = server_with_keys
    with Client(url, api_key=key) as tenant:
        tenant.images.list()
        with pytest.raises(PermissionDenied):
            tenant.images.import_archive(tarball, name="base:1")
        with pytest.raises(PermissionDenied):
            tenant.images.remove("base:1")
        with pytest.raises(PermissionDenied):
            tenant.images.pull("127.0.0.1:9/app:1")
