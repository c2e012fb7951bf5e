//! The errors of a registry, with what to do about them.

use eyot::{Error, ErrorKind};
use oci_client::errors::{OciDistributionError as Oci, OciErrorCode as Code};

/// Builds the error of an exchange with this host.
pub(super) fn exchange_error(what: &str, host: &str, error: Oci) -> Error {
    let (kind, reason, hint) = match &error {
        Oci::UnauthorizedError { .. } | Oci::AuthenticationFailure(_) => refused_entry(host),
        Oci::ImageManifestNotFoundError(_) | Oci::ServerError { code: 404, .. } => not_there(host),
        Oci::ServerError { code: 401 | 403, .. } => refused_entry(host),
        Oci::RegistryError { envelope, .. } => {
            of_codes(host, envelope.errors.iter().map(|error| &error.code))
        }
        Oci::DigestError(_) => (
            ErrorKind::Invalid,
            format!("what registry `{host}` sent is not what its digest says"),
            crate::failure::CORRUPT.to_owned(),
        ),
        Oci::RequestError(_) | Oci::IoError(_) | Oci::RegistryTokenDecodeError(_) => unreachable_host(host),
        _ => (
            ErrorKind::Unavailable,
            format!("registry `{host}` answered what can't be used"),
            "see -v for its answer; try again later, or another registry".to_owned(),
        ),
    };
    Error::new(kind, format!("{what}: {reason}")).with_hint(hint).with_source(error)
}

type ErrorParts = (ErrorKind, String, String);

fn refused_entry(host: &str) -> ErrorParts {
    let hint = format!(
        "log in (docker login {host}), and check the name: of an image that is not there some say the same"
    );
    (ErrorKind::Permission, format!("registry `{host}` refuses it without other credentials"), hint)
}

fn not_there(host: &str) -> ErrorParts {
    let hint = "check its name and its tag; `eyot image import` takes one from a file".to_owned();
    (ErrorKind::NotFound, format!("registry `{host}` has none of that name"), hint)
}

fn unreachable_host(host: &str) -> ErrorParts {
    let hint = "check the network and the registry's name; the configuration may name mirrors ([registries] mirrors), and \
                `eyot image import` and `build-base` need no registry";
    (ErrorKind::Unavailable, format!("registry `{host}` can't be reached"), hint.to_owned())
}

fn of_codes<'c>(host: &str, mut codes: impl Iterator<Item = &'c Code>) -> ErrorParts {
    match codes.next() {
        Some(Code::Unauthorized | Code::Denied) => refused_entry(host),
        Some(
            Code::ManifestUnknown
            | Code::NameUnknown
            | Code::NotFound
            | Code::BlobUnknown
            | Code::NameInvalid,
        ) => not_there(host),
        Some(Code::Toomanyrequests) => {
            let hint = format!("wait, or log in (docker login {host})");
            (
                ErrorKind::Unavailable,
                format!("registry `{host}` says that there were too many requests"),
                hint,
            )
        }
        _ => (
            ErrorKind::Unavailable,
            format!("registry `{host}` refuses it"),
            "see -v for its answer".to_owned(),
        ),
    }
}
