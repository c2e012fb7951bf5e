//! Limits that keep slow, large or numerous requests from taking the server from others.

/// The limits of a server. [`Default`] has the usual values.
///
/// An answer may take any time: a command may run as long as its own `timeout_ms`, and a file may
/// be as large as the sandbox's disk. A client that waits for an answer holds a connection and one
/// of its key's turns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServeLimits {
    /// The largest JSON body, in bytes; by default 16 MiB. A larger one is `too_large` (413). Files
    /// and trees have no such limit, since they are passed on as they come; the sandbox's storage
    /// limits them.
    pub max_json_bytes: usize,
    /// The most bytes of each of a command's streams that are kept for its answer, whatever the
    /// request asks for; by default 16 MiB. Longer output is `truncated`. Streamed output has no
    /// such limit.
    pub max_output_bytes: u64,
    /// The largest archive of images that a request may import, in bytes; by default 16 GiB. A
    /// larger one is `too_large` (413).
    pub max_image_bytes: u64,
    /// The time in which a JSON body must arrive, in milliseconds; by default 60,000. A later one
    /// is refused (408).
    pub json_timeout_ms: u64,
    /// The longest pause between two pieces of a body, in milliseconds; by default 30,000. After it
    /// the request ends.
    pub body_stall_ms: u64,
    /// The most bytes of a request's line and headers; by default 64 KiB. A longer header, or more
    /// than 100 headers, is refused (431).
    pub max_header_bytes: usize,
    /// The time in which a connection must send the header of its first or its next request, in
    /// milliseconds; by default 60,000. Then it is closed, so this is also the time that an unused
    /// connection is kept.
    pub header_timeout_ms: u64,
    /// The time in which a connection must complete its TLS handshake, in milliseconds; by default
    /// 10,000. Then it is closed.
    pub tls_handshake_timeout_ms: u64,
    /// The most connections of each listener at once; by default 4,096. If there are more, those
    /// without a request under way are closed, the longest idle one first. While all have one, new
    /// ones wait.
    pub max_connections: usize,
    /// The most sandboxes to which a connection is kept open between requests; by default 1,024.
    /// One more replaces another, which is connected to again when it is used.
    pub max_open_sandboxes: usize,
    /// The most requests of one key at once; by default 256. One more is refused (429). A server
    /// without keys counts all requests as those of one key.
    pub max_requests_per_key: usize,
    /// The most new requests of one key per second, on average; by default 5,000: more than a
    /// client sends one by one, and more than two processors answer. One more is refused (429). A
    /// server without keys counts all requests as those of one key.
    pub max_requests_per_second: u32,
    /// The most requests that a key may send at once after a pause; by default 10,000.
    pub max_request_burst: u32,
    /// The most requests without a right key, per second on average, from one address (of IPv6: one
    /// network of 64 bits), that are answered with 401; by default 5. More are told to wait (429).
    /// A request with a right key is never refused for this, since all clients behind a proxy have
    /// one address.
    pub wrong_keys_per_second: u32,
    /// The most such requests at once from an address after a pause; by default 100.
    pub wrong_key_burst: u32,
    /// The time that answers and sockets have to end once the server stops, in milliseconds; by
    /// default 30,000. Then they are cut.
    pub drain_timeout_ms: u64,
}

impl Default for ServeLimits {
    fn default() -> Self {
        Self {
            max_json_bytes: 16 << 20,
            max_output_bytes: 16 << 20,
            max_image_bytes: 16 << 30,
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
