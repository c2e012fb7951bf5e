//! The committed document of the API is up to date. `EYOT_UPDATE=1 cargo test` writes it anew.

use reqwest::Method;
use serde_json::Value;

use crate::ground::Ground;

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
