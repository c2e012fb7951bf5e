"""What can go wrong: one exception for each kind of problem (RFC 9457) that a server answers with.

Code matches the class or `kind`; a person or a model reads `str(error)`, one sentence, and `hint`, which a traceback shows too.
A command that fails is no error: its exit code is in the result.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from ._wire import known

if TYPE_CHECKING:
    from .exec_result import ExecResult
    from .runs import RunInfo


@dataclass(frozen=True)
class UnsupportedOperation:
    """What a provider does not do."""

    operation: str
    provider: str
    #: The options with which it does not; empty: it never does.
    options: list[str]


class EyotError(Exception):
    """An operation failed. Every other error of this package is one."""

    #: The kind of which this class is.
    of_kind: ClassVar[str] = "internal"

    def __init__(
        self,
        detail: str,
        *,
        kind: str | None = None,
        reason: str | None = None,
        hint: str | None = None,
        field: str | None = None,
        status: int | None = None,
        sleeping: bool = False,
        unsupported: UnsupportedOperation | None = None,
    ) -> None:
        super().__init__(detail)
        #: The whole sentence: what was to be done, where, and why it failed.
        self.detail = detail
        #: The kind, for code to match on.
        self.kind = kind or self.of_kind
        #: Why it failed, without what was to be done.
        self.reason = reason or detail
        #: What the reader can do about it.
        self.hint = hint
        if hint:
            # What a traceback shows below the message, which stays one sentence.
            self.__notes__ = [f"hint: {hint}"]
        #: The part of the request that is wrong.
        self.field = field
        #: The status of the HTTP response, if there was one.
        self.status = status
        #: The sandbox sleeps.
        self.sleeping = sleeping
        #: What the provider does not do, where it is that.
        self.unsupported = unsupported


class Invalid(EyotError):
    """The request itself is wrong; nothing was changed. `field` names the part."""

    of_kind = "invalid"


class NotFound(EyotError):
    """There is no such file, directory, program, process or sandbox."""

    of_kind = "not_found"


class SandboxNotFound(NotFound):
    """It is the sandbox itself that is not there."""


class AlreadyExists(EyotError):
    """The name or the path is taken; whoever holds it was not harmed."""

    of_kind = "already_exists"


class IsDirectory(EyotError):
    """A file was needed, and the path is a directory."""

    of_kind = "is_directory"


class NotDirectory(EyotError):
    """A directory was needed, and the path is something else."""

    of_kind = "not_directory"


class PermissionDenied(EyotError):
    """The sandbox's user may not do that, or the key does not open this."""

    of_kind = "permission"


class TooLarge(EyotError):
    """Larger than a limit that the error names."""

    of_kind = "too_large"


class QuotaExceeded(EyotError):
    """A quota (disk, processes, sandboxes) is used up."""

    of_kind = "quota"


class Unsupported(EyotError):
    """The server's provider does not do that, as `unsupported` says; nothing was changed."""

    of_kind = "unsupported"


class Destroyed(EyotError):
    """The sandbox is gone for good."""

    of_kind = "destroyed"


class Unavailable(EyotError):
    """The sandbox or the server does not answer; it may come back."""

    of_kind = "unavailable"


class TimedOut(EyotError):
    """A deadline of the operation itself passed. (A command's deadline is a result.)"""

    of_kind = "timeout"


class Cancelled(EyotError):
    """The operation was broken off. (A cancelled command is a result.)"""

    of_kind = "cancelled"


class Conflict(EyotError):
    """The state changed under the operation, or two operations contradict each other."""

    of_kind = "conflict"


class SetupFailed(EyotError):
    """A step of making the sandbox failed; nothing was left behind."""

    of_kind = "setup"


class Internal(EyotError):
    """A defect in Eyot or its backend."""

    of_kind = "internal"


class CommandFailed(EyotError):
    """A command did not exit with 0, and its result was asked to `check` that."""

    of_kind = "command_failed"

    def __init__(self, detail: str, result: ExecResult) -> None:
        super().__init__(detail)
        #: What it wrote, and how it ended.
        self.result = result


class RunFailed(EyotError):
    """A run of an agent ended with a failure."""

    of_kind = "run_failed"

    def __init__(self, run: RunInfo) -> None:
        reason = run.error.message if run.error else "the server does not say why"
        super().__init__(f"run `{run.id}` of the agent `{run.agent}` failed: {reason}", reason=reason)
        #: The run that failed.
        self.run = run
        #: The kind of failure: `ModelError`, `AbortError`, …
        self.error_name = run.error.name if run.error else "Error"


_CLASSES: dict[str, type[EyotError]] = {
    one.of_kind: one
    for one in (
        Invalid, NotFound, AlreadyExists, IsDirectory, NotDirectory, PermissionDenied, TooLarge, QuotaExceeded,
        Unsupported, Destroyed, Unavailable, TimedOut, Cancelled, Conflict, SetupFailed, Internal,
    )
}  # fmt: skip


def of_problem(problem: dict[str, Any]) -> EyotError:
    """The error that a problem on the wire stands for. A kind that is not known here is a plain `EyotError`."""
    kind = str(problem.get("kind", "internal"))
    unsupported = problem.get("unsupported")
    chosen = SandboxNotFound if problem.get("no_sandbox") else _CLASSES.get(kind, EyotError)
    return chosen(
        str(problem.get("detail") or problem.get("title") or kind),
        kind=kind,
        reason=problem.get("reason"),
        hint=problem.get("hint"),
        field=problem.get("field"),
        status=problem.get("status"),
        sleeping=bool(problem.get("sleeping")),
        unsupported=known(UnsupportedOperation, unsupported) if unsupported else None,
    )


def of_response(status: int, body: bytes) -> EyotError:
    """The error of a response. What is no problem (from a proxy, say) keeps its text."""
    try:
        problem = json.loads(body)
    except ValueError:
        problem = None
    if isinstance(problem, dict) and "kind" in problem:
        return of_problem({**problem, "status": status})
    kinds = {401: "permission", 403: "permission", 404: "not_found", 413: "too_large", 502: "unavailable",
             503: "unavailable", 504: "timeout"}  # fmt: skip
    kind = kinds.get(status, "invalid" if 400 <= status < 500 else "internal")
    text = body[:500].decode("utf-8", "replace").strip() or f"the server answers with status {status}"
    return of_problem({"kind": kind, "detail": text, "status": status})
