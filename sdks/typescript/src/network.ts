/** A sandbox's network: where it may connect to, what was decided, and published ports. */

/** Where a sandbox with the network `egress` may connect to; without any rule, to every public address. */
export interface EgressRules {
  /** `example.com`, `*.example.com` or `10.1.0.0/16`, with `:port` if need be. If there is any, nothing else is allowed. */
  allow: string[];
  /** Refused whatever else holds. */
  deny: string[];
}

/** Which decisions. */
export interface DecisionOptions {
  /** So many of those that are remembered; by default all. */
  last?: number;
  /** And what comes, until the loop is left or the signal aborted. */
  follow?: boolean;
  /** Reading is rejected with `timeout` when nothing came for so long. */
  readTimeoutMs?: number;
  signal?: AbortSignal;
}

/** What was decided about one attempt to leave a sandbox. */
export interface EgressDecision {
  /** Counts the sandbox's decisions from 1; a gap means that some were forgotten. */
  number: number;
  /** When, in milliseconds since 1970 (UTC). */
  atMs: number;
  verdict: "allowed" | "refused";
  /** How it was asked for, such as `http`. */
  protocol: string;
  /** The host as it was asked for. */
  host: string;
  /** `null` for a name's addresses. */
  port: number | null;
  /** The address that was dialled or refused, where it came to one. */
  address: string | null;
  /** Why, as the end of a sentence. */
  reason: string;
}

/** Who may see a port, and for how long. */
export interface PreviewOptions {
  /** Anybody who knows the address may; by default only who has a token. */
  public?: boolean;
  /** For how long: a second to a week; by default 12 hours. */
  ttlMs?: number;
}

/** Where a port of a sandbox can be seen as a web page. */
export interface Preview {
  /** The sandbox's id. */
  sandbox: string;
  /** The port inside. */
  port: number;
  /** The address to open. It has a token that works once, within an hour, and becomes a cookie then; a public one has none. */
  url: string;
  /** The same below the server's own host, where names below `localhost` lead nowhere. */
  pathUrl: string;
  /** What a program shows in the header instead; `null`: it is public. */
  token: string | null;
  /** The header's name. */
  header: string;
  public: boolean;
  /** Until when (RFC 3339), unless it ends with the sandbox, with the server, or by `endPreviews`. */
  expiresAt: string;
}

/** A port of a sandbox that is published on the server's host, as container engines do. */
export interface PublishedPort {
  /** The port inside. */
  port: number;
  /** The address on the server's host. */
  host: string;
  /** The port there. */
  hostPort: number;
}
