//! The refusals of the stand-in, worded as a real server words them.

use axum::body::Body;
use axum::http::{StatusCode, header};
use axum::response::Response;
use serde_json::{Value, json};

use super::store::Precondition;

/// The user that every call comes from.
const USER: &str = "system:serviceaccount:eyot:eyot";

pub fn answer(code: u16, body: &Value) -> Response {
    Response::builder()
        .status(StatusCode::from_u16(code).expect("a status"))
        .header(header::CONTENT_TYPE, "application/json")
        .body(Body::from(body.to_string()))
        .expect("a response")
}

pub fn status(code: u16, reason: &str, message: &str) -> Value {
    json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message,
        "reason": reason, "code": code,
    })
}

pub fn refuse(code: u16, reason: &str, message: &str) -> Response {
    answer(code, &status(code, reason, message))
}

pub fn expired(version: u64) -> Value {
    status(410, "Expired", &format!("too old resource version: {version} (9999999)"))
}

pub fn absent(plural: &str, name: &str) -> Response {
    refuse(404, "NotFound", &format!("{plural} \"{name}\" not found"))
}

pub fn exists(plural: &str, name: &str) -> Response {
    refuse(409, "AlreadyExists", &format!("{plural} \"{name}\" already exists"))
}

pub fn forbidden_right(verb: &str, plural: &str, group: &str, namespace: &str) -> Response {
    let message = format!(
        "{plural} is forbidden: User \"{USER}\" cannot {verb} resource \"{plural}\" in API group \"{group}\" in the \
         namespace \"{namespace}\""
    );
    refuse(403, "Forbidden", &message)
}

pub fn exceeded_quota(name: &str, used: usize, limit: usize) -> Response {
    let message = format!(
        "pods \"{name}\" is forbidden: exceeded quota: q, requested: pods=1, used: pods={used}, limited: pods={limit}"
    );
    refuse(403, "Forbidden", &message)
}

pub fn invalid_hostname(name: &str, hostname: &str) -> Response {
    let message = format!(
        "Pod \"{name}\" is invalid: spec.hostname: Invalid value: \"{hostname}\": a lowercase RFC 1123 label must consist of \
         lower case alphanumeric characters or '-', and must start and end with an alphanumeric character"
    );
    refuse(422, "Invalid", &message)
}

pub fn changed_quota() -> Response {
    let message = "Operation cannot be fulfilled on resourcequotas \"q\": the object has been modified; please apply your \
                   changes to the latest version and try again";
    refuse(409, "Conflict", message)
}

pub fn unmet(plural: &str, name: &str, why: Precondition) -> Response {
    let begin = format!("Operation cannot be fulfilled on {plural} \"{name}\"");
    match why {
        Precondition::Absent => absent(plural, name),
        Precondition::Uid { asked, found } => refuse(
            409,
            "Conflict",
            &format!(
                "{begin}: the UID in the precondition ({asked}) does not match the UID in record ({found}). The object \
             might have been deleted and then recreated"
            ),
        ),
        Precondition::Version { asked, found } => refuse(
            409,
            "Conflict",
            &format!(
                "{begin}: the ResourceVersion in the precondition ({asked}) does not match the ResourceVersion in record \
             ({found}). The object might have been modified"
            ),
        ),
    }
}

/// Returns how a Pod violates the level `restricted` of Pod Security.
pub fn violations(pod: &Value) -> Vec<String> {
    let spec = &pod["spec"];
    let mut found = Vec::new();
    let containers =
        spec["containers"].as_array().into_iter().chain(spec["initContainers"].as_array()).flatten();
    for container in containers {
        let (name, context) = (&container["name"], &container["securityContext"]);
        if context["allowPrivilegeEscalation"] != json!(false) {
            found.push(format!(
                "allowPrivilegeEscalation != false (container {name} must set \
                 securityContext.allowPrivilegeEscalation=false)"
            ));
        }
        if context["capabilities"]["drop"] != json!(["ALL"]) {
            found.push(format!(
                "unrestricted capabilities (container {name} must set securityContext.capabilities.drop=[\"ALL\"])"
            ));
        }
    }
    if spec["securityContext"]["runAsNonRoot"] != json!(true) {
        found.push("runAsNonRoot != true (pod must set securityContext.runAsNonRoot=true)".to_owned());
    }
    if spec["securityContext"]["seccompProfile"]["type"] != json!("RuntimeDefault") {
        found.push(
            "seccompProfile (pod must set securityContext.seccompProfile.type to \"RuntimeDefault\" or \"Localhost\")"
                .to_owned(),
        );
    }
    found
}
