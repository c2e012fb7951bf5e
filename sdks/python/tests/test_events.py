"""How a stream of server-sent events is read."""

from __future__ import annotations

import pytest

from eyot import EyotError
from eyot._events import EventStream, StreamEvent

STREAM = 'event: x\r\ndata: {"a":\r\n: a comment\ndata: "grün\u2028\u0085"}\n\nid: 7\n\ndata: {"b":1}\n\n'.encode()


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_events_are_the_same_wherever_their_bytes_are_cut(size: int) -> None:
    events = EventStream()
    pieces = [STREAM[at : at + size] for at in range(0, len(STREAM), size)]
    assert [event.value for piece in pieces for event in events.take(piece)] == [{"a": "grün\u2028\u0085"}, {"b": 1}]


def test_an_event_problem_is_raised_behind_the_events_before_it() -> None:
    taken = EventStream().take(b'data: {"a":1}\n\nevent: problem\ndata: {"kind":"conflict","detail":"x"}\n\n')
    assert next(taken) == StreamEvent("", None, {"a": 1})
    with pytest.raises(EyotError) as caught:
        next(taken)
    assert caught.value.kind == "conflict"
