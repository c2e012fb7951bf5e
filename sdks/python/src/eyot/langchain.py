"""A sandbox as the backend of a deep agent (LangChain's `deepagents`).

    from deepagents import create_deep_agent
    from eyot import Client
    from eyot.langchain import EyotSandbox

    with Client() as client, client.create() as sandbox:
        agent = create_deep_agent(model=..., backend=EyotSandbox(sandbox))

The file tools come from `deepagents` itself, which runs `python3` and `grep` in the sandbox for them: its image must have both.
"""

from __future__ import annotations

from deepagents.backends.protocol import ExecuteResponse, FileDownloadResponse, FileUploadResponse
from deepagents.backends.sandbox import BaseSandbox

from .errors import EyotError, Invalid, IsDirectory, NotDirectory, NotFound, PermissionDenied, SandboxNotFound
from .exec_result import ExecResult
from .sandbox import Sandbox

#: The deadline of a command that names none.
DEFAULT_TIMEOUT_MS = 30 * 60 * 1000


class EyotSandbox(BaseSandbox):
    """A deep agent's backend over a sandbox. It does not destroy it.

    `aexecute` that is cancelled takes its command with it.
    """

    def __init__(self, sandbox: Sandbox, *, default_timeout_ms: int | None = DEFAULT_TIMEOUT_MS) -> None:
        self._sandbox = sandbox
        self._default_timeout_ms = default_timeout_ms

    @property
    def id(self) -> str:
        """The sandbox's id."""
        return self._sandbox.id

    def execute(self, command: str, *, timeout: int | None = None) -> ExecuteResponse:
        """Runs a shell command; `timeout` is in seconds, and 0 means none."""
        return _response(self._sandbox.exec(command, timeout_ms=self._timeout_ms(timeout)))

    async def aexecute(self, command: str, *, timeout: int | None = None) -> ExecuteResponse:
        """The same for async code."""
        # One client for each call: agents are run from one event loop and then another.
        async with self._sandbox._client.asynchronous() as client:
            sandbox = client.sandbox(self._sandbox.id)
            return _response(await sandbox.exec(command, timeout_ms=self._timeout_ms(timeout)))

    def upload_files(self, files: list[tuple[str, bytes]]) -> list[FileUploadResponse]:
        """Writes files, making missing parents; what can't be written says why, and the others are written."""
        return [self._upload(path, content) for path, content in files]

    def download_files(self, paths: list[str]) -> list[FileDownloadResponse]:
        """Reads files; what can't be read says why."""
        return [self._download(path) for path in paths]

    def _timeout_ms(self, timeout_s: int | None) -> int | None:
        if timeout_s is None:
            return self._default_timeout_ms
        return timeout_s * 1000 or None

    def _upload(self, path: str, content: bytes) -> FileUploadResponse:
        try:
            self._sandbox.write_file(_absolute(path), content)
        except EyotError as error:
            return FileUploadResponse(path=path, error=_reason(error))
        return FileUploadResponse(path=path)

    def _download(self, path: str) -> FileDownloadResponse:
        try:
            return FileDownloadResponse(path=path, content=self._sandbox.read_file(_absolute(path)))
        except EyotError as error:
            return FileDownloadResponse(path=path, error=_reason(error))


def _response(result: ExecResult) -> ExecuteResponse:
    between = "\n" if result.stdout and result.stderr and not result.stdout.endswith("\n") else ""
    return ExecuteResponse(
        output=f"{result.stdout}{between}{result.stderr}",
        exit_code=result.exit_code,
        truncated=result.stdout_truncated or result.stderr_truncated,
    )


def _absolute(path: str) -> str:
    if not path.startswith("/"):
        raise Invalid(f"path `{path}`: must be absolute", field="path")
    return path


def _reason(error: EyotError) -> str:
    """The protocol's word for it, where there is one. A sandbox that is gone is no matter of a file."""
    if isinstance(error, SandboxNotFound):
        raise error
    words: list[tuple[type[EyotError], str]] = [
        (NotFound, "file_not_found"),
        (PermissionDenied, "permission_denied"),
        (IsDirectory, "is_directory"),
        (NotDirectory, "invalid_path"),
        (Invalid, "invalid_path"),
    ]
    return next((word for kind, word in words if isinstance(error, kind)), str(error))
