//! What the server gives at the most, so that nobody who is slow, large or many takes it from the others.

/// How much of the server requests may take. [`Default`] says what is usual.
///
/// There is no limit to how long an answer may take: a command may run as long as its own `timeout_ms`, a file be as large as
/// the sandbox's disk. A client that waits for one holds one of its key's turns, and a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServeLimits {
    /// The largest JSON body, in bytes; by default 16 MiB. A larger one is `too_large` (413). Files and trees have no such limit:
    /// they are passed on as they come, and what the sandbox may store is their limit.
    pub max_json_bytes: usize,
    /// The most bytes of each of a command's streams that are kept for its answer, whatever is asked for; by default 16 MiB. What
    /// is longer is `truncated`. Streamed output has no such limit.
    pub max_output_bytes: u64,
    /// How long a JSON body may take to arrive, in milliseconds; by default 60,000. A later one is refused (408).
    pub json_timeout_ms: u64,
    /// How long a body may go without a single byte, in milliseconds; by default 30,000. Then the request ends.
    pub body_stall_ms: u64,
    /// The most bytes of a request's line and headers; by default 64 KiB. More of them, and more than 100
    /// headers, are refused (431).
    pub max_header_bytes: usize,
    /// How long a connection may take to send the whole header of its first or its next request, in milliseconds; by default
    /// 60,000. It is closed then, so this is also how long one is kept that is not in use.
    pub header_timeout_ms: u64,
    /// How long the TLS handshake of a connection may take, in milliseconds; by default 10,000. Then it is closed.
    pub tls_handshake_timeout_ms: u64,
    /// The most connections of each listener at once; by default 4,096. When there are more, those without a request under
    /// way are closed, the one first that has been so for longest; while all have one, new ones wait.
    pub max_connections: usize,
    /// The most sandboxes to which a connection is kept open between requests; by default 1,024. One more takes the place of another,
    /// which is connected to again when it is asked for.
    pub max_open_sandboxes: usize,
    /// The most requests of one key at once; by default 256. Of one more nothing is done (429). Without keys all are one.
    pub max_requests_per_key: usize,
    /// How many requests of one key are begun in a second, in the long run; by default 5,000: more than a client has that asks
    /// one by one, and more than two processors answer. Of one more nothing is done (429). Without keys all are one.
    pub max_requests_per_second: u32,
    /// How many requests of a key that was quiet may come at once; by default 10,000.
    pub max_request_burst: u32,
    /// How many requests without a right key from one address (of IPv6: one network of 64 bits) are told that (401) in a
    /// second, in the long run; by default 5. Those beyond are told to wait (429). Who shows a right key is let in whatever
    /// others from that address have shown: behind a proxy all have one.
    pub wrong_keys_per_second: u32,
    /// How many may come at once from an address that was quiet; by default 100.
    pub wrong_key_burst: u32,
    /// How long answers and sockets may take once the server is to stop, in milliseconds; by default 30,000. Then they are cut.
    pub drain_timeout_ms: u64,
}

impl Default for ServeLimits {
    fn default() -> Self {
        Self {
            max_json_bytes: 16 << 20,
            max_output_bytes: 16 << 20,
            json_timeout_ms: 60_000,
            body_stall_ms: 30_000,
            max_header_bytes: 64 << 10,
            header_timeout_ms: 60_000,
            tls_handshake_timeout_ms: 10_000,
            max_connections: 4096,
            max_open_sandboxes: 1024,
            max_requests_per_key: 256,
            max_requests_per_second: 5_000,
            max_request_burst: 10_000,
            wrong_keys_per_second: 5,
            wrong_key_burst: 100,
            drain_timeout_ms: 30_000,
        }
    }
}
