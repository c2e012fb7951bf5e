//! Answers to a model whose call is wrong.

use eyot_tools::{handle_tool_call, toolset};
use serde_json::json;

use crate::scripted::{Scripted, error};
use crate::{call, context, refusal};

#[tokio::test]
async fn an_argument_of_another_type_is_told_with_what_it_must_be_and_what_came() {
    for (offset, got) in [
        (json!("ten"), "\"ten\""),
        (json!(-1), "-1"),
        (json!(1.5), "1.5"),
        (json!(1e300), "1e+300"),
        (json!([1]), "an array"),
        (json!({}), "an object"),
        (json!(true), "true"),
    ] {
        let text = refusal("read_file", json!({ "path": "a", "offset": offset })).await;
        assert_eq!(text, format!("`offset` must be a non-negative integer, got {got}"));
    }
}

#[tokio::test]
async fn a_long_value_is_repeated_only_in_part() {
    let text = refusal("read_file", json!({ "path": "a", "offset": "ä".repeat(5000) })).await;
    assert!(text.ends_with("ä…") && text.len() < 200, "{text}");
}

#[tokio::test]
async fn a_missing_argument_is_told_with_what_it_must_be() {
    assert_eq!(refusal("shell", json!({})).await, "`command` is missing; it must be a string");
    assert_eq!(refusal("shell", json!({ "command": null })).await, "`command` must be a string, got null");
}

#[tokio::test]
async fn an_unknown_argument_is_told_with_the_one_that_was_meant() {
    let text = |name: &'static str| refusal("shell", json!({ "command": "true", (name): 1 }));
    assert_eq!(text("timeoutMs").await, "`timeoutMs` is unknown; did you mean `timeout_ms`?");
    assert_eq!(text("comand").await, "`comand` is unknown; did you mean `command`?");
    let others = "`zzz` is unknown; there are: `command`, `sandbox`, `timeout_ms`, `working_dir`";
    assert_eq!(text("zzz").await, others);
    assert_eq!(refusal("sandbox_list", json!({ "x": 1 })).await, "`x` is unknown; there are no arguments");
}

#[tokio::test]
async fn everything_that_is_wrong_is_told_at_once_and_nothing_is_done() {
    let driver = Scripted::new(&[]);
    let input = json!({ "path": 1, "contents": "x", "append": "yes" });
    let output = handle_tool_call(&context(&driver), &toolset("pool").unwrap(), "write_file", input).await;
    assert_eq!(
        output.as_text(),
        "`content` is missing; it must be a string\n\
         `append` must be true or false, got \"yes\"\n\
         `contents` is unknown; did you mean `content`?\n\
         `path` must be a string, got 1"
    );
    assert!(output.is_error && driver.log.lines().is_empty());
}

#[tokio::test]
async fn a_hundred_wrong_arguments_are_told_briefly() {
    let many: serde_json::Map<_, _> = (0..100).map(|n| (format!("x{n}"), json!(1))).collect();
    let text = refusal("sandbox_list", many.into()).await;
    assert_eq!(text.lines().count(), 21);
    assert!(text.ends_with("\nand 80 more"), "{text}");
}

#[tokio::test]
async fn a_whole_number_written_with_a_point_and_null_for_nothing_are_taken() {
    let driver = Scripted::new(&[]);
    *driver.file.lock().unwrap() = "hi".into();
    let input = json!({ "path": "a", "offset": 0.0, "limit": 2.0, "sandbox": null });
    let output = handle_tool_call(&context(&driver), &toolset("pool").unwrap(), "read_file", input).await;
    assert!(!output.as_text().contains("must be"), "{output:?}");
    assert!(driver.log.count("create") == 1);
}

#[tokio::test]
async fn arguments_may_come_as_json_text_or_not_at_all() {
    for input in [json!(null), json!(""), json!("{}"), json!({})] {
        assert_eq!(call("sandbox_list", input).await.as_text(), r#"{"sandboxes":[]}"#);
    }
    assert!(refusal("sandbox_list", json!("{")).await.starts_with("the arguments are not JSON: "));
    assert_eq!(refusal("sandbox_list", json!([])).await, "the arguments must be an object, got an array");
}

#[tokio::test]
async fn an_unknown_tool_is_told_with_those_that_there_are() {
    let text = refusal("bash", json!({})).await;
    assert_eq!(
        text,
        "there is no tool `bash`; there are: `shell`, `read_file`, `write_file`, `glob`, `browse`, \
         `sandbox_create`, `sandbox_list`, `transfer`"
    );
}

#[tokio::test]
async fn a_port_is_a_number_from_1_to_65535() {
    for port in [json!(0), json!(65536), json!("80")] {
        let text = refusal("browse", json!({ "port": port })).await;
        assert_eq!(text, format!("`port` must be an integer from 1 to 65535, got {port}"));
    }
}

#[tokio::test]
async fn a_name_that_no_sandbox_can_have_is_refused_with_the_rule() {
    let text = refusal("shell", json!({ "command": "true", "sandbox": "../x" })).await;
    assert!(text.contains("a-z") && text.contains("../x"), "{text}");
}

#[tokio::test]
async fn an_error_of_eyot_is_its_sentence_and_its_hint() {
    let driver = Scripted::new(&[]);
    let context = context(&driver);
    driver.writes.lock().unwrap().push_back(error(eyot::ErrorKind::Quota).with_hint("remove something"));
    driver.writes.lock().unwrap().push_back(error(eyot::ErrorKind::Quota).with_hint("remove something"));
    let input = json!({ "path": "a", "content": "x" });
    let output = handle_tool_call(&context, &toolset("pool").unwrap(), "write_file", input).await;
    assert!(output.is_error && output.structured.is_none());
    let text = output.as_text();
    assert!(text.starts_with("write file `") && text.ends_with("\nhint: remove something"), "{text}");
}

#[tokio::test]
async fn a_call_that_is_cancelled_before_it_begins_does_nothing() {
    let driver = Scripted::new(&[]);
    let context = context(&driver);
    context.cancel.cancel();
    let input = json!({ "command": "true" });
    let output = handle_tool_call(&context, &toolset("pool").unwrap(), "shell", input).await;
    assert_eq!(output.as_text(), "the call of `shell` was cancelled");
    assert!(output.is_error && driver.log.lines().is_empty());
}

#[tokio::test]
async fn a_hundred_thousand_wrong_arguments_are_counted_and_only_the_first_put_into_words() {
    let input: serde_json::Map<_, _> = (0..100_000).map(|n| (format!("a{n}"), json!(n))).collect();
    let text = refusal("shell", input.into()).await;
    assert_eq!(text.lines().count(), 21);
    assert!(text.ends_with("\nand 99981 more"), "{text}");
    let text = refusal("shell", json!({ "command": "true", ("timeout_ms".repeat(100_000)): 1 })).await;
    assert!(text.contains("is unknown; there are: `command`") && text.len() < 300, "{text}");
}

#[tokio::test]
async fn an_error_that_would_repeat_a_megabyte_keeps_its_ends() {
    let driver = Scripted::new(&[]);
    let name = "x".repeat(1 << 20);
    let answer = handle_tool_call(&context(&driver), &toolset("pool").unwrap(), &name, json!({})).await;
    let text = answer.as_text();
    assert!(text.starts_with("there is no tool `xxx") && text.ends_with("`sandbox_list`, `transfer`"));
    assert!(
        answer.is_error && text.contains("bytes are left out here") && text.len() < 66_000,
        "{}",
        text.len()
    );
}

#[tokio::test]
async fn a_number_above_a_bound_is_told_as_a_range() {
    let tools = toolset("workspace").unwrap();
    for timeout in [0, -1, 300_001] {
        let input = json!({ "command": "true", "timeoutMs": timeout });
        let answer = handle_tool_call(&context(&Scripted::new(&[])), &tools, "exec_command", input).await;
        let expected = format!("`timeoutMs` must be an integer from 1 to 300000, got {timeout}");
        assert_eq!(answer.as_text(), expected);
    }
}

#[tokio::test]
async fn a_sandbox_that_would_sleep_before_it_can_be_used_is_refused() {
    for number in [0_u64, 1, 999, u64::MAX] {
        let text = refusal("sandbox_create", json!({ "sandbox": "a", "sleep_after_ms": number })).await;
        let expected =
            format!("`sleep_after_ms` must be an integer from 1000 to 9007199254740992, got {number}");
        assert_eq!(text, expected);
    }
}
