//! The answers of an API server as the contract's errors, in the server's own sentence.

use eyot::{Error, ErrorKind};
use kube::client::UpgradeConnectionError;
use kube::core::Status;

/// Makes an error of a failed call. `what` is verb and object.
pub(super) fn failed(what: &str, error: kube::Error) -> Error {
    match error {
        kube::Error::Api(status) => refused(what, &status),
        kube::Error::UpgradeConnection(UpgradeConnectionError::ProtocolSwitch(code)) => {
            refused(what, &Status { code: code.as_u16(), ..Status::default() })
        }
        other => Error::new(ErrorKind::Unavailable, format!("{what}: the API server does not answer"))
            .with_hint("`eyot doctor --provider kubernetes` says which server was asked")
            .with_source(other),
    }
}

/// Makes an error of an answer.
pub(super) fn refused(what: &str, status: &Status) -> Error {
    let error = Error::new(kind(status), format!("{what}: {}", sentence(status)));
    match status.details.as_ref().map(|details| details.retry_after_seconds) {
        Some(wait_s) if wait_s > 0 => error.with_hint(format!("try again in {wait_s} s")),
        _ if kind(status) == ErrorKind::Permission => {
            error.with_hint("`eyot doctor --provider kubernetes` lists the rights that are missing")
        }
        _ => error,
    }
}

fn sentence(status: &Status) -> String {
    if status.message.is_empty() { format!("HTTP status {}", status.code) } else { status.message.clone() }
}

fn kind(status: &Status) -> ErrorKind {
    match status.code {
        401 => ErrorKind::Permission,
        403 if status.message.is_empty() => ErrorKind::Permission,
        403 => forbidden(&status.message),
        400 | 422 => ErrorKind::Invalid,
        404 => ErrorKind::NotFound,
        409 => ErrorKind::Conflict,
        410 | 429 | 500..=599 => ErrorKind::Unavailable,
        _ => ErrorKind::Internal,
    }
}

/// Tells the reasons of a 403 apart. Rights, quotas and admission all have the reason `Forbidden` and
/// the same details; a server tells them apart in its sentence alone.
fn forbidden(sentence: &str) -> ErrorKind {
    if sentence.contains("exceeded quota: ") || sentence.contains("failed quota: ") {
        ErrorKind::Quota
    } else if sentence.contains(" cannot ") && sentence.contains(" resource ") {
        ErrorKind::Permission
    } else {
        ErrorKind::Invalid
    }
}

/// Tells whether a call may succeed when it is made again: the server was not reached, or says so.
pub(super) fn is_transient(error: &kube::Error) -> bool {
    match error {
        // Two creates count themselves against one quota.
        kube::Error::Api(status) if status.code == 409 => status.message.contains("on resourcequotas"),
        kube::Error::Api(status) => is_passing(status.code),
        kube::Error::UpgradeConnection(UpgradeConnectionError::ProtocolSwitch(code)) => {
            is_passing(code.as_u16())
        }
        kube::Error::HyperError(_) | kube::Error::Service(_) | kube::Error::ReadEvents(_) => true,
        _ => false,
    }
}

/// Tells whether there was no answer of the server: it is away, or is about to begin or to end.
pub(super) fn is_away(error: &kube::Error) -> bool {
    match error {
        kube::Error::Api(status) => status.code == 503,
        other => is_transient(other),
    }
}

/// Tells whether a server may refuse only because it does not know its roles yet. For a moment after its start it knows of
/// none, and names those that it misses; a moment later it names none.
pub(super) fn may_not_know_roles(error: &kube::Error, was_away: bool) -> bool {
    let kube::Error::Api(status) = error else { return false };
    let misses =
        status.message.split_once(": RBAC: ").is_some_and(|(_, misses)| misses.contains("not found"));
    status.code == 403 && kind(status) == ErrorKind::Permission && (was_away || misses)
}

fn is_passing(code: u16) -> bool {
    matches!(code, 429 | 500 | 502..=504)
}

/// Tells whether the object is missing.
pub(super) fn is_absent(error: &kube::Error) -> bool {
    code(error) == Some(404)
}

/// Tells whether the object was changed by others, or is another one by now.
pub(super) fn is_conflict(error: &kube::Error) -> bool {
    code(error) == Some(409)
}

/// Tells whether an object of this name exists already.
pub(super) fn is_taken(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 409 && status.reason == "AlreadyExists")
}

fn code(error: &kube::Error) -> Option<u16> {
    match error {
        kube::Error::Api(status) => Some(status.code),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_does_not_know_its_roles_yet_is_asked_again() {
        let refused = |message: &str| {
            let status = Status { code: 403, message: message.to_owned(), ..Status::default() };
            kube::Error::Api(status.boxed())
        };
        let cannot = "leases is forbidden: User \"u\" cannot create resource \"leases\" in API group \"\" in the namespace \"n\"";
        assert!(!may_not_know_roles(&refused(cannot), false));
        assert!(may_not_know_roles(&refused(cannot), true));
        let misses = "RBAC: [clusterrole.rbac.authorization.k8s.io \"system:discovery\" not found]";
        assert!(may_not_know_roles(&refused(&format!("{cannot}: {misses}")), false));
        assert!(!may_not_know_roles(&refused("pods \"x\" is forbidden: exceeded quota: q"), true));
    }

    #[test]
    fn a_refusal_keeps_the_clusters_sentence_and_has_the_contracts_kind() {
        for (code, message, kind) in [
            (
                403,
                "pods \"x\" is forbidden: exceeded quota: q, requested: pods=1, used: pods=2, limited: pods=2",
                ErrorKind::Quota,
            ),
            (
                403,
                "pods is forbidden: User \"u\" cannot create resource \"pods\" in API group \"\" in the namespace \"n\"",
                ErrorKind::Permission,
            ),
            (
                403,
                "pods \"x\" is forbidden: violates PodSecurity \"restricted:latest\": runAsNonRoot != true",
                ErrorKind::Invalid,
            ),
            (
                403,
                "pods \"x\" is forbidden: maximum memory usage per Container is 256Mi, but limit is 900Mi",
                ErrorKind::Invalid,
            ),
            (
                409,
                "Operation cannot be fulfilled on pods \"x\": the object has been modified",
                ErrorKind::Conflict,
            ),
            (422, "Pod \"x\" is invalid: spec.hostname: Invalid value", ErrorKind::Invalid),
            (503, "the server is currently unable to handle the request", ErrorKind::Unavailable),
        ] {
            let status = Status { code, message: message.to_owned(), ..Status::default() };
            let error = failed("create sandbox", kube::Error::Api(status.boxed()));
            assert_eq!(error.kind(), kind, "{message}");
            assert!(error.to_string().ends_with(message), "{error}");
        }
    }
}
