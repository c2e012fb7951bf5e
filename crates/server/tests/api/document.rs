//! The committed document of the API is up to date. `EYOT_UPDATE=1 cargo test` writes it anew.

use reqwest::Method;
use serde_json::Value;

use crate::ground::{Ground, name};

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/openapi.json");

#[test]
fn the_committed_document_is_the_handlers_own() {
    let document = eyot_server::api::document();
    let text = format!("{}\n", serde_json::to_string_pretty(&document).unwrap());
    if std::env::var_os("EYOT_UPDATE").is_some() {
        std::fs::write(FILE, &text).unwrap();
    }
    let value: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(value["openapi"], "3.1.0");
    assert_eq!(std::fs::read_to_string(FILE).unwrap(), text, "run this test with EYOT_UPDATE=1");
}

#[test]
fn every_operation_has_a_name_of_its_own() {
    let document = serde_json::to_value(eyot_server::api::document()).unwrap();
    let paths = document["paths"].as_object().unwrap().values();
    let mut names: Vec<_> = paths
        .flat_map(|item| item.as_object().unwrap().values())
        .filter_map(|operation| operation["operationId"].as_str())
        .collect();
    let all = names.len();
    names.sort_unstable();
    names.dedup();
    assert!(names.len() == all && names.contains(&"sandboxes_create"), "{names:?}");
}

/// Returns the operations of the document, each with its method and path.
fn operations(document: &Value) -> Vec<(Method, &str, &Value)> {
    let paths = document["paths"].as_object().unwrap().iter();
    paths
        .flat_map(|(path, item)| {
            let operations = item.as_object().unwrap().iter();
            operations
                .map(|(method, operation)| (method.to_uppercase().parse().unwrap(), path.as_str(), operation))
        })
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_about_the_api_needs_no_key_and_nothing_from_elsewhere() {
    let ground = Ground::new().await;
    let text = async |path: &str| {
        let answer = ground.bare(Method::GET, path).send().await.unwrap();
        assert_eq!(answer.status(), 200, "{path}");
        answer.text().await.unwrap()
    };
    // One that is sent on to it arrives too.
    let page = text("/docs").await;
    assert!(page.contains("swagger-ui-bundle.js") && !page.contains("://"), "{page}");
    let setting = text("/docs/swagger-initializer.js").await;
    assert!(setting.contains("/v1/openapi.json") && !setting.contains("://"), "{setting}");
    let document: Value = serde_json::from_str(&text("/v1/openapi.json").await).unwrap();
    assert_eq!(document["components"]["securitySchemes"]["key"]["scheme"], "bearer");
    assert_eq!(document["paths"]["/v1/health"]["get"]["security"], serde_json::json!([{}]));
}

#[test]
fn every_response_has_a_description_every_body_a_schema_and_no_field_a_default() {
    let document = serde_json::to_value(eyot_server::api::document()).unwrap();
    for (method, path, operation) in operations(&document) {
        let responses = operation["responses"].as_object().unwrap();
        for (status, response) in responses {
            assert!(
                response["description"].as_str().is_some_and(|text| !text.is_empty()),
                "{method} {path}: {status}"
            );
        }
        let bodies = responses.values().chain([&operation["requestBody"]]);
        for (kind, content) in bodies.filter_map(|body| body["content"].as_object()).flatten() {
            assert!(content["schema"].is_object(), "{method} {path}: {kind}");
        }
    }
    for (schema, value) in document["components"]["schemas"].as_object().unwrap() {
        for (field, value) in value["properties"].as_object().into_iter().flatten() {
            assert!(value.get("default").is_none(), "{schema}.{field}");
        }
    }
    for socket in ["exec/socket", "terminals/{terminal}/socket", "ports/{port}/connect"] {
        let operation = &document["paths"][format!("/v1/sandboxes/{{sandbox}}/{socket}")]["get"];
        assert!(operation["responses"]["101"].is_object(), "{socket}");
    }
}

#[test]
fn the_rules_of_the_network_are_described_wherever_they_are_sent() {
    let document = serde_json::to_value(eyot_server::api::document()).unwrap();
    let rules = &document["components"]["schemas"]["EgressRules"]["properties"];
    for field in ["allow", "deny"] {
        assert_eq!(rules[field]["items"]["type"], "string", "{rules}");
    }
    let egress = &document["paths"]["/v1/sandboxes/{sandbox}/egress"];
    let schemas = &document["components"]["schemas"];
    for place in [
        &egress["get"]["responses"]["200"],
        &egress["put"]["requestBody"],
        &schemas["SandboxSpec"]["properties"]["egress"],
        &schemas["PatchSandbox"]["properties"]["egress"],
    ] {
        assert!(place.to_string().contains("#/components/schemas/EgressRules"), "{place}");
    }
}

/// Operations that must come before others: they make what those ask for.
const FIRST: [&str; 4] = ["sandboxes_create", "processes_start", "processes_write_stdin", "agents_answer"];
/// Operations that must come after all others: they end the processes that those ask for.
const LAST: [&str; 3] = ["snapshots_take", "snapshots_roll_back", "snapshots_fork"];

/// Returns a path with the examples of its parameters.
fn path_of_example(path: &str, operation: &Value) -> String {
    let parameters = operation["parameters"].as_array().into_iter().flatten();
    parameters.filter(|parameter| parameter["in"] == "path").fold(path.to_owned(), |path, parameter| {
        let value = match &parameter["example"] {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        path.replace(&format!("{{{}}}", parameter["name"].as_str().unwrap()), &value)
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn every_example_of_a_body_works_as_it_is_sent() {
    let ground = Ground::new().await;
    let key = ground.api.keys().create(name("default"), vec![name("default")]).await.unwrap().secret;
    let run = crate::agents::waiting_run(&ground, &key).await;
    let document = serde_json::to_value(eyot_server::api::document()).unwrap();
    let mut requests = operations(&document);
    // A key is a secret, so no example of one works. A commit needs a sandbox over an image: see `snapshots.rs`.
    requests.retain(|(.., operation)| {
        operation["requestBody"]["content"]["application/json"].is_object()
            && !["session_sign_in", "snapshots_commit"].contains(&operation["operationId"].as_str().unwrap())
    });
    let place = |among: &[&str], operation: &Value| {
        among.iter().position(|name| operation["operationId"] == *name).map(|place| place + 1)
    };
    requests.sort_by_key(|(.., operation)| {
        (place(&LAST, operation), place(&FIRST, operation).unwrap_or(usize::MAX))
    });
    assert!(requests.len() > FIRST.len(), "{requests:?}");
    for (method, path, operation) in requests {
        let example = &operation["requestBody"]["content"]["application/json"]["example"];
        assert!(example.is_object(), "{method} {path} has no example");
        let path = path_of_example(path, operation).replace("run_01JEXAMPLE", &run);
        let request = ground.as_whom(&key, method.clone(), &path).header("content-type", "application/json");
        let answer = request.body(example.to_string()).send().await.unwrap();
        let status = answer.status();
        let is_stream = answer.headers().get("content-type").is_some_and(|kind| kind == "text/event-stream");
        let text = if is_stream { String::new() } else { answer.text().await.unwrap() };
        assert!(status.is_success(), "{method} {path} {example}: {status} {text}");
        if operation["operationId"] == "sandboxes_create" {
            let write = ground.as_whom(&key, Method::PUT, "/v1/sandboxes/dev/files?path=hello.txt");
            assert_eq!(write.body("hello").send().await.unwrap().status(), 200);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_about_the_api_is_compressed_and_has_a_policy() {
    let ground = Ground::new().await;
    let mut sent = 0;
    let page = "/docs/index.html";
    let document = "/v1/openapi.json";
    for path in [page, "/docs/swagger-ui-bundle.js", "/docs/swagger-ui.css", "/docs/index.css", document] {
        let answer = ground.bare(Method::GET, path).header("accept-encoding", "gzip").send().await.unwrap();
        assert_eq!(answer.headers()["content-encoding"], "gzip", "{path}");
        let again = ground.bare(Method::GET, path).header("accept-encoding", "gzip");
        let again = again.header("if-none-match", &answer.headers()["etag"]).send().await.unwrap();
        assert_eq!(again.status(), 304, "{path}");
        if path != document {
            let policy = answer.headers()["content-security-policy"].to_str().unwrap();
            assert!(policy.contains("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
        }
        sent += answer.bytes().await.unwrap().len();
    }
    assert!(sent < 700_000, "{sent} bytes");
    assert_eq!(ground.bare(Method::GET, "/docs/nothing.js").send().await.unwrap().status(), 404);
}
