//! Runs commands and answers with the whole result. The command is cancelled when its client
//! disconnects.

use axum::Json;
use axum::extract::State;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use eyot::wire::{ExecAnswer, ExecBody};
use eyot::{Command, Error, ExecOptions, ExecResult, FlatResult, Sandbox, Stdin};

use super::extract::{Chosen, JsonBody, TheSandbox, Where, stdin_bytes};
use super::state::Api;
use crate::problem::{Problems, Refusal};

/// Turns a request's body into a command and its options. Output is kept up to the server's limit,
/// `max_output_bytes`.
pub(super) fn checked(api: &Api, sandbox: &Sandbox, body: ExecBody) -> Result<(Command, ExecOptions), Error> {
    let most = api.limits().max_output_bytes;
    let kept = body.max_output_bytes.or(sandbox.info().spec.limits.max_output_bytes);
    let command = match (body.command, body.argv) {
        (Some(line), None) => Command::Shell(line),
        (None, Some(argv)) => Command::Argv(argv),
        _ => return Err(Error::invalid("command", "or `argv` must be there, and not both")),
    };
    let stdin = stdin_bytes(body.stdin, body.stdin_base64)?.map_or(Stdin::Closed, Stdin::Bytes);
    let options = ExecOptions {
        cwd: body.cwd,
        env: body.env,
        user: body.user,
        stdin,
        timeout_ms: body.timeout_ms,
        max_output_bytes: kept.map(|kept| kept.min(most)),
        cancel: None,
        pty: body.pty,
    };
    Ok((command, options))
}

/// Refuses options for which the client sends data while the command runs: a plain request cannot.
pub(super) fn refuse_what_needs_a_socket(body: &ExecBody) -> Result<(), Error> {
    let field = match body {
        ExecBody { pty: Some(_), .. } => "pty",
        ExecBody { stdin_follows: true, .. } => "stdin_follows",
        _ => return Ok(()),
    };
    Err(Error::invalid(field, "needs a WebSocket: `/exec/socket`"))
}

/// Converts a result to the API's answer.
pub(super) fn answer(result: ExecResult) -> ExecAnswer {
    let odd = |bytes: &Bytes| std::str::from_utf8(bytes).is_err().then(|| BASE64_STANDARD.encode(bytes));
    let (stdout_base64, stderr_base64) = (odd(&result.stdout), odd(&result.stderr));
    let flat = result.flatten();
    let FlatResult { stdout, stderr, exit_code, duration_ms, timed_out, aborted, .. } = flat;
    ExecAnswer {
        outcome: result.outcome,
        exit_code,
        stdout,
        stderr,
        stdout_base64,
        stderr_base64,
        stdout_bytes: result.stdout_bytes,
        stderr_bytes: result.stderr_bytes,
        stdout_truncated: flat.stdout_truncated,
        stderr_truncated: flat.stderr_truncated,
        duration_ms,
        timed_out,
        aborted,
        may_still_be_running: result.may_still_be_running,
        output_open: result.output_open,
    }
}

/// Runs a command until it exits.
///
/// A failing exit code is a result, not an error. The command is cancelled when the client
/// disconnects.
#[utoipa::path(post, path = "/v1/sandboxes/{sandbox}/exec", tag = "exec", request_body(content = ExecBody, example = json!({ "command": "echo hello" })),
    params(TheSandbox, Where),
    responses((status = 200, body = ExecAnswer), Problems))]
pub(super) async fn exec(
    State(api): State<Api>,
    Chosen(sandbox): Chosen,
    JsonBody(body): JsonBody<ExecBody>,
) -> Result<Json<ExecAnswer>, Refusal> {
    refuse_what_needs_a_socket(&body)?;
    let (command, options) = checked(&api, &sandbox, body)?;
    let result = sandbox.exec(command, options).await?;
    api.metrics().exec_ended(&result);
    Ok(Json(answer(result)))
}
