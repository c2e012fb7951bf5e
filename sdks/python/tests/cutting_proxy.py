"""A proxy that closes each stream of a run behind its first event, as a broken network would."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx


class CuttingProxy(ThreadingHTTPServer):
    """A proxy before a server."""

    daemon_threads = True

    def __init__(self, upstream: str) -> None:
        super().__init__(("127.0.0.1", 0), CuttingHandler)
        self.upstream = httpx.Client(base_url=upstream, timeout=None)
        self.cuts = 0
        self.url = f"http://127.0.0.1:{self.server_port}"


class CuttingHandler(BaseHTTPRequestHandler):
    """Passes a request on."""

    protocol_version = "HTTP/1.1"
    server: CuttingProxy

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_GET(self) -> None:
        self._pass_on(b"")

    def do_POST(self) -> None:
        self._pass_on(self.rfile.read(int(self.headers.get("content-length", 0))))

    def _pass_on(self, body: bytes) -> None:
        headers = {name: value for name, value in self.headers.items() if name.lower() not in ("host", "content-length")}
        with self.server.upstream.stream(self.command, self.path, content=body, headers=headers) as answer:
            is_cut = self.path.endswith("/stream") and answer.is_success
            content = b"" if is_cut else answer.read()
            self.send_response(answer.status_code)
            self.send_header("content-type", answer.headers.get("content-type", "application/json"))
            if is_cut:
                self.send_header("transfer-encoding", "chunked")
            else:
                self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)
            if is_cut:
                self._pass_on_one_event(answer)

    def _pass_on_one_event(self, answer: httpx.Response) -> None:
        event = b""
        for piece in answer.iter_raw():
            event += piece
            end = event.find(b"\n\n", event.find(b"data:"))
            if b"data:" in event and end >= 0:
                event = event[: end + 2]
                break
        self.server.cuts += 1
        # Once it ends in order, and once in the middle of an answer.
        last = b"0\r\n\r\n" if self.server.cuts % 2 else b""
        self.wfile.write(b"%x\r\n%s\r\n%s" % (len(event), event, last))
        self.close_connection = True


@contextmanager
def cutting_proxy(upstream: str) -> Iterator[CuttingProxy]:
    """Runs one before a server."""
    proxy = CuttingProxy(upstream)
    threading.Thread(target=proxy.serve_forever, daemon=True).start()
    try:
        yield proxy
    finally:
        proxy.shutdown()
        proxy.server_close()
        proxy.upstream.close()
