/** What the API answers, as far as the page reads it; crates/server/openapi.json says all of it. */

export interface Problem {
  status: number;
  kind: string;
  detail: string;
  reason: string;
  hint?: string | null;
  field?: string | null;
  sleeping?: boolean;
  no_sandbox?: boolean;
}

export interface Session {
  needs_key: boolean;
  signed_in: boolean;
  name: string | null;
  pools: string[];
  proof?: string;
}

export type Status = "creating" | "running" | "sleeping" | "dead" | "damaged";

export interface Limits {
  memory_mib?: number | null;
  cpus?: number | null;
  pids?: number | null;
  disk_mib?: number | null;
}

/** An image that sandboxes are made from. */
export interface Image {
  name: string;
  digest: string;
  layers: number;
  size_bytes: number;
  created: string | null;
  complete: boolean;
}

/** The files of a sandbox as they were at one moment. */
export interface Snapshot {
  id: string;
  name: string | null;
  sandbox: string;
  sandbox_name: string;
  /** The one that the sandbox's files came from, which may be gone. */
  parent: string | null;
  created_ms: number;
  /** The bytes that it adds to its parent; `null`: not counted yet. */
  own_bytes: number | null;
}

/** A file, directory or link as one side of a comparison has it. */
export interface ComparedFile {
  type: "file" | "directory" | "symlink" | "other";
  size_bytes: number;
  mode: number;
}

/** A difference between two sides. */
export interface FileChange {
  path: string;
  change: "added" | "changed" | "removed";
  before: ComparedFile | null;
  after: ComparedFile | null;
  /** A unified diff, of text. */
  text?: string;
}

/** How far a pull is. The size grows until the last blob was begun. */
export interface PullProgress {
  received_bytes: number;
  total_bytes: number;
  blobs: number;
  blobs_done: number;
}

export interface Spec {
  image?: string | null;
  network?: string;
  user?: string | null;
  limits?: Limits;
  lifecycle?: { ttl_ms?: number | null; idle_timeout_ms?: number | null; on_idle?: string; auto_destroy?: boolean };
  egress?: { allow?: string[]; deny?: string[] };
  mounts?: { source: string; target: string; writable?: boolean }[];
}

export interface Sandbox {
  id: string;
  name: string;
  pool: string;
  provider: string;
  status: Status;
  life: string;
  workdir: string;
  created_ms: number;
  expires_at: string | null;
  idle_timeout_ms: number | null;
  labels: Record<string, string>;
  env_names: string[];
  spec: Spec;
  isolation: { network: string; limits: Record<string, string> };
}

export interface Usage {
  memory_bytes?: number | null;
  memory_peak_bytes?: number | null;
  cpu_ms?: number | null;
  processes?: number | null;
  disk_bytes?: number | null;
  idle_ms?: number | null;
  uptime_ms?: number | null;
}

export interface DirEntry {
  name: string;
  name_bytes?: number[] | null;
  file_type?: "file" | "directory" | "symlink" | "other" | null;
  size?: number | null;
}

export interface FileStat {
  is_file: boolean;
  is_directory: boolean;
  size?: number | null;
  modified_ms?: number | null;
}

export interface Process {
  id: string;
  pid: number;
  command: string;
  started_ms: number;
  ended_ms?: number | null;
  status: "running" | { ended: { exited: number } | { signaled: number } | "out_of_memory" };
}

export interface LiveProcess {
  pid: number;
  parent_pid: number;
  user: string;
  command: string;
  state: string;
  cpu_ms?: number | null;
  memory_bytes?: number | null;
}

export interface Terminal {
  id: string;
  command: string | null;
  started_ms: number;
  attached: boolean;
}

export interface Preview {
  url: string;
  path_url: string;
  port: number;
  public: boolean;
  expires_at: string;
}

/** An event of the log; what else it has depends on its kind. */
export interface Event {
  seq: number;
  time_ms: number;
  kind: string;
  pool?: string;
  sandbox?: string;
  sandbox_id?: string;
  reason: string;
  [more: string]: unknown;
}

/** An agent of the server. */
export interface Agent {
  name: string;
  description?: string;
  /** Every key may start it; otherwise a server without keys alone. */
  webhook: boolean;
  /** The reason why its runs can't work. */
  problem?: string;
}

/** A run of an agent. Lists leave out its payload and its result. */
export interface Run {
  id: string;
  agent: string;
  instance: string;
  pool?: string;
  /** The name of its sandbox, in its pool. */
  sandbox?: string;
  status: "active" | "completed" | "errored";
  /** It is active, and no process runs it. */
  interrupted: boolean;
  started_ms: number;
  ended_ms?: number;
  payload?: unknown;
  result?: unknown;
  error?: { name: string; message: string };
}

/** The tokens of a turn, and their price in dollars. */
export interface TokenUsage {
  input: number;
  output: number;
  cacheRead: number;
  cacheWrite: number;
  totalTokens: number;
  cost: { total: number };
}

/** An event of a run; what else it has depends on its type. */
export interface RunEvent {
  type: string;
  eventIndex: number;
  timestamp: string;
  harness?: string;
  session?: string;
  taskId?: string;
  operationId?: string;
  [more: string]: unknown;
}
