"""Names of other libraries, which a program asks a sandbox or its class for: the error about one names ours."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

_EXEC = "exec(command)"
_FILES = "read_text(path), write_file(path, data), list(path), upload(source, target) and the like"
_PROCESSES = "start(command), or keep(command) with its output"

#: What to write instead of a name, on a sandbox or on its class.
_OURS = {
    "create": "client.create(): a Client makes sandboxes",
    "connect": "client.get(id_or_name) for one that is there, whose next use wakes it",
    "commands": f"{_EXEC}; {_PROCESSES} runs one in the background",
    "process": f"{_EXEC}; {_PROCESSES} runs one in the background",
    "run": _EXEC,
    "run_code": "exec(['python3', '-c', code])",
    "pty": "open_terminal() and attach_terminal(terminal)",
    "files": _FILES,
    "filesystem": _FILES,
    "get_host": "forward(port), a port of this machine; or preview(port), an address at a server that listens on TCP",
    "set_timeout": "update(lifecycle={'ttl_ms': …}), in milliseconds since the create",
    "pause": "sleep()",
    "beta_pause": "sleep()",
    "resume": "wake(); any use wakes it, too",
    "is_running": "refresh().status",
    "get_info": "refresh()",
    "get_metrics": "usage()",
    "sandbox_id": "id",
    "upload_url": "upload(source, target)",
    "download_url": "download(source, target)",
    "close": "destroy(); a sandbox that is not destroyed lives on",
}


class NamesOurs(type):
    """A class whose error about a name of another library names ours, and whose sandboxes do so, too."""

    # Type checkers know these names as missing, and have to go on saying so.
    if not TYPE_CHECKING:

        def __getattr__(cls, name: str) -> Any:
            raise _error(f"type object {cls.__name__!r} has no attribute {name!r}", name, cls)

        def __call__(cls, *args: Any, **kwargs: Any) -> Any:
            # A client calls with itself and the address; a program of another library with nothing or a template.
            if len(args) < 2 or isinstance(args[0], str):
                raise TypeError(f"{cls.__name__}() makes no sandbox; use {_OURS['create']}")
            return super().__call__(*args, **kwargs)


class OfASandbox(metaclass=NamesOurs):
    """The same of a sandbox's attributes. `hasattr` is false for them."""

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            raise _error(f"{type(self).__name__!r} object has no attribute {name!r}", name, self)


def _error(missing: str, name: str, of: object) -> AttributeError:
    ours = _OURS.get(name)
    if ours is None:
        return AttributeError(missing, name=name, obj=of)
    # Without the name and the object: else Python adds the name that is spelled most like it.
    return AttributeError(f"{missing}; use {ours}")


def kills_a_process(kill: Callable[P, T]) -> Callable[P, T]:
    """Makes the error about a `kill` without a process name what ends a sandbox."""

    @wraps(kill)
    def checked(*args: P.args, **kwargs: P.kwargs) -> T:
        if len(args) < 2 and "process" not in kwargs:
            raise TypeError("kill() needs the process to kill; use destroy() to end the sandbox")
        return kill(*args, **kwargs)

    return checked
