/** One sandbox: run commands, use files, start processes, put it to sleep. A handle is a name; making one asks nothing. */

import { checkContent, checkFiles, checkInput, checkName, checkPath, checkPort, segment, signalNumber } from "./arguments.js";
import { fromWire, toWire } from "./case.js";
import { type Command, type ExecOptions, type ExecResult, EXEC_OPTIONS, abortedBefore, commandBody, execBody, execResult, isLargeStdin, stdinBody } from "./exec.js";
import { ExecStream, type ExecStreamOptions } from "./exec_stream.js";
import { EyotError } from "./error.js";
import type {
  CallOptions,
  DirEntry,
  FileContent,
  FileStat,
  GlobOptions,
  GlobResult,
  GrepOptions,
  GrepResult,
  ListDirectoryOptions,
  MkdirOptions,
  ReadOptions,
  RemoveOptions,
  TarInOptions,
  WatchEvent,
  WatchOptions,
  WriteOptions,
} from "./files.js";
import type { DecisionOptions, EgressDecision, EgressRules, Preview, PreviewOptions, PublishedPort } from "./network.js";
import type { components } from "./openapi.js";
import { type LiveProcesses, type LogOptions, type LogPiece, type ProcessInfo, type StartOptions, type WaitOptions, logPieces, startBody } from "./processes.js";
import type { SandboxChanges, SandboxInfo } from "./spec.js";
import { KEEP_OPTIONS, type KeepOptions, KeptCommand } from "./kept_command.js";
import { type NamedEvent, namedEvents, serverSentEvents } from "./sse.js";
import type { Streamed } from "./streamed.js";
import { isFolder, localFile, packed, putFile, putFolder } from "./folders.js";
import { Terminal, type TerminalInfo, type TerminalOptions } from "./terminal.js";
import {
  COMMIT,
  type CommitOptions,
  FORK,
  type FileChanges,
  type ForkOptions,
  type ImageCommitted,
  ROLLBACK,
  type RollbackOptions,
  SANDBOX_DIFF,
  SNAPSHOT,
  type SandboxDiffOptions,
  type SnapshotOptions,
  type SnapshotTaken,
} from "./snapshots.js";
import { checkMadeByClient, nameOurs } from "./foreign_names.js";
import { checkCommandOptions, checkOptions } from "./foreign_options.js";
import * as known from "./known_options.js";
import { PortForward } from "./forward.js";
import { type Query, type Request, type Transport, AbortError, abortError, queryText } from "./transport.js";
import { carry } from "./tunnel.js";

type Schemas = components["schemas"];

/** What a sandbox uses now; what the provider can't tell is absent. */
export interface Usage {
  /** Live processes. */
  processes?: number;
  memoryBytes?: number;
  memoryPeakBytes?: number;
  cpuMs?: number;
  diskBytes?: number;
  uptimeMs?: number;
  idleMs?: number;
}

/** A request of a sandbox: the path is behind its own. */
type Asked = Omit<Request, "signal"> & CallOptions;

/** A sandbox. Its paths are absolute, or relative to its working directory. Any use wakes it. */
export class Sandbox {
  readonly #transport: () => Promise<Transport>;
  #info: SandboxInfo | undefined;

  readonly #beneath: string | undefined;

  static {
    nameOurs(this);
  }

  /** Use `client.create`, `client.get` or `client.sandbox`. */
  constructor(
    transport: () => Promise<Transport>,
    /** Its id, or its name in the pool, as it was asked for. */
    readonly id: string,
    /** Where a name is looked for; by default the key's own pool. */
    readonly pool: string | undefined,
    info?: SandboxInfo,
    beneath?: string,
  ) {
    checkMadeByClient(transport);
    checkName(id, "a sandbox");
    this.#transport = transport;
    this.#info = info;
    this.#beneath = beneath;
  }

  /** What was known of it when it was last asked for; absent on a handle that never asked. */
  get info(): SandboxInfo | undefined {
    return this.#info;
  }

  /**
   * The same sandbox, of whose files only those below this directory can be named: a path that leads out of it, by `..` or by
   * a symbolic link, is refused with `permission`. Relative paths still begin at the working directory.
   */
  beneath(directory: string): Sandbox {
    return new Sandbox(this.#transport, this.id, this.pool, this.#info, directory);
  }

  /** Asks what is known of it. It is not woken by that. */
  async refresh(options: CallOptions = {}): Promise<SandboxInfo> {
    return this.#learn(await this.#json<unknown>({ method: "GET", path: "", ...options }));
  }

  /** Runs a command to its end. Whatever it exits with is a result; so is the abort of one that runs, with its output so far. */
  async exec(command: Command, options: ExecOptions = {}): Promise<ExecResult> {
    checkCommandOptions(options, EXEC_OPTIONS);
    const isTold = options.onStdout !== undefined || options.onStderr !== undefined;
    if (options.signal || isTold || isLargeStdin(options.stdin)) return await this.#tell(command, options);
    return execResult(await this.#json({ method: "POST", path: "/exec", json: execBody(command, options) }));
  }

  /** Runs a command whose output is told, or which may be aborted: also before it is sent, when it is never run. */
  async #tell(command: Command, options: ExecOptions): Promise<ExecResult> {
    let stream: ExecStream;
    try {
      stream = await this.execStream(command, options);
    } catch (error) {
      if (error instanceof AbortError) return abortedBefore();
      throw error;
    }
    return await stream.tell(options);
  }

  /** Runs a command whose output is read as it comes. */
  async execStream(command: Command, options: ExecStreamOptions = {}): Promise<ExecStream> {
    commandBody(command);
    const path = this.#path("/exec/socket") + queryText(this.#where());
    if (options.signal?.aborted) throw abortError(options.signal);
    return await ExecStream.open(await this.#transport(), path, command, options);
  }

  /**
   * Runs a command that outlives the connection and the server, whose output is read as it comes. It waits while it is 1 MiB ahead
   * of its reader.
   */
  async keep(command: Command, options: KeepOptions = {}): Promise<KeptCommand> {
    checkCommandOptions(options, KEEP_OPTIONS);
    const { lingerMs, readTimeoutMs, ...others } = options;
    const asked: Asked = { method: "POST", path: "/exec/stream", query: { linger_ms: lingerMs }, json: execBody(command, others) };
    const events = await this.#kept(asked, readTimeoutMs);
    const { value } = await events.next();
    return new KeptCommand((value?.value as { exec: string }).exec, events, (id) => this.#endKept(id));
  }

  /** Reads on from a kept command, by its id: what comes behind the event `after`, or all that is kept. */
  async attach(command: string, options: { after?: number; readTimeoutMs?: number } & CallOptions = {}): Promise<KeptCommand> {
    const { after, readTimeoutMs, signal } = options;
    const headers = after === undefined ? {} : { "last-event-id": String(after) };
    const events = await this.#kept({ method: "GET", path: `/exec/stream/${segment(command, "a command")}`, headers, signal }, readTimeoutMs);
    return new KeptCommand(command, events, (id) => this.#endKept(id), after);
  }

  async #kept(asked: Asked, readTimeoutMs: number | undefined): Promise<Streamed<NamedEvent>> {
    return (await (await this.#transport()).stream(this.#request(asked))).through(namedEvents).within(readTimeoutMs);
  }

  async #endKept(command: string): Promise<void> {
    await this.#nothing({ method: "DELETE", path: `/exec/stream/${segment(command, "a command")}` });
  }

  /** Opens a terminal that outlives the connection and the server. {@link attachTerminal} shows it. */
  async openTerminal(options: TerminalOptions = {}): Promise<TerminalInfo> {
    const { signal, size = { rows: 24, cols: 80 }, ...others } = options;
    return fromWire(await this.#json({ method: "POST", path: "/terminals", json: { ...others, size }, signal }));
  }

  /** Lists the terminals, oldest first. Asking wakes nothing. */
  async terminals(options: CallOptions = {}): Promise<TerminalInfo[]> {
    return fromWire((await this.#json<Schemas["TerminalList"]>({ method: "GET", path: "/terminals", ...options })).terminals);
  }

  /** Attaches to a terminal, by its id, in the place of who was attached. */
  async attachTerminal(terminal: string, options: CallOptions = {}): Promise<Terminal> {
    const path = this.#path(`/terminals/${segment(terminal, "a terminal")}/socket`) + queryText(this.#where());
    return await Terminal.attach(await this.#transport(), path, terminal, options);
  }

  /** Ends a terminal with all that runs in it. */
  async endTerminal(terminal: string): Promise<void> {
    await this.#nothing({ method: "DELETE", path: `/terminals/${segment(terminal, "a terminal")}` });
  }

  /** Reads a file. */
  async readFile(path: string, options: ReadOptions = {}): Promise<Uint8Array> {
    checkOptions(options, known.READ, "read file");
    checkPath(path, "read file");
    const { signal, ...range } = options;
    return await this.#bytes({ method: "GET", path: "/files", query: { path, ...range }, signal });
  }

  /** Reads a file as UTF-8. */
  async readText(path: string, options: ReadOptions = {}): Promise<string> {
    return new TextDecoder("utf-8", { ignoreBOM: true }).decode(await this.readFile(path, options));
  }

  /** Reads a file piece by piece. Read it, or let go of it by its `return`. */
  async readStream(path: string, options: ReadOptions = {}): Promise<Streamed<Uint8Array>> {
    checkOptions(options, known.READ, "read file");
    checkPath(path, "read file");
    const { signal, ...range } = options;
    return await (await this.#transport()).stream(this.#request({ method: "GET", path: "/files", query: { path, ...range }, signal }));
  }

  /** Writes a file, atomically; missing parent directories are made. */
  async writeFile(path: string, content: FileContent, options: WriteOptions = {}): Promise<void> {
    checkOptions(options, known.WRITE, "write file");
    checkPath(path, "write file");
    checkContent(content, `write file \`${path}\``);
    const { signal, mode, permissions, maxFileBytes } = options;
    const query = { path, mode, permissions, max_file_bytes: maxFileBytes };
    await this.#json({ method: "PUT", path: "/files", query, body: content, signal });
  }

  /** Adds to a file's end; two appends never interleave. */
  async appendFile(path: string, content: FileContent, options: CallOptions = {}): Promise<void> {
    checkPath(path, "append to file");
    checkContent(content, `append to file \`${path}\``);
    await this.#json({ method: "PUT", path: "/files", query: { path, mode: "append" }, body: content, ...options });
  }

  /** Writes several files, by their paths, as {@link writeFile} writes each. */
  async writeFiles(files: Record<string, string | Uint8Array>, options: CallOptions = {}): Promise<void> {
    checkFiles(files, "write files", checkContent);
    for (const [path, content] of Object.entries(files)) await this.writeFile(path, content, options);
  }

  /**
   * Copies a file or a folder of this machine to a path in the sandbox. Parents are made, and what is there is replaced. A folder
   * keeps its permissions and links; files that are already in a folder of that path stay.
   */
  async upload(source: string, target: string, options: CallOptions = {}): Promise<void> {
    if (!(await isFolder(source))) {
      const { content, permissions } = await localFile(source);
      return await this.writeFile(target, content, { ...options, permissions });
    }
    const tar = await packed(source);
    await this.mkdir(target, { ...options, recursive: true });
    if (tar !== undefined) await this.tarIn(target, tar, options);
  }

  /**
   * Copies a file or a folder of the sandbox to a path on this machine. Parents are made. A file that is there is replaced. A
   * folder must be new here, or empty; one with links that lead out of it is refused.
   */
  async download(source: string, target: string, options: CallOptions = {}): Promise<void> {
    if ((await this.stat(source, options)).isDirectory) await putFolder(target, await this.tarOut(source, options));
    else await putFile(target, await this.readStream(source, options));
  }

  /** Packs a file or a tree as a tar stream, whose names begin with the last segment of the path. */
  async tarOut(path: string, options: CallOptions = {}): Promise<Streamed<Uint8Array>> {
    checkPath(path, "pack");
    return await (await this.#transport()).stream(this.#request({ method: "GET", path: "/tree", query: { path }, ...options }));
  }

  /** Unpacks a tar stream below a directory that is there, and answers with how many entries were made. */
  async tarIn(path: string, tar: Uint8Array | AsyncIterable<Uint8Array>, options: TarInOptions = {}): Promise<number> {
    checkPath(path, "unpack");
    checkContent(tar, "unpack", "tar");
    const { signal, maxTotalBytes, maxEntries } = options;
    const query = { path, max_total_bytes: maxTotalBytes, max_entries: maxEntries };
    return (await this.#json<Schemas["Unpacked"]>({ method: "PUT", path: "/tree", query, body: tar, signal })).entries;
  }

  /** Whether something is there. Missing, dangling and beneath a file are all `false`. */
  async exists(path: string, options: CallOptions = {}): Promise<boolean> {
    checkPath(path, "look for a file");
    return (await this.#json<Schemas["Exists"]>({ method: "GET", path: "/exists", query: { path }, ...options })).exists;
  }

  /** Says what is known of a file. */
  async stat(path: string, options: CallOptions = {}): Promise<FileStat> {
    checkPath(path, "stat");
    return fromWire(await this.#json({ method: "GET", path: "/stat", query: { path }, ...options }));
  }

  /** Lists a directory, sorted by name unless `order` says otherwise, dot files included. */
  async list(path = ".", options: ListDirectoryOptions = {}): Promise<DirEntry[]> {
    checkOptions(options, known.LIST_DIRECTORY, "list directory");
    checkPath(path, "list directory");
    const { order, signal } = options;
    const listing = await this.#json<Schemas["Listing"]>({ method: "GET", path: "/list", query: { path, order }, signal });
    return fromWire(listing.entries);
  }

  /** Makes a directory. */
  async mkdir(path: string, options: MkdirOptions = {}): Promise<void> {
    checkOptions(options, known.MKDIR, "make directory");
    checkPath(path, "make directory");
    const { signal, recursive } = options;
    await this.#nothing({ method: "POST", path: "/mkdir", query: { path, recursive }, signal });
  }

  /** Removes a file, a symbolic link (not its target), or with `recursive` a directory. */
  async remove(path: string, options: RemoveOptions = {}): Promise<void> {
    checkOptions(options, known.REMOVE, "remove");
    checkPath(path, "remove");
    const { signal, recursive, force } = options;
    await this.#nothing({ method: "DELETE", path: "/files", query: { path, recursive, force }, signal });
  }

  /** Moves a file or a directory, replacing a file (or an empty directory) that is in the way. */
  async rename(from: string, to: string, options: CallOptions = {}): Promise<void> {
    checkPath(from, "rename", "from");
    checkPath(to, "rename", "to");
    await this.#nothing({ method: "POST", path: "/rename", query: { from, to }, ...options });
  }

  /** Finds files by a pattern such as `src/*.ts`. */
  async glob(pattern: string, options: GlobOptions = {}): Promise<GlobResult> {
    checkOptions(options, known.GLOB, "glob");
    checkPath(pattern, "glob", "pattern");
    const { signal, path, hidden, maxResults } = options;
    const query = { pattern, path, hidden, max_results: maxResults };
    return fromWire(await this.#json({ method: "GET", path: "/glob", query, signal }));
  }

  /** Finds lines by a regular expression (Rust's), or by literal text. */
  async grep(pattern: string, options: GrepOptions = {}): Promise<GrepResult> {
    checkOptions(options, known.GREP, "grep");
    checkPath(pattern, "grep", "pattern");
    const { signal, path, literal, ignoreCase, include, maxMatches, maxLineBytes } = options;
    const limits = { max_matches: maxMatches, max_line_bytes: maxLineBytes };
    const query = { pattern, path, literal, ignore_case: ignoreCase, include, ...limits };
    return fromWire(await this.#json({ method: "GET", path: "/grep", query, signal }));
  }

  /** Tells what happens to a file or below a directory, once this has resolved. Abort the signal, leave the loop, or call `return`, to stop. */
  async watch(path = ".", options: WatchOptions = {}): Promise<Streamed<WatchEvent>> {
    checkOptions(options, known.WATCH, "watch");
    checkPath(path, "watch");
    const { signal, recursive, readTimeoutMs } = options;
    const events = await this.#events({ method: "GET", path: "/watch", query: { path, recursive }, signal }, readTimeoutMs);
    return events.through(converted<WatchEvent>);
  }

  /** Starts a process that outlives the call, the connection and the server. */
  async start(command: Command, options: StartOptions = {}): Promise<ProcessInfo> {
    return fromWire(await this.#json({ method: "POST", path: "/processes", json: startBody(command, options) }));
  }

  /** Writes to a process that was started with `stdinFollows`, at most 64 KiB; with `end`, end of file comes behind it. */
  async writeStdin(process: string, data: string | Uint8Array, options: { end?: boolean } = {}): Promise<void> {
    checkInput(data, "write to a process");
    await this.#nothing({ method: "POST", path: this.#processPath(process, "stdin"), json: { ...stdinBody(data), ...options } });
  }

  /** Lists the started processes that are still known, oldest first. */
  async processes(options: CallOptions = {}): Promise<ProcessInfo[]> {
    const { processes } = await this.#json<Schemas["ProcessList"]>({ method: "GET", path: "/processes", ...options });
    return fromWire(processes);
  }

  /** Reads a started process's log. */
  async *logs(process: string, options: LogOptions = {}): AsyncGenerator<LogPiece, void> {
    checkOptions(options, known.LOGS, "read log");
    const { signal, stream, offset, tailBytes, tailLines, limitBytes, follow, readTimeoutMs } = options;
    const query: Query = { stream, offset, tail_bytes: tailBytes, tail_lines: tailLines, limit_bytes: limitBytes, follow };
    yield* logPieces(await this.#events({ method: "GET", path: this.#processPath(process, "logs"), query, signal }, readTimeoutMs));
  }

  /** Waits until a started process has ended. */
  async wait(process: string, options: WaitOptions = {}): Promise<ProcessInfo> {
    checkOptions(options, known.WAIT, "wait for process");
    const { observe, signal } = options;
    return fromWire(await this.#json({ method: "GET", path: this.#processPath(process, "wait"), query: { observe }, signal }));
  }

  /** Kills a started process with its whole tree; or sends its group a signal: a name such as `TERM`, or a Linux number. */
  async kill(process: string, signal?: number | string): Promise<void> {
    if (process === undefined) {
      throw new EyotError("kill: needs the id of the process to kill; use `destroy()` to end the sandbox", { kind: "invalid", field: "process" });
    }
    const json = signal === undefined ? {} : { signal: signalNumber(signal, "kill a process") };
    await this.#nothing({ method: "POST", path: this.#processPath(process, "signal"), json });
  }

  /** Lists everything that runs in it, whoever started it. Asking is no use of it. */
  async liveProcesses(options: CallOptions = {}): Promise<LiveProcesses> {
    return fromWire(await this.#json({ method: "GET", path: "/live", ...options }));
  }

  /** Says where it may connect to, with the network `egress`. */
  async egressRules(options: CallOptions = {}): Promise<EgressRules> {
    return await this.#json({ method: "GET", path: "/egress", ...options });
  }

  /** Replaces the rules. Connections that they do not allow are closed. */
  async setEgressRules(rules: Partial<EgressRules>, options: CallOptions = {}): Promise<void> {
    await this.#nothing({ method: "PUT", path: "/egress", json: rules, ...options });
  }

  /** Tells what was decided about attempts to leave, oldest first. */
  async *egressDecisions(options: DecisionOptions = {}): AsyncGenerator<EgressDecision, void> {
    const { last, follow, readTimeoutMs, signal } = options;
    const asked: Asked = { method: "GET", path: "/egress/decisions", query: { last, follow }, signal };
    yield* converted<EgressDecision>(await this.#events(asked, readTimeoutMs));
  }

  /** Says where the ports are that its spec asked to be published on the server's host. */
  async publishedPorts(options: CallOptions = {}): Promise<PublishedPort[]> {
    const { ports } = await this.#json<Schemas["PublishedPorts"]>({ method: "GET", path: "/ports", ...options });
    return fromWire(ports);
  }

  /** Makes one of its ports a port of this host's loopback, as long as this program runs and it is not closed. */
  async forward(port: number): Promise<PortForward> {
    checkPort(port, "forward");
    const transport = await this.#transport();
    const path = this.#path(`/ports/${port}/connect`) + queryText(this.#where());
    let letGo = (): void => {};
    const forward = await PortForward.listen(port, (socket) => carry(socket, transport, path), () => letGo());
    letGo = transport.hold(() => forward.close());
    return forward;
  }

  /**
   * Makes one of its ports a web page of the server's. The sandbox is not woken by that, but by a visit. A server that the client
   * started has no address for browsers: `unsupported`. {@link forward} makes it a port of this machine.
   */
  async preview(port: number, options: PreviewOptions & CallOptions = {}): Promise<Preview> {
    checkPort(port, "preview");
    const { signal, ...who } = options;
    if ((await this.#transport()).address.from === "own") throw noAddress(port, this.id);
    return fromWire(await this.#json({ method: "POST", path: `/ports/${port}/preview`, json: toWire(who), signal }));
  }

  /** Ends all previews of a port, with what is open by them. */
  async endPreviews(port: number, options: CallOptions = {}): Promise<void> {
    checkPort(port, "end previews");
    await this.#nothing({ method: "DELETE", path: `/ports/${port}/preview`, ...options });
  }

  /** Changes its labels, its deadlines, or the rules of its network. What is wrong changes nothing. */
  async update(changes: SandboxChanges, options: CallOptions = {}): Promise<SandboxInfo> {
    return this.#learn(await this.#json<unknown>({ method: "PATCH", path: "", json: toWire(changes), ...options }));
  }

  /** Says what it uses now. Asking is no use of it. */
  async usage(options: CallOptions = {}): Promise<Usage> {
    const { usage } = await this.#json<Schemas["UsageAnswer"]>({ method: "GET", path: "/usage", ...options });
    return fromWire(usage);
  }

  /** Puts it to sleep: its processes end, its files stay, and any use wakes it. */
  async sleep(): Promise<void> {
    await this.#nothing({ method: "POST", path: "/sleep" });
  }

  /** Wakes it; one that runs is fine. */
  async wake(): Promise<SandboxInfo> {
    return this.#learn(await this.#json<unknown>({ method: "POST", path: "/wake" }));
  }

  /**
   * Keeps its files as they are. One that runs is put to sleep for it and woken again, with its services; one in which commands
   * run is refused with `conflict`, unless `stop` ends them.
   */
  async snapshot(options: SnapshotOptions = {}): Promise<SnapshotTaken> {
    checkOptions(options, SNAPSHOT, "take snapshot");
    const { signal, ...json } = options;
    return fromWire(await this.#json({ method: "POST", path: "/snapshots", json, signal }));
  }

  /** Gives it the files of a snapshot, by name or id, and answers with the commands that were ended. What changed since is lost. */
  async rollback(snapshot: string, options: RollbackOptions = {}): Promise<string[]> {
    checkOptions(options, ROLLBACK, "roll back");
    checkName(snapshot, "a snapshot");
    const { signal, ...json } = options;
    const done = await this.#json<Schemas["RollbackDone"]>({ method: "POST", path: "/rollback", json: { snapshot, ...json }, signal });
    return done.stopped;
  }

  /** Makes sandboxes that begin with its present files, and have its spec. */
  async fork(options: ForkOptions = {}): Promise<Sandbox[]> {
    return await forkOf(await this.#transport(), this.id, this.pool, options, this.#transport);
  }

  /** Makes an image of its present files, which `image` of a spec takes: the image that it was made from, and one layer more. */
  async commit(reference: string, options: CommitOptions = {}): Promise<ImageCommitted> {
    return await commitOf(await this.#transport(), this.id, this.pool, reference, options);
  }

  /** What it has changed since its last snapshot, or compared with another snapshot or sandbox. */
  async diff(options: SandboxDiffOptions = {}): Promise<FileChanges> {
    checkOptions(options, SANDBOX_DIFF, "diff");
    const { signal, from, path, text } = options;
    const sides = from === undefined ? { from: this.id } : { from, to: this.id };
    const query = { ...sides, path, text };
    return fromWire(await (await this.#transport()).json({ method: "GET", path: "/v1/diff", query: { pool: this.pool, ...query }, signal }));
  }

  /** Destroys it: processes, mounts, files. One that is not there any more is fine. */
  async destroy(): Promise<void> {
    await this.#end({});
  }

  /**
   * Undoes its create, where that could not be finished: as `destroy`, but a persistent workspace that was there before stays,
   * whatever the spec says. Only while it runs.
   */
  async abandon(): Promise<void> {
    await this.#end({ abandon: true });
  }

  /** The same as {@link destroy}, for `await using`. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.destroy();
  }

  async #end(query: { abandon?: boolean }): Promise<void> {
    try {
      await this.#nothing({ method: "DELETE", path: "", query });
    } catch (error) {
      if (!(error instanceof EyotError && error.noSandbox)) throw error;
    }
  }

  #learn(answer: unknown): SandboxInfo {
    this.#info = fromWire<SandboxInfo>(answer);
    return this.#info;
  }

  #path(rest: string): string {
    return `/v1/sandboxes/${segment(this.id, "a sandbox")}${rest}`;
  }

  #where(): Query {
    return { pool: this.pool, beneath: this.#beneath };
  }

  #processPath(process: string, verb: string): string {
    return `/processes/${segment(process, "a process")}/${verb}`;
  }

  #request(asked: Asked): Request {
    return { ...asked, path: this.#path(asked.path), query: { ...this.#where(), ...asked.query } };
  }

  async #json<T>(asked: Asked): Promise<T> {
    return await (await this.#transport()).json<T>(this.#request(asked));
  }

  async #bytes(asked: Asked): Promise<Uint8Array> {
    return await (await this.#transport()).bytes(this.#request(asked));
  }

  async #nothing(asked: Asked): Promise<void> {
    await (await this.#transport()).nothing(this.#request(asked));
  }

  async #events(asked: Asked, readTimeoutMs: number | undefined): Promise<Streamed<unknown>> {
    return (await (await this.#transport()).stream(this.#request(asked))).through(serverSentEvents).within(readTimeoutMs);
  }
}

/** Makes sandboxes of a snapshot or a sandbox. */
export async function forkOf(
  server: Transport,
  from: string,
  pool: string | undefined,
  options: ForkOptions,
  transport: () => Promise<Transport>,
): Promise<Sandbox[]> {
  checkOptions(options, FORK, "fork");
  const { signal, ...json } = options;
  const asked = { method: "POST", path: "/v1/fork", query: { pool }, json: { from, ...json }, signal } as const;
  const { names } = await server.json<Schemas["Forks"]>(asked);
  return names.map((name) => new Sandbox(transport, name, pool));
}

/** Makes an image of a snapshot or a sandbox. */
export async function commitOf(
  server: Transport,
  from: string,
  pool: string | undefined,
  reference: string,
  options: CommitOptions,
): Promise<ImageCommitted> {
  checkOptions(options, COMMIT, "commit");
  checkName(reference, "an image");
  const { signal, ...json } = options;
  return fromWire(await server.json({ method: "POST", path: "/v1/commit", query: { pool }, json: { from, reference, ...json }, signal }));
}

async function* converted<T>(values: AsyncIterable<unknown>): AsyncGenerator<T, void> {
  for await (const value of values) yield fromWire<T>(value);
}

function noAddress(port: number, sandbox: string): EyotError {
  const reason = "the server that this client started has no address for browsers";
  const message = `preview port ${port} of sandbox \`${sandbox}\`: ${reason}; use forward(${port}), a port of this machine, or a server with a TCP address`;
  const hint = 'start `eyot serve`, and give the client its URL: new EyotClient({ url: "http://127.0.0.1:7070" }), or EYOT_SERVER';
  return new EyotError(message, { kind: "unsupported", reason, hint });
}
