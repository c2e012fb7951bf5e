"""A stand-in for a model's server: it speaks OpenAI's chat completions as a stream, and does what the prompt says.

`call NAME JSON`, one a line: it calls these tools in one turn, and then says what they answered. `hang`: it says something, and
nothing more. `recall`: it says every prompt of the conversation. `What is the weather in CITY?`: it calls the tool `weather`.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class ModelServer(ThreadingHTTPServer):
    """A stand-in on a port of its own."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), ModelHandler)
        self.stopping = threading.Event()


class ModelHandler(BaseHTTPRequestHandler):
    """Answers as the stand-in."""

    server: ModelServer

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        self._answer(body["messages"])

    def _answer(self, messages: list[dict[str, Any]]) -> None:
        asked, is_prompt = _text(messages[-1]), messages[-1]["role"] == "user"
        asked = re.sub(r"^What is the weather in (\w+)\?$", r'call weather {"city":"\1"}', asked)
        calls = re.findall(r"^call (\w+) (.*)$", asked, re.MULTILINE)
        if is_prompt and asked.startswith("hang"):
            self._choose({"content": "I think."})
            self.server.stopping.wait()
            return
        if is_prompt and calls:
            told = [{"name": name, "arguments": arguments} for name, arguments in calls]
            numbered = [{"index": at, "id": f"call_{at}", "type": "function", "function": one} for at, one in enumerate(told)]
            self._choose({"tool_calls": numbered})
            self._choose({}, "tool_calls")
        else:
            for word in re.split("(?<= )", _said(messages)):
                self._choose({"content": word})
            self._choose({}, "stop")
        self._send({"choices": [], "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}})
        self.wfile.write(b"data: [DONE]\n\n")

    def _choose(self, delta: dict[str, Any], finish: str | None = None) -> None:
        self._send({"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})

    def _send(self, value: dict[str, Any]) -> None:
        chunk = {"id": "x", "object": "chat.completion.chunk", "model": "m", **value}
        self.wfile.write(f"data: {json.dumps(chunk)}\n\n".encode())
        self.wfile.flush()


def _said(messages: list[dict[str, Any]]) -> str:
    prompts = [_text(message) for message in messages if message["role"] == "user"]
    if prompts[-1] == "recall":
        return f"You asked: {' / '.join(prompts)}"
    begin = max(at for at, message in enumerate(messages) if message["role"] != "tool") + 1
    return f"It said: {' / '.join(_text(message) for message in messages[begin:] or messages[-1:])}"


def _text(message: dict[str, Any]) -> str:
    content = message.get("content") or ""
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


@contextmanager
def model_server() -> Iterator[str]:
    """Runs a stand-in; the value is for `OPENAI_BASE_URL`."""
    server = ModelServer()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.stopping.set()
        server.shutdown()
        server.server_close()
