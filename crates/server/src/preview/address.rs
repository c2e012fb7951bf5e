//! Finds the sandbox and the port that a request is for, and writes the addresses of previews.
//!
//! A host is `{port}-sb-{32 digits}.{domain}`: the sandbox's id with `-` instead of `_`, which host
//! names can't have. A path is `/preview/{id}/{port}/`. Each has only one spelling.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use axum::http::uri::{Authority, Uri};
use axum::http::{HeaderMap, header};
use eyot::SandboxId;

use super::refusal::Denial;
use crate::http::AllowedHost;
use crate::http::guard::normal;

/// The prefix of preview paths.
pub(crate) const PREFIX: &str = "/preview/";
/// The domain whose names lead to the machine that a browser runs on.
const LOCALHOST: &str = "localhost";
/// The longest domain, in bytes: a host name has at most 253, of which a preview's own label and
/// its dot take up to 42.
const MAX_DOMAIN_BYTES: usize = 253 - 42;

/// A domain whose names `{port}-{id}.DOMAIN` all lead to the server: `previews.example.com`, or
/// `previews.example.com:8443` if addresses are to name a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PreviewDomain(AllowedHost);

impl FromStr for PreviewDomain {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let host: AllowedHost = text.parse()?;
        let is_name = host.host().parse::<IpAddr>().is_err() && !host.host().contains(['*', ':', '_']);
        if is_name && host.host().len() <= MAX_DOMAIN_BYTES {
            Ok(Self(host))
        } else {
            Err(format!(
                "`{text}` is not a domain of at most {MAX_DOMAIN_BYTES} bytes; write `previews.example.com`"
            ))
        }
    }
}

impl fmt::Display for PreviewDomain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A port of a sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct PreviewTarget {
    pub sandbox: SandboxId,
    pub port: u16,
}

/// The form of the address that was called.
#[derive(Debug, Clone, PartialEq, Eq)]
enum AddressForm {
    Host,
    /// A path; `rest` is the part behind the port, empty or beginning with `/`.
    Path {
        rest: String,
    },
}

/// The address of a preview, as parsed from a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Address {
    pub target: PreviewTarget,
    form: AddressForm,
}

impl Address {
    /// Tells whether the preview was called by a path of the server's own host.
    pub fn is_path(&self) -> bool {
        matches!(self.form, AddressForm::Path { .. })
    }

    /// Returns the path prefix of this preview: empty if it has a host of its own.
    pub fn prefix(&self) -> String {
        match &self.form {
            AddressForm::Host => String::new(),
            AddressForm::Path { .. } => path(&self.target),
        }
    }

    /// Returns the path that the guest sees.
    pub fn path_inside<'a>(&'a self, uri: &'a Uri) -> &'a str {
        let path = match &self.form {
            AddressForm::Host => uri.path(),
            AddressForm::Path { rest } => rest,
        };
        if path.is_empty() { "/" } else { path }
    }

    /// Tells whether the `/` behind the port is missing. Relative links of a page would lead
    /// elsewhere without it.
    pub fn lacks_slash(&self) -> bool {
        matches!(&self.form, AddressForm::Path { rest } if rest.is_empty())
    }
}

/// The target of a request.
pub(crate) enum RequestTarget {
    /// The server itself.
    Server,
    Preview(Address),
    /// A preview, with an address that is refused.
    Invalid(Denial),
}

impl RequestTarget {
    /// Finds the target of a request by its `Host`, and, if that is the server's own, by its path.
    pub fn of(uri: &Uri, headers: &HeaderMap, domains: &[PreviewDomain]) -> Self {
        let mut hosts = headers.get_all(header::HOST).iter();
        let (Some(host), None) = (hosts.next(), hosts.next()) else { return Self::Server };
        let Some(host) = host.to_str().ok().and_then(|text| text.parse::<Authority>().ok()) else {
            return Self::Server;
        };
        if let Some(target) = of_host(&host, domains) {
            // A request line may name a host too; it must be the same.
            let is_same = |line: &Authority| {
                normal(line.host()) == normal(host.host()) && line.port_u16() == host.port_u16()
            };
            return if uri.authority().is_none_or(is_same) && !host.as_str().contains('@') {
                Self::Preview(Address { target, form: AddressForm::Host })
            } else {
                Self::Invalid(Denial::invalid("the request line and `Host` name different hosts"))
            };
        }
        match uri.path().strip_prefix(PREFIX) {
            Some(rest) => of_path(rest),
            None => Self::Server,
        }
    }
}

fn of_host(host: &Authority, domains: &[PreviewDomain]) -> Option<PreviewTarget> {
    let host = normal(host.host());
    let (label, domain) = host.split_once('.')?;
    let is_ours = domain == LOCALHOST || domains.iter().any(|known| known.0.host() == domain);
    let (port, id) = label.split_once('-').filter(|_| is_ours)?;
    let sandbox = SandboxId::parse(&format!("sb_{}", id.strip_prefix("sb-")?)).ok()?;
    Some(PreviewTarget { sandbox, port: port_of(port)? })
}

/// Parses a port, without leading zeros or signs.
fn port_of(text: &str) -> Option<u16> {
    let port: u16 = text.parse().ok()?;
    (port != 0 && port.to_string() == text).then_some(port)
}

fn of_path(below: &str) -> RequestTarget {
    let (id, rest) = below.split_once('/').unwrap_or((below, ""));
    let (port, rest) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let Ok(sandbox) = SandboxId::parse(id) else { return RequestTarget::Invalid(Denial::gone()) };
    let Some(port) = port_of(port) else {
        return RequestTarget::Invalid(Denial::invalid("`port` must be a number from 1 to 65535"));
    };
    if rest.split(['/', '\\']).any(is_dots) {
        // What is in front of us may take it for another preview's path than we do.
        return RequestTarget::Invalid(Denial::invalid("a preview's path has no `.` or `..` in it"));
    }
    RequestTarget::Preview(Address {
        target: PreviewTarget { sandbox, port },
        form: AddressForm::Path { rest: rest.to_owned() },
    })
}

fn is_dots(segment: &str) -> bool {
    let plain = percent_encoding::percent_decode_str(segment).collect::<Vec<u8>>();
    matches!(plain.as_slice(), b"." | b"..")
}

/// Returns the first label of a preview's own host.
fn label(target: &PreviewTarget) -> String {
    format!("{}-{}", target.port, target.sandbox.as_str().replacen('_', "-", 1))
}

fn path(target: &PreviewTarget) -> String {
    format!("{PREFIX}{}/{}", target.sandbox, target.port)
}

/// The scheme and host that addresses of previews begin with.
pub(crate) struct BaseAddress<'a> {
    /// `http` or `https`.
    pub scheme: &'a str,
    /// The server's name, with its port.
    pub host: &'a Authority,
}

impl BaseAddress<'_> {
    /// Returns the address below the server's own host.
    pub fn path_url(&self, target: &PreviewTarget) -> String {
        format!("{}://{}{}/", self.scheme, self.host, path(target))
    }

    /// Returns the address on a host of its own, if there are such names.
    pub fn host_url(&self, target: &PreviewTarget, domains: &[PreviewDomain]) -> Option<String> {
        let host = normal(self.host.host());
        let is_here = host == LOCALHOST || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
        let domain = match (domains.first(), is_here) {
            (Some(domain), _) => domain.to_string(),
            (None, true) => match self.host.port_u16() {
                Some(port) => format!("{LOCALHOST}:{port}"),
                None => LOCALHOST.to_owned(),
            },
            (None, false) => return None,
        };
        Some(format!("{}://{}.{domain}/", self.scheme, label(target)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "sb_0192f0c1e7d87c3e9a4b5c6d7e8f9a0b";

    fn called(uri: &str, host: &str) -> RequestTarget {
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, host.parse().unwrap());
        RequestTarget::of(&uri.parse().unwrap(), &headers, &["p.example:8443".parse().unwrap()])
    }

    fn target(port: u16) -> PreviewTarget {
        PreviewTarget { sandbox: SandboxId::parse(ID).unwrap(), port }
    }

    #[test]
    fn a_host_is_a_preview_in_one_spelling_below_a_known_domain() {
        let label = label(&target(8000));
        assert_eq!(label, "8000-sb-0192f0c1e7d87c3e9a4b5c6d7e8f9a0b");
        for host in
            [format!("{label}.localhost:7070"), format!("{label}.P.example"), format!("{label}.localhost.")]
        {
            assert!(
                matches!(called("/x", &host), RequestTarget::Preview(a) if a.target == target(8000)),
                "{host}"
            );
        }
        for wrong in ["localhost", "p.example", "x.localhost", "8000-sb-1.localhost", &label] {
            assert!(matches!(called("/x", wrong), RequestTarget::Server), "{wrong}");
        }
        let rest = &label[4..];
        for wrong in ["0", "08000", "+8000", "65536", ""] {
            assert!(
                matches!(called("/x", &format!("{wrong}{rest}.localhost")), RequestTarget::Server),
                "{wrong}"
            );
        }
        for domain in ["evil.example", "p.example.evil", "localhost.evil", "a.localhost"] {
            assert!(matches!(called("/x", &format!("{label}.{domain}")), RequestTarget::Server), "{domain}");
        }
    }

    #[test]
    fn the_highest_and_the_lowest_port_are_ports() {
        for port in [1, u16::MAX] {
            let host = format!("{}.localhost", label(&target(port)));
            assert!(
                matches!(called("/", &host), RequestTarget::Preview(a) if a.target == target(port)),
                "{port}"
            );
        }
    }

    #[test]
    fn a_path_leads_below_the_port_it_names_and_nowhere_else() {
        for (path, inside) in
            [("", "/"), ("/", "/"), ("/a/b", "/a/b"), ("//x", "//x"), ("/a..b/...", "/a..b/...")]
        {
            let uri = format!("/preview/{ID}/80{path}");
            let RequestTarget::Preview(address) = called(&uri, "localhost") else { panic!("{uri}") };
            assert_eq!(address.path_inside(&uri.parse().unwrap()), inside);
            assert_eq!((address.target.port, address.lacks_slash()), (80, path.is_empty()));
        }
        for wrong in ["/../81/", "/a/..", "/%2e%2E/81", "/.", "/a/%2e/b", "/a\\..\\b"] {
            assert!(
                matches!(called(&format!("/preview/{ID}/80{wrong}"), "localhost"), RequestTarget::Invalid(_)),
                "{wrong}"
            );
        }
        for wrong in ["x/80/", &format!("{ID}/0/"), &format!("{ID}/65536/"), &format!("{ID}/080/"), ID, ""] {
            assert!(
                matches!(called(&format!("/preview/{wrong}"), "localhost"), RequestTarget::Invalid(_)),
                "{wrong}"
            );
        }
    }

    #[test]
    fn a_request_line_that_names_another_host_is_refused() {
        let host = format!("{}.localhost:7070", label(&target(80)));
        assert!(matches!(called(&format!("http://{host}/x"), &host), RequestTarget::Preview(_)));
        for other in ["http://localhost:7070/x", "http://evil.example/x", "http://81-x.localhost:7070/"] {
            assert!(matches!(called(other, &host), RequestTarget::Invalid(_)), "{other}");
        }
    }

    #[test]
    fn addresses_are_written_as_the_server_was_called_unless_it_has_a_domain() {
        let url = |host: &str, domains: &[PreviewDomain]| {
            BaseAddress { scheme: "http", host: &host.parse().unwrap() }.host_url(&target(80), domains)
        };
        let name = label(&target(80));
        assert_eq!(url("127.0.0.1:7070", &[]), Some(format!("http://{name}.localhost:7070/")));
        assert_eq!(url("box.example", &[]), None);
        let domains = ["p.example:8443".parse().unwrap()];
        assert_eq!(url("box.example", &domains), Some(format!("http://{name}.p.example:8443/")));
    }

    #[test]
    fn what_is_no_domain_can_not_be_one() {
        for wrong in ["", "*.example.com", "10.0.0.1", "[::1]", "a@b", &"a".repeat(212)] {
            assert!(wrong.parse::<PreviewDomain>().is_err(), "{wrong}");
        }
        assert!("a".repeat(211).parse::<PreviewDomain>().is_ok());
    }
}
