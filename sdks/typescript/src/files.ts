/** Files as the API has them: what is known about one, and how to read, write, look for and remove it. */

/** What every call takes. */
export interface CallOptions {
  signal?: AbortSignal | undefined;
}

/** Which part of a file to read. */
export interface ReadOptions extends CallOptions {
  /** The first byte; by default 0. */
  offset?: number;
  /** How many bytes at the most; by default all. */
  limit?: number;
}

/** What can be written. */
export type FileContent = string | Uint8Array | AsyncIterable<Uint8Array>;

/** How to write a file. Missing parent directories are made. */
export interface WriteOptions extends CallOptions {
  /** What becomes of a file that is there: replaced as a whole (the default), or the write is refused. */
  mode?: "replace" | "create_new";
  /** Permission bits; by default `0o644`. */
  permissions?: number;
  /** Refused, with nothing changed, when the file would grow past this. */
  maxFileBytes?: number;
}

/** How much a tar stream may unpack to; what is absent is the server's. */
export interface TarInOptions extends CallOptions {
  /** The most bytes of all files together; by default 4 GiB. */
  maxTotalBytes?: number;
  /** The most entries; by default 1,000,000. */
  maxEntries?: number;
}

/** What is known of a file; what the provider does not know is absent. Of a symbolic link, the target's facts. */
export interface FileStat {
  isFile: boolean;
  isDirectory: boolean;
  /** The path itself is a symbolic link. */
  isSymbolicLink?: boolean;
  size?: number;
  modifiedMs?: number;
  /** Permission bits, such as `0o644`. */
  mode?: number;
}

/** One name in a directory. */
export interface DirEntry {
  name: string;
  /** The name's bytes, only when they are not UTF-8. */
  nameBytes?: number[];
  /** A symbolic link is not followed. */
  fileType?: "file" | "directory" | "symlink" | "other";
  size?: number;
}

/** How to list a directory. */
export interface ListDirectoryOptions extends CallOptions {
  /** By default `name`; `directory` is its own order, which is no order that anybody promises. */
  order?: "name" | "directory";
}

/** How to make a directory. */
export interface MkdirOptions extends CallOptions {
  /** Makes parents too, and accepts a directory that is there. */
  recursive?: boolean;
}

/** How to remove. */
export interface RemoveOptions extends CallOptions {
  /** A directory and everything below it. */
  recursive?: boolean;
  /** A path that is missing is fine. */
  force?: boolean;
}

/** Where to look for files. */
export interface GlobOptions extends CallOptions {
  /** By default the working directory. */
  path?: string;
  /** Names that begin with a dot too. */
  hidden?: boolean;
  /** By default 1,000. */
  maxResults?: number;
}

/** What was found. */
export interface GlobResult {
  /** Absolute, sorted. */
  paths: string[];
  /** There were more. */
  truncated: boolean;
}

/** Where to look for lines. */
export interface GrepOptions extends CallOptions {
  /** A file or a directory; by default the working directory. */
  path?: string;
  /** The pattern is no regular expression. */
  literal?: boolean;
  ignoreCase?: boolean;
  /** Only files that match this glob. */
  include?: string;
  /** By default 1,000. */
  maxMatches?: number;
  /** The longest line that is shown whole; by default 500. */
  maxLineBytes?: number;
}

/** What was found, sorted by path and line. */
export interface GrepResult {
  matches: { path: string; lineNumber: number; line: string; lineTruncated: boolean }[];
  /** There were more. */
  truncated: boolean;
}

/** What to watch. */
export interface WatchOptions extends CallOptions {
  /** What is below its directories too; by default yes. */
  recursive?: boolean;
  /** Reading is rejected with `timeout` when nothing came for so long. */
  readTimeoutMs?: number;
}

/** Something that happened to a file. */
export interface WatchEvent {
  kind: "created" | "modified" | "removed" | "renamed" | "overflow";
  path: string;
  /** The path before, if it was renamed. */
  from?: string;
  isDirectory: boolean;
}
