//! The worker of a sandbox, which runs commands.

use std::sync::Arc;

use bytes::Bytes;
use eyot::PtySize;
use eyot_providers::modal::wire::{
    Empty, ExecEnd, OfExec, TaskExecStartRequest, TaskExecStatus, TaskExecStdinWriteRequest,
    TaskExecStdioReadRequest, TaskExecStdioReadResponse,
};
use http::HeaderMap;
use prost::Message;

use super::command::{Command, NewCommand};
use super::records::{Record, Records, variables};
use super::serve::{Answer, Refusal, many, one, refusal};

/// The most bytes of a command's arguments, as the vendor's client has it.
const MAX_ARGUMENTS_BYTES: usize = 1 << 16;

fn read<T: Message + Default>(message: Bytes) -> Result<T, Refusal> {
    T::decode(message).map_err(|_| Refusal { code: 3, message: "the message can't be read" })
}

/// Answers a call.
pub async fn answer(records: &Arc<Records>, method: &str, headers: &HeaderMap, message: Bytes) -> Answer {
    let token = headers.get("authorization").and_then(|value| value.to_str().ok()).unwrap_or_default();
    if !records.is_valid(token.strip_prefix("Bearer ").unwrap_or_default()) {
        return one(refusal::<Empty>(16, "the token has run out"));
    }
    match method {
        "TaskExecStart" => one(start(records, message).await),
        "TaskExecStdioRead" => stdio(records, message),
        "TaskExecStdinWrite" => one(stdin(records, message).await),
        "TaskExecWait" => one(wait(records, message).await),
        "TaskExecPoll" => one(poll(records, message)),
        _ => {
            eprintln!("the stand-in has no {method}");
            one(refusal::<Empty>(12, "the stand-in does not have it"))
        }
    }
}

fn of_task(records: &Records, task_id: &str) -> Result<Arc<Record>, Refusal> {
    let found = records.of_task(task_id).filter(|record| record.runs());
    found.ok_or(Refusal { code: 5, message: "there is no such task" })
}

fn of_exec(records: &Records, task_id: &str, exec_id: &str) -> Result<(Arc<Record>, Arc<Command>), Refusal> {
    let record = of_task(records, task_id)?;
    let command = record.command(exec_id).ok_or(Refusal { code: 5, message: "there is no such command" })?;
    Ok((record, command))
}

/// Starts a command; one for all requests with one id.
async fn start(records: &Records, message: Bytes) -> Result<Empty, Refusal> {
    let request: TaskExecStartRequest = read(message)?;
    let record = of_task(records, &request.task_id)?;
    if request.command_args.iter().map(String::len).sum::<usize>() > MAX_ARGUMENTS_BYTES {
        return refusal(3, "the arguments are too long");
    }
    if record.command(&request.exec_id).is_some() {
        return Ok(Empty {});
    }
    let pty = request.pty_info.filter(|pty| pty.enabled).map(|pty| PtySize {
        rows: u16::try_from(pty.winsz_rows).unwrap_or(24),
        cols: u16::try_from(pty.winsz_cols).unwrap_or(80),
    });
    let new = NewCommand {
        argv: request.command_args,
        env: variables(request.secret_sources),
        workdir: request.workdir,
        pty,
        timeout_s: request.timeout_secs.filter(|seconds| *seconds > 0),
    };
    let command = Command::start(&record, new).await?;
    record.commands.lock().expect("no test panics with it").insert(request.exec_id, command);
    Ok(Empty {})
}

fn stdio(records: &Records, message: Bytes) -> Answer {
    let request: Result<TaskExecStdioReadRequest, Refusal> = read(message);
    let found = request.and_then(|request| {
        let (record, command) = of_exec(records, &request.task_id, &request.exec_id)?;
        Ok((record, command, request))
    });
    let (record, command, request) = match found {
        Ok(found) => found,
        Err(refusal) => return one(Err::<Empty, _>(refusal)),
    };
    let (sender, receiver) = many();
    tokio::spawn(async move {
        let (mut offset, mut lost) = (request.offset, record.result.subscribe());
        loop {
            let piece = tokio::select! {
                biased;
                _ = lost.wait_for(Option::is_some) => refusal(5, "the task has ended"),
                () = sender.closed() => return,
                piece = command.read(request.file_descriptor, offset) => piece,
            };
            let told = match piece {
                Ok(None) => return,
                Ok(Some(data)) => {
                    offset += data.len() as u64;
                    Ok(TaskExecStdioReadResponse { data }.encode_to_vec())
                }
                Err(refusal) => Err(refusal),
            };
            let ends = told.is_err();
            if sender.send(told).await.is_err() || ends {
                return;
            }
        }
    });
    receiver
}

async fn stdin(records: &Records, message: Bytes) -> Result<Empty, Refusal> {
    let request: TaskExecStdinWriteRequest = read(message)?;
    let (record, command) = of_exec(records, &request.task_id, &request.exec_id)?;
    let mut lost = record.result.subscribe();
    tokio::select! {
        _ = lost.wait_for(Option::is_some) => refusal(5, "the task has ended"),
        taken = command.write(request.offset, request.data, request.eof) => taken.map(|()| Empty {}),
    }
}

async fn wait(records: &Records, message: Bytes) -> Result<TaskExecStatus, Refusal> {
    let request: OfExec = read(message)?;
    let (record, command) = of_exec(records, &request.task_id, &request.exec_id)?;
    let mut lost = record.result.subscribe();
    let end: Option<ExecEnd> = tokio::select! {
        biased;
        _ = lost.wait_for(Option::is_some) => return refusal(5, "the task has ended"),
        end = command.end() => end,
    };
    Ok(TaskExecStatus { exit_status: end })
}

fn poll(records: &Records, message: Bytes) -> Result<TaskExecStatus, Refusal> {
    let request: OfExec = read(message)?;
    let (_, command) = of_exec(records, &request.task_id, &request.exec_id)?;
    Ok(TaskExecStatus { exit_status: command.ended() })
}
