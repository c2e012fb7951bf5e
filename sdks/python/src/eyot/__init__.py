"""Computers for AI agents: the client of Eyot.

```python
from eyot import Client

with Client() as client, client.create() as sandbox:
    print(sandbox.exec("echo hello").stdout)
```
"""

from ._exec_socket import Output
from .agent_events import AgentEvent, AgentFailure, TokenCost, TokenUsage
from .agent_run import AgentRun
from .agents import Agents, Runs
from .async_agent_run import AsyncAgentRun
from .async_agents import AsyncAgents, AsyncRuns
from .async_client import AsyncClient
from .async_exec_stream import AsyncExecStream
from .async_kept_command import AsyncKeptCommand
from .async_sandbox import AsyncSandbox
from .async_server_images import AsyncImages
from .async_terminal import AsyncTerminal
from .client import Client
from .client_tools import ClientTool, ToolCallContext
from .errors import (
    AlreadyExists,
    Cancelled,
    CommandFailed,
    Conflict,
    Destroyed,
    EyotError,
    Internal,
    Invalid,
    IsDirectory,
    NotDirectory,
    NotFound,
    PermissionDenied,
    QuotaExceeded,
    RunFailed,
    SandboxNotFound,
    SetupFailed,
    TimedOut,
    TooLarge,
    Unavailable,
    Unsupported,
    UnsupportedOperation,
)
from .events import Event
from .exec_result import ExecResult, Outcome
from .exec_stream import ExecStream
from .files import DirEntry, FileStat, GlobResult, GrepMatch, GrepResult, WatchEvent
from .images import ImageInfo, PullProgress, RemovedImages
from .kept_command import KeptCommand
from .network import EgressDecision, EgressRules, Preview, PublishedPort
from .pools import PoolEntry, Transferred
from .port_forward import PortForward
from .processes import LiveProcess, LiveProcesses, LogChunk, ProcessInfo, TerminalInfo, Usage
from .runs import AgentInfo, AgentResult, RunInfo
from .sandbox import Sandbox
from .sandbox_info import Capabilities, Limits, Mount, SandboxInfo, SandboxOptions
from .server_images import Images
from .snapshots import ComparedFile, FileChange, FileChanges, ImageCommitted, SnapshotInfo
from .terminal import Terminal
from .tools import ToolResult

__all__ = [
    "AgentEvent",
    "AgentFailure",
    "AgentInfo",
    "AgentResult",
    "AgentRun",
    "Agents",
    "AlreadyExists",
    "AsyncAgentRun",
    "AsyncAgents",
    "AsyncClient",
    "AsyncExecStream",
    "AsyncImages",
    "AsyncKeptCommand",
    "AsyncRuns",
    "AsyncSandbox",
    "AsyncTerminal",
    "Cancelled",
    "Capabilities",
    "Client",
    "ClientTool",
    "CommandFailed",
    "ComparedFile",
    "Conflict",
    "Destroyed",
    "DirEntry",
    "EgressDecision",
    "EgressRules",
    "Event",
    "ExecResult",
    "ExecStream",
    "EyotError",
    "FileChange",
    "FileChanges",
    "FileStat",
    "GlobResult",
    "GrepMatch",
    "GrepResult",
    "ImageCommitted",
    "ImageInfo",
    "Images",
    "Internal",
    "Invalid",
    "IsDirectory",
    "KeptCommand",
    "Limits",
    "LiveProcess",
    "LiveProcesses",
    "LogChunk",
    "Mount",
    "NotDirectory",
    "NotFound",
    "Outcome",
    "Output",
    "PermissionDenied",
    "PoolEntry",
    "PortForward",
    "Preview",
    "ProcessInfo",
    "PublishedPort",
    "PullProgress",
    "QuotaExceeded",
    "RemovedImages",
    "RunFailed",
    "RunInfo",
    "Runs",
    "Sandbox",
    "SandboxInfo",
    "SandboxNotFound",
    "SandboxOptions",
    "SetupFailed",
    "SnapshotInfo",
    "Terminal",
    "TerminalInfo",
    "TimedOut",
    "TokenCost",
    "TokenUsage",
    "TooLarge",
    "ToolCallContext",
    "ToolResult",
    "Transferred",
    "Unavailable",
    "Unsupported",
    "UnsupportedOperation",
    "Usage",
    "WatchEvent",
]
