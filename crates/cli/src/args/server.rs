//! What `eyot serve` and `eyot keys` take.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use eyot::SandboxName;
use eyot_server::api::{AllowedHost, AllowedOrigin, PreviewDomain, ServeLimits};

use super::tools::parse_name;
use crate::durations;

const SERVE_EXAMPLES: &str = "\
Examples:
  eyot keys create laptop                       make a key; it is shown once
  eyot serve                                    serve on http://127.0.0.1:7070
  eyot serve --listen unix:/run/eyot.sock       on a socket that only root and you can open
  eyot --server http://127.0.0.1:7070 ls        use it, with the key in EYOT_API_KEY
  eyot serve --listen 0.0.0.0:7443 --allow-host box.example --tls-cert chain.pem --tls-key key.pem
                                                for other machines, as https://box.example:7443

Whoever has a key may use the sandboxes of its pools, and no others. Beyond loopback, serve with a certificate, or put
a proxy with one in front. A renewed certificate is used from the next connection on; docs/operating.md has the rest.

The sandboxes of a pool may have, together, three quarters of this host's memory, disk and processes, and there may be
256 of them; one without limits gets a part of that. With `--no-keys` only their number is bounded. `[quotas]` of
the configuration sets other numbers, or \"unlimited\".

SIGTERM (or Ctrl-C) lets answers that are under way end, takes no new connections, and exits with 0; a second one ends
at once. `GET /metrics` tells figures to Prometheus, with a key that `--metrics-key` names.";

const PREVIEW_EXAMPLES: &str = "\
Examples:
  eyot --server http://127.0.0.1:7070 preview web 8000     prints an address to open
  eyot preview web 8000 --public --ttl 1h                  with EYOT_SERVER; for anybody, for an hour
  eyot --json preview web 8000                             with the token for a header

The address has a token that works once, within an hour; the browser then has a cookie until the
preview ends. docs/previews.md has the rest.";

const KEYS_EXAMPLES: &str = "\
Examples:
  eyot keys create ci --pool builds --pool tests    a key for two pools; the first is its own
  eyot keys ls
  eyot keys revoke ci";

/// `eyot serve`
#[derive(Debug, Args)]
#[command(after_help = SERVE_EXAMPLES)]
pub struct ServeArgs {
    /// Where to listen: an address, a port, or unix:/PATH; may be given several times [default: 127.0.0.1:7070]
    #[arg(long, value_name = "ADDR")]
    pub listen: Vec<String>,
    /// Let anybody in who reaches the server, to every pool; for loopback and sockets only
    #[arg(long)]
    pub no_keys: bool,
    /// A name by which clients may call this server, beside localhost: example.com, example.com:8443
    #[arg(long, value_name = "HOST")]
    pub allow_host: Vec<AllowedHost>,
    /// A web page's origin that may use it from a browser: `https://example.com`
    #[arg(long, value_name = "ORIGIN")]
    pub allow_origin: Vec<AllowedOrigin>,
    /// A domain whose names PORT-ID.DOMAIN all lead to this server, for previews, beside localhost: previews.example.com
    #[arg(long, value_name = "DOMAIN")]
    pub preview_domain: Vec<PreviewDomain>,
    /// Serve no page at `/`. Previews below a path then keep cookies and storage, all of them together
    #[arg(long)]
    pub no_page: bool,
    /// Speak TLS on every TCP port, with this certificate and its intermediates: a PEM file, which may be replaced at any time;
    /// SIGHUP has it read at once
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,
    /// The certificate's private key: a PEM file without a passphrase
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,
    /// End, as by SIGTERM, when the process of this number has ended, however it did: for programs that start a server of
    /// their own
    #[arg(long, value_name = "PID", value_parser = clap::value_parser!(i32).range(1..))]
    pub parent_pid: Option<i32>,
    /// Let keys open private networks, and addresses of this host, by rules of the network `egress`
    #[arg(long)]
    pub allow_private_networks: bool,
    /// Let specs use this host's own network, and the networks of its container engine: for a server whose clients may use
    /// this host anyway
    #[arg(long)]
    pub allow_host_networks: bool,
    /// Let the key of this name read `/metrics`, which is about the whole server; by default no key may
    #[arg(long, value_name = "NAME", value_parser = parse_name)]
    pub metrics_key: Vec<SandboxName>,
    #[command(flatten)]
    pub limits: LimitArgs,
}

/// What clients may take of `eyot serve`.
#[derive(Debug, Args)]
pub struct LimitArgs {
    /// The most connections of each listener at once; idle ones are closed for new ones [default: 4096, or fewer where the limit
    /// of open files is low]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub max_connections: Option<u32>,
    /// The most requests of one key at once; one more is answered 429 [default: 256]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub max_requests_per_key: Option<u32>,
    /// How many requests of one key may begin in a second, in the long run; one more is answered 429 [default: 5000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub max_requests_per_second: Option<u32>,
    /// How many requests of a key that was quiet may come at once [default: twice --max-requests-per-second]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub max_request_burst: Option<u32>,
    /// The largest JSON body, in bytes; files and trees have no such limit [default: 16 MiB]
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(1024..))]
    pub max_json_bytes: Option<u32>,
    /// How long a connection may send nothing, or take over a header: 10s, 2m [default: 60s]
    #[arg(long, value_name = "TIME", value_parser = durations::parse_ms)]
    pub header_timeout: Option<u64>,
    /// How long answers that are under way may take after SIGTERM: 10s, 2m [default: 30s]
    #[arg(long, value_name = "TIME", value_parser = durations::parse_ms)]
    pub drain_timeout: Option<u64>,
}

impl LimitArgs {
    /// These, and what is usual for the others.
    pub fn limits(&self) -> ServeLimits {
        let usual = ServeLimits::default();
        let per_second = self.max_requests_per_second.unwrap_or(usual.max_requests_per_second);
        let or = |given: Option<u32>, usual: usize| given.map_or(usual, |given| given as usize);
        ServeLimits {
            max_connections: or(self.max_connections, usual.max_connections),
            max_requests_per_key: or(self.max_requests_per_key, usual.max_requests_per_key),
            max_requests_per_second: per_second,
            max_request_burst: self.max_request_burst.unwrap_or(per_second.saturating_mul(2)),
            max_json_bytes: or(self.max_json_bytes, usual.max_json_bytes),
            header_timeout_ms: self.header_timeout.unwrap_or(usual.header_timeout_ms),
            drain_timeout_ms: self.drain_timeout.unwrap_or(usual.drain_timeout_ms),
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
    /// The port on the sandbox's own loopback
    #[arg(value_parser = clap::value_parser!(u16).range(1..))]
    pub port: u16,
    /// Let anybody see it who knows the address, until its time is over or the server ends
    #[arg(long)]
    pub public: bool,
    /// For how long: 30m, 12h, 7d [default: 12h]
    #[arg(long, value_name = "DURATION", value_parser = durations::parse_ms)]
    pub ttl: Option<u64>,
    /// Print the address below the server's own host, for where names below localhost lead nowhere
    #[arg(long)]
    pub path: bool,
}

/// `eyot keys`
#[derive(Debug, Args)]
#[command(after_help = KEYS_EXAMPLES)]
pub struct KeysArgs {
    #[command(subcommand)]
    pub command: KeysCommand,
}

/// What to do with keys.
#[derive(Debug, Subcommand)]
pub enum KeysCommand {
    /// Make a key and print it; nobody can print it again
    Create {
        /// What to call it
        #[arg(value_name = "NAME", value_parser = parse_name)]
        name: SandboxName,
        /// A pool that it opens; the first is meant where a request names none [default: the key's name]
        #[arg(long, value_name = "POOL", value_parser = parse_name)]
        pool: Vec<SandboxName>,
    },
    /// List the keys there are, and were
    Ls,
    /// Take a key out of use
    Revoke {
        /// The key's name or id
        #[arg(value_name = "KEY")]
        key: String,
    },
}
