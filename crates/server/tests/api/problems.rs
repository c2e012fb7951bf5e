//! A wrong request is answered with a problem, and changes nothing.

use reqwest::Method;
use serde_json::json;

use crate::ground::{Ground, kind, value};

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_request_names_the_field() {
    let ground = Ground::new().await;
    let id = ground.sandbox("dev").await;
    for (path, body, field) in [
        ("/v1/sandboxes".to_owned(), json!({ "spec": { "limits": { "pids": 0 } } }), "spec.limits.pids"),
        ("/v1/sandboxes".to_owned(), json!({ "spec": { "nmae": "x" } }), "spec.nmae"),
        ("/v1/sandboxes".to_owned(), json!({ "spec": { "name": "Not A Name" } }), "spec.name"),
        (format!("/v1/sandboxes/{id}/exec"), json!({ "command": 7 }), "command"),
        (format!("/v1/sandboxes/{id}/exec"), json!({}), "command"),
        (format!("/v1/sandboxes/{id}/exec"), json!({ "argv": [] }), "argv"),
        ("/v1/fork".to_owned(), json!({}), "from"),
        (
            "/v1/sandboxes".to_owned(),
            json!({ "spec": { "mounts": [{ "source": "/x" }] } }),
            "spec.mounts[0].target",
        ),
        (
            format!("/v1/sandboxes/{id}/exec"),
            json!({ "command": "cat", "stdin_base64": "?" }),
            "stdin_base64",
        ),
    ] {
        let refused = ground.post(&path, body.clone()).await;
        assert_eq!(refused.status(), 400, "{body}");
        assert_eq!(value(refused).await["field"], field, "{body}");
    }
    let listed = value(ground.get("/v1/sandboxes").await).await;
    assert_eq!(listed["sandboxes"].as_array().unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_json_no_path_and_no_method_are_problems_too() {
    let ground = Ground::new().await;
    let text = ground.request(Method::POST, "/v1/sandboxes").body("{").send().await.unwrap();
    assert_eq!(kind(text).await, "invalid");
    for text in ["{bad", "{\"spec\": {bad", "{\"spec\"", "{} {}", "nonsense"] {
        let refused = ground.request(Method::POST, "/v1/sandboxes").body(text).send().await.unwrap();
        let problem = value(refused).await;
        let detail = problem["detail"].as_str().unwrap();
        assert_eq!(
            (&problem["field"], &problem["status"]),
            (&json!("body"), &json!(400)),
            "{text}: {problem}"
        );
        assert!(
            detail.starts_with("`body` is not valid JSON: ") && detail.contains(" at line 1 column "),
            "{detail}"
        );
    }
    assert_eq!(kind(ground.get("/v1/nothing").await).await, "not_found");
    let put = ground.request(Method::PUT, "/v1/sandboxes").send().await.unwrap();
    assert_eq!(put.status(), 405);
    assert_eq!(kind(put).await, "invalid");
    assert_eq!(kind(ground.get("/v1/sandboxes?limit=0").await).await, "invalid");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_query_that_is_wrong_is_refused_in_plain_words_and_by_the_parameter_s_name() {
    let ground = Ground::new().await;
    let id = ground.sandbox("dev").await;
    for (query, field, detail) in [
        ("sandboxes?limit=x", "limit", "`limit` must be a whole number that is not negative"),
        ("sandboxes?limit=-1", "limit", "`limit` must be a whole number that is not negative"),
        ("sandboxes?limit=99999999999999999999", "limit", "`limit` must be a smaller number"),
        ("sandboxes?cursor=zz", "cursor", "`cursor` must be the `next_cursor` of a list"),
        ("sandboxes?label==x", "label", "`label` must look like key=value or key"),
        ("diff?from=dev&path=rel", "path", "`path` "),
        (
            "sandboxes?lmit=5",
            "lmit",
            "`lmit` is not known here: expected one of `pool`, `label`, `cursor`, `limit`",
        ),
        ("sandboxes/ID?show_env=maybe", "show_env", "`show_env` must be `true` or `false`"),
        ("sandboxes/ID/files", "path", "`path` must be in the query"),
        (
            "sandboxes/ID/files?path=a&beneth=/",
            "beneth",
            "`beneth` is not known here: expected one of `pool`",
        ),
        ("events?sandbox=dev&since=never", "since", "`since` is not known here: expected one of "),
    ] {
        let problem = value(ground.get(&format!("/v1/{}", query.replace("ID", &id))).await).await;
        assert_eq!((&problem["kind"], &problem["field"]), (&json!("invalid"), &json!(field)), "{problem}");
        assert!(problem["detail"].as_str().unwrap().starts_with(detail), "{problem}");
    }
    let kept = ground.request(Method::DELETE, &format!("/v1/sandboxes/{id}?force=1")).send().await.unwrap();
    assert_eq!(value(kept).await["field"], "force");
    assert_eq!(ground.get(&format!("/v1/sandboxes/{id}")).await.status(), 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_of_words_is_told_where_it_belongs() {
    let ground = Ground::new().await;
    let id = ground.sandbox("dev").await;
    for path in ["exec", "processes"] {
        let body = json!({ "command": ["echo", "hi"] });
        let problem = value(ground.post(&format!("/v1/sandboxes/{id}/{path}"), body).await).await;
        assert!(
            problem["detail"].as_str().unwrap().contains("a list of words goes into `argv`"),
            "{problem}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plain_request_to_a_websocket_is_a_problem() {
    let ground = Ground::new().await;
    let id = ground.sandbox("dev").await;
    for path in ["exec/socket", "ports/80/connect", "terminals/t1/socket"] {
        let plain = ground.get(&format!("/v1/sandboxes/{id}/{path}")).await;
        assert!(plain.status().is_client_error(), "{path}");
        let problem = value(plain).await;
        assert_eq!(problem["detail"], "this path is a WebSocket, and the request asks for none", "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_field_is_named_once_and_no_place_in_the_text_is() {
    let ground = Ground::new().await;
    for (body, expected) in [
        (r#"{"spec": {"nam": "x"}}"#, "`spec.nam` is not known here: expected one of `"),
        (r#"{"spec": {"network": "foo"}}"#, "`spec.network` has the unknown value `foo`, expected one of `"),
        (
            r#"{"spec": {"mounts": [".:/x"]}}"#,
            "`spec.mounts[0]` has the wrong type: string \".:/x\", expected an object",
        ),
        (r#"{"spec": {"name": "Ü"}}"#, "`spec.name` must "),
        (r#"{"spec": {"limits": {"pids": "x"}}}"#, "`spec.limits.pids` has the wrong type: string"),
        (
            r#"{"spec": {"limits": {"pids": -1}}}"#,
            "`spec.limits.pids` has a wrong value: integer `-1`, expected a whole number that is not negative",
        ),
        (r#"{"spec": {"env": []}}"#, "`spec.env` has the wrong type: a list, expected an object"),
        (r#"{"spec": 5}"#, "`spec` has the wrong type: integer `5`"),
    ] {
        let refused = ground.request(Method::POST, "/v1/sandboxes").body(body).send().await.unwrap();
        let problem = value(refused).await;
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.starts_with(expected) && !detail.contains(" at line "), "{body}: {detail}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_is_not_there_says_what_was_to_be_done_and_why_it_failed() {
    let ground = Ground::new().await;
    let id = ground.sandbox("dev").await;
    let missing = ground.get(&format!("/v1/sandboxes/{id}/files?path=nope")).await;
    assert_eq!(missing.status(), 404);
    let problem = value(missing).await;
    assert!(
        problem["detail"].as_str().unwrap().starts_with("read file `nope` in sandbox `dev`: "),
        "{problem}"
    );
    assert!(!problem["reason"].as_str().unwrap().contains("sandbox"), "{problem}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_is_no_object_and_an_empty_body_is_one_without_anything() {
    let ground = Ground::new().await;
    for list in [json!([]), json!(["echo hi"])] {
        assert_eq!(kind(ground.post("/v1/sandboxes", list).await).await, "invalid");
    }
    let listed = value(ground.get("/v1/sandboxes").await).await;
    assert_eq!(listed["sandboxes"], json!([]));
    let made = ground.request(reqwest::Method::POST, "/v1/sandboxes").send().await.unwrap();
    assert_eq!(made.status(), 201);
}
