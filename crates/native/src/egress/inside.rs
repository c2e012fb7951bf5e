//! The settings that programs in a sandbox read to find the proxies and the name server.

use eyot_egress::{HTTP_PORT, SOCKS_PORT};

/// The text of `/etc/resolv.conf`. The name server is the sandbox's own and asks the host's, so its
/// answers take the time of both.
pub(crate) const RESOLV_CONF: &str = "nameserver 127.0.0.1\noptions timeout:10 attempts:2\n";

/// The hosts that are reached without the proxy: the sandbox itself.
const DIRECT: &str = "localhost,127.0.0.1,::1";

/// Returns the variables that pip, npm, git, curl, apt, cargo, Go and others read, in both
/// spellings: curl reads `http_proxy` only in lower case, others only in capitals.
///
/// `all_proxy` is the HTTP proxy too, not SOCKS: Python's httpx, and with it most clients of model APIs, refuses to
/// start when it finds a SOCKS proxy there and a package missing.
pub(crate) fn variables() -> Vec<(String, String)> {
    let http = format!("http://127.0.0.1:{HTTP_PORT}");
    let mut variables = Vec::new();
    for (name, value) in
        [("http_proxy", http.as_str()), ("https_proxy", &http), ("all_proxy", &http), ("no_proxy", DIRECT)]
    {
        variables.push((name.to_owned(), value.to_owned()));
        variables.push((name.to_ascii_uppercase(), value.to_owned()));
    }
    // Node's own fetch and http (from 22.21 and 24 on) read the variables only with this one.
    variables.push(("NODE_USE_ENV_PROXY".to_owned(), "1".to_owned()));
    // For programs that speak SOCKS and are told where.
    variables.push(("EYOT_SOCKS_PROXY".to_owned(), format!("socks5h://127.0.0.1:{SOCKS_PORT}")));
    variables
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_proxy_variable_is_there_in_both_spellings() {
        let names: Vec<String> = variables().into_iter().map(|(name, _)| name).collect();
        for name in ["http_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY", "no_proxy", "NO_PROXY"] {
            assert!(names.iter().any(|known| known == name), "{name}");
        }
    }
}
