//! The arguments of `eyot serve`, `eyot preview` and `eyot keys`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use eyot::SandboxName;
use eyot_server::PREVIEW_TTL_MS;
use eyot_server::api::{AllowedHost, AllowedOrigin, PreviewDomain, ServeLimits};

use super::tools::parse_name;
use super::values::{parse_port, parse_slots};
use crate::durations;

const SERVE_EXAMPLES: &str = "\
Examples:
  eyot keys create laptop                       make a key; it is shown once
  eyot serve                                    serve on http://127.0.0.1:7070
  eyot serve --listen unix:/run/eyot.sock       only root and you can open it
  eyot --server http://127.0.0.1:7070 ls        with the key in EYOT_API_KEY
  eyot serve --listen 0.0.0.0:7443 --allow-host box.example \\
      --tls-cert chain.pem --tls-key key.pem    https://box.example:7443

Whoever has a key may use the sandboxes of its pools, and no others. Beyond loopback, serve with a certificate, or put \
a proxy with one in front. A renewed certificate is used from the next connection on; docs/operating.md has the rest.

The sandboxes of a pool may have, together, three quarters of this host's memory, disk and processes, and there may be \
256 of them; one without limits gets a part of that. With `--no-keys` only their number is bounded. `[quotas]` of \
the configuration sets other numbers, or \"unlimited\".

SIGTERM (or Ctrl-C) lets answers that are under way end, takes no new connections, and exits with 0; a second one ends \
at once. `GET /metrics` tells figures to Prometheus, with a key that `--metrics-key` names.";

const PREVIEW_EXAMPLES: &str = "\
Examples:
  eyot --server http://127.0.0.1:7070 preview web 8000
  eyot preview web 8000 --public --ttl 1h      for anybody, for an hour
  eyot --json preview web 8000                 with the token for a header

It prints an address to open, on the server that --server or EYOT_SERVER names. The address has a token that works once, within an hour; the browser then has a cookie until the \
preview ends. docs/previews.md has the rest.";

const KEYS_EXAMPLES: &str = "\
Examples:
  eyot keys create ci --pool builds --pool tests    the first pool is its own
  eyot keys ls
  eyot keys revoke ci";

const KEYS_CREATE_EXAMPLES: &str = "\
Examples:
  eyot keys create ci                               opens the pool `ci`
  eyot keys create ci --pool builds --pool tests    the first pool is its own
  export EYOT_API_KEY=$(eyot keys create ci)";

const KEYS_LS_EXAMPLES: &str = "\
Examples:
  eyot keys ls
  eyot keys ls --json";

const KEYS_REVOKE_EXAMPLES: &str = "\
Examples:
  eyot keys revoke ci
  eyot keys revoke ci nightly";

/// `eyot serve`
#[derive(Debug, Args)]
#[command(after_help = SERVE_EXAMPLES)]
pub struct ServeArgs {
    /// Listen here: an address, a port, or unix:/PATH; may be repeated [default: 127.0.0.1:7070]
    #[arg(long, value_name = "ADDR")]
    pub listen: Vec<String>,
    /// Let every client use every pool without a key; only on loopback and unix sockets
    #[arg(long)]
    pub no_keys: bool,
    /// A host name that clients may use for this server, besides localhost: example.com, example.com:8443
    #[arg(long, value_name = "HOST")]
    pub allow_host: Vec<AllowedHost>,
    /// The origin of a web page that may use the server from a browser: `https://example.com`
    #[arg(long, value_name = "ORIGIN")]
    pub allow_origin: Vec<AllowedOrigin>,
    /// A domain for previews, besides localhost: all names PORT-ID.DOMAIN must lead to this
    /// server, as in previews.example.com
    #[arg(long, value_name = "DOMAIN")]
    pub preview_domain: Vec<PreviewDomain>,
    /// Serve no page at `/`. Previews below a path can then use cookies and storage, which they share
    #[arg(long)]
    pub no_page: bool,
    /// Use TLS on every TCP port, with this certificate and its intermediates: a PEM file, which
    /// may be replaced at any time;
    /// SIGHUP makes the server read it at once
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,
    /// The certificate's private key: a PEM file without a passphrase
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,
    /// Stop, as after SIGTERM, when the process with this id has ended: for programs that start their own
    /// server
    #[arg(long, value_name = "PID", value_parser = clap::value_parser!(i32).range(1..))]
    pub parent_pid: Option<i32>,
    /// Let keys open private networks, and addresses of this host, by rules of the network `egress`
    #[arg(long)]
    pub allow_private_networks: bool,
    /// Let specs use this host's own network, and the networks of its container engine: for a server whose clients may use
    /// this host anyway
    #[arg(long)]
    pub allow_host_networks: bool,
    /// Let the key with this name read `/metrics`, which is about the whole server; by default no key may
    #[arg(long, value_name = "NAME", value_parser = parse_name)]
    pub metrics_key: Vec<SandboxName>,
    /// Let the key with this name import and remove images, which all keys share; by default no key may
    #[arg(long, value_name = "NAME", value_parser = parse_name)]
    pub image_key: Vec<SandboxName>,
    /// As root, keep this many half-made native sandboxes ready for creates like the last one, which
    /// then take a fraction of the time; each takes as much memory as an idle sandbox [default: 2]
    #[arg(long, value_name = "N", value_parser = parse_slots)]
    pub slots: Option<usize>,
    /// Serve the agents of this folder: files NAME.md, which may be changed at any time [default: `agents` in the state folder]
    #[arg(long, value_name = "DIR")]
    pub agents: Option<PathBuf>,
    /// The model of agents whose file names none: PROVIDER/MODEL
    #[arg(long, value_name = "MODEL")]
    pub model: Option<String>,
    #[command(flatten)]
    pub limits: LimitArgs,
}

/// The limits of `eyot serve`.
#[derive(Debug, Args)]
pub struct LimitArgs {
    /// The most connections of each listener at once; idle ones are closed for new ones [default: 4096, or fewer where the limit
    /// of open files is low]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub max_connections: Option<u32>,
    /// The most requests of one key at once; more are answered 429 [default: 256]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub max_requests_per_key: Option<u32>,
    /// The most requests that one key may begin per second, on average; more are answered 429 [default: 5000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub max_requests_per_second: Option<u32>,
    /// The most requests that a key may send at once after a pause [default: twice
    /// --max-requests-per-second]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub max_request_burst: Option<u32>,
    /// The largest JSON body, in bytes; files and trees have no such limit [default: 16 MiB]
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(1024..))]
    pub max_json_bytes: Option<u32>,
    /// The largest archive of images that a request may import, in bytes [default: 16 GiB]
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u64).range(1024..))]
    pub max_image_bytes: Option<u64>,
    /// Close a connection that sends nothing, or no complete header, for this long: 10s, 2m [default: 60s]
    #[arg(long, value_name = "TIME", value_parser = durations::parse_ms)]
    pub header_timeout: Option<u64>,
    /// After SIGTERM, give answers under way this long: 10s, 2m [default: 30s]
    #[arg(long, value_name = "TIME", value_parser = durations::parse_ms)]
    pub drain_timeout: Option<u64>,
}

impl LimitArgs {
    /// Returns these limits, with the defaults of the others.
    pub fn limits(&self) -> ServeLimits {
        let usual = ServeLimits::default();
        // Each by its name: an option that is not used below does not compile.
        let Self {
            max_connections,
            max_requests_per_key,
            max_requests_per_second,
            max_request_burst,
            max_json_bytes,
            max_image_bytes,
            header_timeout,
            drain_timeout,
        } = *self;
        let or = |given: Option<u32>, usual: usize| given.map_or(usual, |given| given as usize);
        let per_second = max_requests_per_second.unwrap_or(usual.max_requests_per_second);
        ServeLimits {
            max_connections: or(max_connections, usual.max_connections),
            max_requests_per_key: or(max_requests_per_key, usual.max_requests_per_key),
            max_requests_per_second: per_second,
            max_request_burst: max_request_burst.unwrap_or(per_second.saturating_mul(2)),
            max_json_bytes: or(max_json_bytes, usual.max_json_bytes),
            max_image_bytes: max_image_bytes.unwrap_or(usual.max_image_bytes),
            header_timeout_ms: header_timeout.unwrap_or(usual.header_timeout_ms),
            drain_timeout_ms: drain_timeout.unwrap_or(usual.drain_timeout_ms),
            ..usual
        }
    }
}

/// `eyot preview`
#[derive(Debug, Args)]
#[command(after_help = PREVIEW_EXAMPLES)]
pub struct PreviewArgs {
    /// The sandbox's name or id
    pub name: String,
    /// The port on the sandbox's loopback
    #[arg(value_parser = parse_port)]
    pub port: u16,
    /// Let anyone with the address open it, until it expires or the server stops
    #[arg(long)]
    pub public: bool,
    /// End the preview after this long: 30m, 12h, 7d [default: 12h]
    #[arg(long, value_name = "DURATION", value_parser = parse_preview_ttl)]
    pub ttl: Option<u64>,
    /// Print the address below the server's own host name, for clients that cannot resolve names
    /// below localhost
    #[arg(long)]
    pub path: bool,
}

/// Parses the time that a preview is open, from a second to a week.
fn parse_preview_ttl(text: &str) -> Result<u64, String> {
    let wrong = |how: &str| format!("`{text}` is too {how} for a preview: write from 1s to 7d");
    match durations::parse_ms(text)? {
        ms if ms < *PREVIEW_TTL_MS.start() => Err(wrong("short")),
        ms if ms > *PREVIEW_TTL_MS.end() => Err(wrong("long")),
        ms => Ok(ms),
    }
}

/// `eyot keys`
#[derive(Debug, Args)]
#[command(after_help = KEYS_EXAMPLES)]
pub struct KeysArgs {
    #[command(subcommand)]
    pub command: KeysCommand,
}

/// A command about keys.
#[derive(Debug, Subcommand)]
pub enum KeysCommand {
    /// Create a key and print it; it cannot be printed again
    #[command(after_help = KEYS_CREATE_EXAMPLES)]
    Create {
        /// The key's name
        #[arg(value_name = "NAME", value_parser = parse_name)]
        name: SandboxName,
        /// A pool that the key opens; requests that name none use the first one [default: the key's name]
        #[arg(long, value_name = "POOL", value_parser = parse_name)]
        pool: Vec<SandboxName>,
    },
    /// List the keys, revoked ones included
    #[command(visible_alias = "list", after_help = KEYS_LS_EXAMPLES)]
    Ls,
    /// Revoke keys
    #[command(after_help = KEYS_REVOKE_EXAMPLES)]
    Revoke {
        /// The keys' names or ids
        #[arg(value_name = "KEY", required = true)]
        keys: Vec<String>,
    },
}
