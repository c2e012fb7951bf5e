"""Sandboxes for Inspect's evaluations: the sandbox type `eyot`.

    Task(..., sandbox="eyot")
    Task(..., sandbox=("eyot", "node:22"))
    Task(..., sandbox=SandboxEnvironmentSpec("eyot", EyotConfig(image="python:3.12", network="egress")))

Every sample gets a sandbox of its own, on the server of `EYOT_SERVER`, or on one that is started for the tasks. Inspect finds
the type by itself when this package is installed. It runs on asyncio, Inspect's default.
"""

from __future__ import annotations

import asyncio
import errno
from typing import Any, Literal, cast, overload

from inspect_ai.util import (
    ExecResult,
    OutputLimitExceededError,
    SandboxConnection,
    SandboxEnvironment,
    SandboxEnvironmentConfigType,
    SandboxEnvironmentLimits,
    SandboxUserUnsupportedError,
    sandboxenv,
)
from inspect_ai.util._sandbox.environment import SandboxUnavailableError
from pydantic import BaseModel, ConfigDict

from .async_sandbox import AsyncSandbox
from .client import Client
from .errors import (
    Destroyed,
    EyotError,
    IsDirectory,
    NotDirectory,
    NotFound,
    PermissionDenied,
    SandboxNotFound,
    TimedOut,
    Unavailable,
    Unsupported,
)
from .sandbox_info import SandboxOptions

#: By this label its sandboxes are found again.
LABEL = {"made-by": "inspect-ai"}


class EyotConfig(BaseModel, frozen=True):
    """What a sample's sandbox is made from; absent is the server's default."""

    model_config = ConfigDict(extra="forbid")

    image: str | None = None
    workdir: str | None = None
    user: str | None = None
    env: dict[str, str] = {}
    network: Literal["none", "egress", "bridge"] | None = None
    egress: dict[str, list[str]] | None = None
    limits: dict[str, Any] | None = None
    ttl_ms: int | None = None

    def options(self) -> SandboxOptions:
        """As the client takes them."""
        given = self.model_dump(exclude_none=True, exclude_defaults=True)
        return cast(SandboxOptions, {**given, "labels": LABEL})

    def __hash__(self) -> int:
        """Inspect looks configurations up by their hash, which dictionaries have not."""
        return hash(self.model_dump_json())


class _Shared:
    """The client that all tasks of this process share, while there are any."""

    def __init__(self) -> None:
        self._tasks = 0
        #: The start of the client, and maybe of a server. No task's own: who is cancelled takes nothing from the others.
        self._start: asyncio.Task[Client] | None = None

    async def enter(self) -> None:
        """A task begins."""
        self._tasks += 1
        if self._start is None:
            self._start = asyncio.create_task(asyncio.to_thread(Client))
        try:
            await asyncio.shield(self._start)
        except BaseException:
            await self.leave()
            raise

    async def leave(self) -> None:
        """A task has ended; the last one closes the client."""
        self._tasks -= 1
        if self._tasks == 0 and self._start is not None:
            start, self._start = self._start, None
            await asyncio.shield(asyncio.create_task(_closed(start)))

    def client(self) -> Client:
        """The client, of a task that has begun."""
        if self._start is None:
            raise RuntimeError("no task has begun that uses the sandbox type `eyot`")
        return self._start.result()


async def _closed(start: asyncio.Task[Client]) -> None:
    """Closes a client, also one that is still to start."""
    await asyncio.wait([start])
    if not start.cancelled() and start.exception() is None:
        await asyncio.to_thread(start.result().close)


_shared = _Shared()


@sandboxenv(name="eyot")
class EyotSandboxEnvironment(SandboxEnvironment):
    """A sample's sandbox."""

    def __init__(self, sandbox: AsyncSandbox) -> None:
        super().__init__()
        self.sandbox = sandbox

    @classmethod
    async def task_init(cls, task_name: str, config: SandboxEnvironmentConfigType | None) -> None:
        """Finds the server, or starts one."""
        await _shared.enter()

    @classmethod
    async def task_cleanup(cls, task_name: str, config: SandboxEnvironmentConfigType | None, cleanup: bool) -> None:
        """Ends what `task_init` began."""
        await _shared.leave()

    @classmethod
    async def sample_init(
        cls, task_name: str, config: SandboxEnvironmentConfigType | None, metadata: dict[str, str]
    ) -> dict[str, SandboxEnvironment]:
        """Makes the sample's sandbox."""
        client = _shared.client().asynchronous()
        try:
            sandbox = await client.create(**_config(config).options())
        except BaseException:
            await client.close()
            raise
        return {"default": cls(sandbox)}

    @classmethod
    async def sample_cleanup(
        cls,
        task_name: str,
        config: SandboxEnvironmentConfigType | None,
        environments: dict[str, SandboxEnvironment],
        interrupted: bool,
    ) -> None:
        """Destroys it."""
        for environment in environments.values():
            sandbox = environment.as_type(cls).sandbox
            try:
                await sandbox.destroy()
            finally:
                await sandbox._client.close()

    @classmethod
    async def cli_cleanup(cls, id: str | None) -> None:
        """Destroys one sandbox, or all that were made here and are still there."""

        def clean() -> None:
            with Client() as client:
                for info in list(client.list(labels=LABEL)):
                    if id in (None, info.id, info.name):
                        client.sandbox(info.id).destroy()

        await asyncio.to_thread(clean)

    @classmethod
    def config_deserialize(cls, config: dict[str, Any]) -> BaseModel:
        """The configuration from a log."""
        return EyotConfig(**config)

    async def connection(self, *, user: str | None = None) -> SandboxConnection:
        """A shell for a person."""
        as_user = f" --user {user}" if user else ""
        return SandboxConnection(type="eyot", command=f"eyot exec -it{as_user} {self.sandbox.id} bash")

    async def exec(
        self,
        cmd: list[str],
        input: str | bytes | None = None,
        cwd: str | None = None,
        env: dict[str, str] | None = None,
        user: str | None = None,
        timeout: int | None = None,
        timeout_retry: bool = True,
        concurrency: bool = True,
    ) -> ExecResult[str]:
        """Runs a command. A deadline is the command's own and kills its whole tree, so it is not tried again."""
        try:
            result = await self.sandbox.exec(
                cmd,
                stdin=input,
                cwd=cwd,
                env=env,
                user=user,
                timeout_ms=None if timeout is None else timeout * 1000,
                max_output_bytes=SandboxEnvironmentLimits.MAX_EXEC_OUTPUT_SIZE,
            )
        except EyotError as error:
            return _not_run(error, user)
        if result.timed_out:
            raise TimeoutError(f"`{cmd[0]}` was killed after {timeout} seconds")
        if result.stdout_truncated or result.stderr_truncated:
            kept = result.stdout if result.stdout_truncated else result.stderr
            raise OutputLimitExceededError(SandboxEnvironmentLimits.MAX_EXEC_OUTPUT_SIZE_STR, kept)
        return ExecResult(result.ok, result.exit_code, result.stdout, result.stderr)

    async def write_file(self, file: str, contents: str | bytes) -> None:
        """Writes a file and makes missing parents."""
        try:
            await self.sandbox.write_file(file, contents)
        except EyotError as error:
            raise _of_file(error, file) from error

    @overload
    async def read_file(self, file: str, text: Literal[True] = True) -> str: ...

    @overload
    async def read_file(self, file: str, text: Literal[False]) -> bytes: ...

    async def read_file(self, file: str, text: bool = True) -> str | bytes:
        """Reads a file, if it is no longer than Inspect allows."""
        most = SandboxEnvironmentLimits.MAX_READ_FILE_SIZE
        try:
            data = await self.sandbox.read_file(file, limit=most + 1)
        except EyotError as error:
            raise _of_file(error, file) from error
        if len(data) > most:
            raise OutputLimitExceededError(SandboxEnvironmentLimits.MAX_READ_FILE_SIZE_STR, None)
        return data.decode() if text else data


def _config(config: SandboxEnvironmentConfigType | None) -> EyotConfig:
    """The configuration; a text is an image's name."""
    if config is None:
        return EyotConfig()
    if isinstance(config, str):
        return EyotConfig(image=config)
    if isinstance(config, EyotConfig):
        return config
    raise TypeError(f"the sandbox type `eyot` takes an EyotConfig or an image's name, not {type(config).__name__}")


def _not_run(error: EyotError, user: str | None) -> ExecResult[str]:
    """What a command that was not run is for Inspect: a result where a shell would have one, else an exception."""
    if isinstance(error, (SandboxNotFound, Destroyed, Unavailable)):
        raise SandboxUnavailableError(str(error)) from error
    if user is not None and isinstance(error, Unsupported):
        raise SandboxUserUnsupportedError(str(error)) from error
    if isinstance(error, NotFound):  # the program, the user or the directory
        return ExecResult(False, 127, "", f"{error}\n")
    if isinstance(error, PermissionDenied):
        raise PermissionError(errno.EACCES, str(error)) from error
    raise error


def _of_file(error: EyotError, file: str) -> Exception:
    """What a file that can't be read or written is for Inspect."""
    if isinstance(error, (SandboxNotFound, Destroyed, Unavailable)):
        return SandboxUnavailableError(str(error))
    if isinstance(error, TimedOut):
        return TimeoutError(str(error))
    numbers = {NotFound: errno.ENOENT, PermissionDenied: errno.EACCES, IsDirectory: errno.EISDIR,
               NotDirectory: errno.ENOTDIR}  # fmt: skip
    number = next((number for kind, number in numbers.items() if isinstance(error, kind)), None)
    # Given its number, an OSError is of the class that belongs to it.
    return error if number is None else OSError(number, str(error), file)
