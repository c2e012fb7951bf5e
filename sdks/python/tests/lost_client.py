"""A program that is killed while its tool works: `python lost_client.py URL KEY`. It says the run's id when that is called."""

from __future__ import annotations

import sys
import threading

from eyot import Client, ClientTool


def _work(_: dict[str, object]) -> None:
    print(run.id, flush=True)
    threading.Event().wait()


with Client(sys.argv[1], api_key=sys.argv[2]) as client:
    slow = ClientTool("slow", "Takes for ever", {"type": "object", "properties": {}}, _work)
    run = client.agents.run("helper", "lost", prompt="call slow {}", tools=[slow], tool_timeout_ms=1_500)
    run.result()
