/**
 * What `@anvia/sandbox` exports as types: the seed's (0.3), ports and managed processes (0.4), text pages (0.6).
 * Options take `undefined` for "not given"; milliseconds and bytes are whole numbers, as their names say.
 */

/** Something that makes sessions. */
export interface Sandbox {
  /** `docker`, or `native` with that option. */
  readonly provider: string;
  /** Makes a session. What fails halfway leaves nothing behind. */
  createSession(options?: SandboxCreateSessionOptions): Promise<SandboxSession>;
}

/** A live workspace. Paths are relative to `workdir`; absolute ones and those that lead out of it are refused. */
export interface SandboxSession {
  readonly id: string;
  readonly provider: string;
  /** Where commands start and paths begin, absolute. */
  readonly workdir: string;
  /** Runs a program, without a shell. Whatever it exits with, a deadline and an abort are results. */
  exec(options: SandboxExecOptions): Promise<SandboxExecResult>;
  /** The same with the output as it comes; the last event is `exit`. */
  execStream(options: SandboxExecOptions): AsyncIterable<SandboxExecStreamEvent>;
  readFile(path: string): Promise<Uint8Array>;
  /** Reads a file as UTF-8: what is not becomes U+FFFD, a byte order mark goes. */
  readTextFile(path: string): Promise<string>;
  /** Writes a file; missing parent directories are made. */
  writeFile(path: string, data: string | Uint8Array): Promise<void>;
  writeTextFile(path: string, content: string): Promise<void>;
  /** Lists a directory, not what is below it, in the directory's order, dot files included. */
  listFiles(path?: string): Promise<SandboxFileEntry[]>;
  /** Removes the sandbox, and its workspace unless that is kept. Twice is fine. */
  destroy(): Promise<void>;
}

/** A session whose ports can be reached from here (0.4). */
export interface SandboxPortSession extends SandboxSession {
  /** In the order in which they were asked for. */
  readonly publishedPorts: readonly SandboxPublishedPort[];
  /** Waits until something listens on the port, on 0.0.0.0 or ::. */
  waitForPort(port: number, options?: SandboxWaitForPortOptions): Promise<SandboxPublishedPort>;
}

/** A session that keeps processes running (0.4). */
export interface SandboxProcessSession extends SandboxSession {
  startProcess(options: SandboxStartProcessOptions): Promise<SandboxProcess>;
  /** Those that run, and those that ended and are still known. */
  listProcesses(): Promise<SandboxProcess[]>;
  /** The end of what a process wrote. */
  readProcessLogs(processId: string, options?: SandboxProcessLogsOptions): Promise<SandboxProcessLogs>;
  /** Ends a process with its whole tree: TERM, and KILL after a grace. Twice is fine. */
  stopProcess(processId: string, options?: SandboxStopProcessOptions): Promise<SandboxProcess>;
}

/** A session that reads a text file page by page (0.6). */
export interface SandboxTextPageSession extends SandboxSession {
  readTextFilePage(path: string, options?: SandboxTextFilePageOptions): Promise<SandboxTextFilePage>;
}

/** What a session is made from. */
export type SandboxCreateSessionOptions = {
  /** By default a UUID. Lower-case letters, digits, `_`, `.` and `-` stay; other characters become `-`. */
  id?: string | undefined;
  /** Beats the constructor's. */
  workspace?: SandboxWorkspaceOptions | undefined;
  manifest?: SandboxManifest | undefined;
  /** Kept as labels `anvia.sandbox.metadata.<key>`. */
  metadata?: Record<string, string> | undefined;
  /** TCP ports to publish on 127.0.0.1, 1 to 65535, each once (0.4). */
  ports?: readonly number[] | undefined;
};

/** Where the files of the working directory live: with the session, or in a volume that outlives it. */
export type SandboxWorkspaceOptions =
  | { mode?: "ephemeral" | undefined }
  | {
      mode: "persistent";
      id: string;
      /** By default `false`: the volume is kept. */
      destroyOnSessionDestroy?: boolean | undefined;
    };

/** What is put into a session before it is handed out: directories, then files. */
export type SandboxManifest = {
  files?: Record<string, string | Uint8Array> | undefined;
  directories?: readonly string[] | undefined;
  /** Variables of every command and managed process. */
  env?: Record<string, string> | undefined;
};

/** What a session may use. */
export type SandboxLimits = {
  /** A command's deadline where it names none; by default 30 000. */
  timeoutMs?: number | undefined;
  /** What is kept of each stream of a command; by default 1 048 576. */
  maxOutputBytes?: number | undefined;
  /** The largest file that is read or written; by default there is no limit. */
  maxFileBytes?: number | undefined;
  memoryMb?: number | undefined;
  cpus?: number | undefined;
  pidsLimit?: number | undefined;
  /** Managed processes that are known at once; by default 4 (0.4). */
  maxProcesses?: number | undefined;
};

/** When a session ends by itself. */
export type SandboxLifecycleOptions = {
  /** So long after it was made, whatever runs. */
  ttlMs?: number | undefined;
  /** So long after its last operation ended. */
  idleTimeoutMs?: number | undefined;
  /** `false` switches both off. */
  autoDestroy?: boolean | undefined;
};

/** A program to run. */
export type SandboxExecOptions = {
  /** The program itself: no shell reads it. */
  command: string;
  args?: readonly string[] | undefined;
  /** Relative to the session's `workdir`. */
  cwd?: string | undefined;
  /** Beats the manifest's. */
  env?: Record<string, string> | undefined;
  /** By default the session's. 0 ends it at once. */
  timeoutMs?: number | undefined;
  /** Its standard input; by default end of file. */
  input?: string | Uint8Array | undefined;
  /** Kills it with its whole tree; the result then has `aborted`. */
  signal?: AbortSignal | undefined;
  /** Told every byte as it comes, also what is past `maxOutputBytes`. */
  onStdout?: ((chunk: Uint8Array) => void) | undefined;
  onStderr?: ((chunk: Uint8Array) => void) | undefined;
};

/** What came of a program. */
export type SandboxExecResult = {
  stdout: string;
  stderr: string;
  /** Its own; 128 + n after a signal n; 124 after its deadline; 130 after an abort. */
  exitCode: number;
  durationMs: number;
  timedOut: boolean;
  aborted: boolean;
  stdoutTruncated: boolean;
  stderrTruncated: boolean;
};

/** What a running program tells; `exit` is the last, and comes once. */
export type SandboxExecStreamEvent =
  | { type: "stdout"; chunk: Uint8Array; text: string }
  | { type: "stderr"; chunk: Uint8Array; text: string }
  | { type: "exit"; result: SandboxExecResult };

/** What kind of thing has a name. A symbolic link is not followed. */
export type SandboxFileType = "file" | "directory" | "symlink" | "other";

/** A name in a directory. */
export type SandboxFileEntry = {
  /** Relative to the session's `workdir`. */
  path: string;
  type: SandboxFileType;
  size?: number;
};

/** A port of a session, as it is reached from here (0.4). */
export type SandboxPublishedPort = {
  containerPort: number;
  host: "127.0.0.1";
  hostPort: number;
  protocol: "tcp";
};

/** How to wait for a port (0.4). */
export type SandboxWaitForPortOptions = {
  /** By default the session's `limits.timeoutMs`, else 30 000. */
  timeoutMs?: number | undefined;
  /** Between two looks; by default 250. */
  intervalMs?: number | undefined;
  signal?: AbortSignal | undefined;
};

/** A process to keep running (0.4). */
export type SandboxStartProcessOptions = {
  command: string;
  args?: readonly string[] | undefined;
  cwd?: string | undefined;
  env?: Record<string, string> | undefined;
};

/** `exited` by itself, `stopped` by a call. */
export type SandboxProcessStatus = "running" | "exited" | "stopped";

/** A managed process (0.4). */
export type SandboxProcess = {
  id: string;
  command: string;
  args: string[];
  cwd?: string;
  status: SandboxProcessStatus;
  exitCode?: number;
  /** ISO 8601. */
  startedAt: string;
  endedAt?: string;
};

/** How much of a log (0.4). */
export type SandboxProcessLogsOptions = {
  /** Of each stream, at the most; by default all that is kept. */
  tailBytes?: number | undefined;
};

/** The end of what a process wrote (0.4). */
export type SandboxProcessLogs = {
  processId: string;
  stdout: string;
  stderr: string;
  stdoutTruncated: boolean;
  stderrTruncated: boolean;
};

/** How to stop a process (0.4). */
export type SandboxStopProcessOptions = {
  /** Between TERM and KILL; by default 5 000. */
  gracePeriodMs?: number | undefined;
};

/** Which page of a text file (0.6): positive whole numbers. */
export type SandboxTextFilePageOptions = {
  /** By default 1. */
  startLine?: number | undefined;
  /** By default 500. */
  lineCount?: number | undefined;
  /** By default 65 536. */
  maxBytes?: number | undefined;
};

/** A page of a text file (0.6). */
export type SandboxTextFilePage = {
  content: string;
  startLine: number;
  /** The last line of which there is something here; `null`: there is nothing. */
  endLine: number | null;
  /** Where to go on; `null` at the end, and where a line was cut in two. */
  nextStartLine: number | null;
  truncated: boolean;
  truncatedBy: "lines" | "bytes" | null;
};

/** `false` and `"none"`: none. `true`: outwards. Another text is a mode, or a network, of the Engine. */
export type SandboxNetworkMode = boolean | "none" | "host" | (string & {});

export type DockerSandboxNetworkOptions = {
  mode: SandboxNetworkMode;
};

export type DockerSandboxSecurityOptions = {
  /** By default `false`. */
  readonlyRootfs?: boolean | undefined;
  /** By default `true`. */
  noNewPrivileges?: boolean | undefined;
  /** By default `["ALL"]`; `[]` drops none. */
  dropCapabilities?: readonly string[] | undefined;
};

/** What `@anvia/sandbox`'s constructor takes. */
export type DockerSandboxOptions = {
  /** By default `node:22-bookworm`. */
  image?: string | undefined;
  /** By default `missing`. */
  pull?: "missing" | "always" | "never" | undefined;
  /** By default `/workspace`. */
  workdir?: string | undefined;
  workspace?: SandboxWorkspaceOptions | undefined;
  lifecycle?: SandboxLifecycleOptions | undefined;
  /** By default `false`. */
  network?: SandboxNetworkMode | DockerSandboxNetworkOptions | undefined;
  user?: string | undefined;
  /** Not used: Eyot speaks to the Engine itself. */
  dockerPath?: string | undefined;
  labels?: Record<string, string> | undefined;
  limits?: SandboxLimits | undefined;
  security?: DockerSandboxSecurityOptions | undefined;
  hooks?: SandboxHooks | undefined;
};

/** Told what happens, in this process, and waited for; what one throws, the call throws. */
export type SandboxHooks = {
  onSessionCreate?: ((event: SandboxSessionEvent) => void | Promise<void>) | undefined;
  onExecStart?: ((event: SandboxExecEvent) => void | Promise<void>) | undefined;
  onExecEnd?: ((event: SandboxExecEndEvent) => void | Promise<void>) | undefined;
  onFileWrite?: ((event: SandboxFileWriteEvent) => void | Promise<void>) | undefined;
  onDestroy?: ((event: SandboxSessionEvent) => void | Promise<void>) | undefined;
};

export type SandboxSessionEvent = {
  sessionId: string;
  provider: string;
  workdir: string;
};

export type SandboxExecEvent = SandboxSessionEvent & {
  command: string;
  args: string[];
  /** Only where the call named one. */
  cwd?: string;
};

export type SandboxExecEndEvent = SandboxExecEvent & {
  result: SandboxExecResult;
};

export type SandboxFileWriteEvent = SandboxSessionEvent & {
  /** Normalised. */
  path: string;
  /** In bytes. */
  size: number;
};

/** A tool of Anvia's agents, as structurally as they read it. */
export type AnyTool = SandboxTool<any, any>;

/** A tool: what the model is told, and what is done with its arguments. */
export type SandboxTool<Input, Output> = {
  readonly name: string;
  definition(): SandboxToolDefinition | Promise<SandboxToolDefinition>;
  /** Arguments that do not fit the schema are refused by an error. */
  call(args: Input, context?: unknown): Promise<Output>;
};

/** What the model is told of a tool; `parameters` is a JSON schema. */
export type SandboxToolDefinition = {
  name: string;
  description: string;
  parameters: Record<string, unknown>;
};

/** The tools there are, in the order in which they are handed out. */
export type SandboxToolName =
  | "exec_command"
  | "read_file"
  | "write_file"
  | "list_files"
  | "list_ports"
  | "start_process"
  | "list_processes"
  | "read_process_logs"
  | "stop_process"
  | "wait_for_port";

/** What commands a model may run, and for how long. */
export type SandboxExecToolPolicy = {
  allowedCommands?: readonly string[] | undefined;
  blockedCommands?: readonly string[] | undefined;
  defaultTimeoutMs?: number | undefined;
  maxTimeoutMs?: number | undefined;
};

/** How large a file may be. */
export type SandboxFileToolPolicy = {
  maxBytes?: number | undefined;
};

/**
 * How `read_file` answers. `text`, the seed's: the whole text, refused above `maxBytes`. `page`, that of 0.6: a page object,
 * cut at `maxBytes`.
 */
export type SandboxReadFileMode = "text" | "page";

/** How a model reads files; the line counts are those of pages (0.6). */
export type SandboxReadFileToolPolicy = SandboxFileToolPolicy & {
  /** By default `page`. */
  mode?: SandboxReadFileMode | undefined;
  /** By default 500. */
  defaultLineCount?: number | undefined;
  /** By default 2 000, at the most 10 000. */
  maxLineCount?: number | undefined;
};

/** How a model uses processes and ports (0.4). */
export type SandboxProcessToolPolicy = {
  /** By default 65 536, at the most 1 048 576. */
  maxLogBytes?: number | undefined;
  /** By default 30 000. */
  defaultWaitTimeoutMs?: number | undefined;
  /** By default and at the most 300 000. */
  maxWaitTimeoutMs?: number | undefined;
  /** By default 5 000. */
  stopGracePeriodMs?: number | undefined;
};

/** Which tools, and what they may do. */
export type SandboxToolsOptions = {
  /** Which tools; beats `include`. */
  allow?: readonly SandboxToolName[] | undefined;
  include?: readonly SandboxToolName[] | undefined;
  /** A command's deadline where neither the call nor the policy names one. */
  execTimeoutMs?: number | undefined;
  exec?: SandboxExecToolPolicy | undefined;
  readFile?: SandboxReadFileToolPolicy | undefined;
  writeFile?: SandboxFileToolPolicy | undefined;
  process?: SandboxProcessToolPolicy | undefined;
};

export type SandboxToolsFactory = (session: SandboxSession, options?: SandboxToolsOptions) => AnyTool[];

/** What `DockerSandbox` makes: a session that can do all of it. */
export type DockerSandboxSession = SandboxPortSession & SandboxProcessSession & SandboxTextPageSession;
