//! The control plane.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use eyot_providers::modal::wire::{
    AppGetOrCreateRequest, AppGetOrCreateResponse, AuthTokenGetResponse, ClientHelloResponse,
    CommandRouterAccess, Empty, EnvironmentGetOrCreateResponse, EnvironmentMetadata, EnvironmentSettings,
    GenericResult, ImageGetOrCreateRequest, ImageGetOrCreateResponse, ImageJoinStreamingResponse, OfSandbox,
    SUCCESS, SandboxCreateV2Request, SandboxCreateV2Response, SandboxGetFromNameRequest,
    SandboxGetTaskIdResponse, SandboxInfoMessage, SandboxListRequest, SandboxListResponse,
    SandboxTagsGetResponse, SandboxWaitRequest, SandboxWaitResponse, TERMINATED, TaskInfo,
};
use http::HeaderMap;
use prost::Message;

use super::records::{Record, Records};
use super::serve::{Answer, Refusal, one, refusal};
use super::{TOKEN_ID, TOKEN_SECRET};

/// The sandboxes on a page of a list: few, so that tests have pages.
const PAGE: usize = 3;
const BUILDER: &str = "2025.06";

fn header<'a>(headers: &'a HeaderMap, name: &str) -> &'a str {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

fn read<T: Message + Default>(message: Bytes) -> Result<T, Refusal> {
    T::decode(message).map_err(|_| Refusal { code: 3, message: "the message can't be read" })
}

/// Answers a call.
pub async fn answer(records: &Arc<Records>, method: &str, headers: &HeaderMap, message: Bytes) -> Answer {
    if (header(headers, "x-modal-token-id"), header(headers, "x-modal-token-secret"))
        != (TOKEN_ID, TOKEN_SECRET)
    {
        return one(refusal::<Empty>(16, "Token ID is malformed or unknown"));
    }
    if method.ends_with("V2") && !records.is_valid(header(headers, "x-modal-auth-token")) {
        return one(refusal::<Empty>(16, "the token has run out"));
    }
    let key = Some(header(headers, "x-idempotency-key").to_owned()).filter(|key| !key.is_empty());
    match method {
        "ClientHello" => {
            one(Ok(ClientHelloResponse { warning: String::new(), image_builder_version: BUILDER.to_owned() }))
        }
        "AuthTokenGet" => one(Ok(AuthTokenGetResponse { token: records.token() })),
        "EnvironmentGetOrCreate" => one(Ok(environment())),
        "AppGetOrCreate" => one(read::<AppGetOrCreateRequest>(message)
            .map(|request| AppGetOrCreateResponse { app_id: records.app(&request.app_name) })),
        "ImageGetOrCreate" => one(read(message).and_then(|request| image(records, &request))),
        "ImageJoinStreaming" => one(Ok(ImageJoinStreamingResponse {
            result: Some(GenericResult { status: SUCCESS, ..GenericResult::default() }),
            eof: true,
            ..ImageJoinStreamingResponse::default()
        })),
        "SandboxCreateV2" => one(create(records, message, key).await),
        "SandboxListV2" => one(read(message).map(|request| list(records, &request))),
        "SandboxGetFromNameV2" => one(read(message).and_then(|request| by_name(records, &request))),
        "SandboxWaitV2" => one(wait(records, message).await),
        "SandboxTerminateV2" => one(terminate(records, message).await),
        "SandboxTagsGetV2" => one(of(records, message).map(|record| SandboxTagsGetResponse {
            tags: record.tags.lock().expect("no test panics with it").clone(),
        })),
        "SandboxGetTaskIdV2" => one(of(records, message).map(|record| SandboxGetTaskIdResponse {
            task_id: record.runs().then(|| record.task_id.clone()),
            task_result: record.result.borrow().clone(),
        })),
        "SandboxGetCommandRouterAccess" => one(of(records, message).and_then(|record| {
            if !record.runs() {
                return refusal(9, "the sandbox has ended");
            }
            Ok(CommandRouterAccess { jwt: records.token(), url: records.url.clone() })
        })),
        _ => {
            eprintln!("the stand-in has no {method}");
            one(refusal::<Empty>(12, "the stand-in does not have it"))
        }
    }
}

fn environment() -> EnvironmentGetOrCreateResponse {
    let settings = Some(EnvironmentSettings { image_builder_version: BUILDER.to_owned() });
    EnvironmentGetOrCreateResponse {
        environment_id: "en-1".to_owned(),
        metadata: Some(EnvironmentMetadata { name: "main".to_owned(), settings }),
    }
}

/// Takes any image: the sandboxes are native ones.
fn image(records: &Records, request: &ImageGetOrCreateRequest) -> Result<ImageGetOrCreateResponse, Refusal> {
    let commands =
        request.image.as_ref().map(|image| image.dockerfile_commands.join("\n")).unwrap_or_default();
    if !commands.starts_with("FROM ") || request.builder_version.is_empty() {
        return refusal(3, "an image begins with FROM, and is built by a version");
    }
    if commands.contains("no-such-image") {
        let exception = "the image is not there".to_owned();
        let result = Some(GenericResult { status: 2, exception, exitcode: 1 });
        return Ok(ImageGetOrCreateResponse { image_id: "im-0".to_owned(), result });
    }
    Ok(ImageGetOrCreateResponse { image_id: records.image(&commands), result: None })
}

async fn create(
    records: &Arc<Records>,
    message: Bytes,
    key: Option<String>,
) -> Result<SandboxCreateV2Response, Refusal> {
    let request: SandboxCreateV2Request = read(message)?;
    let is_plain = |text: &str| {
        (1..=63).contains(&text.len())
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
    };
    if !request.tags.iter().all(|tag| is_plain(&tag.tag_name) && is_plain(&tag.tag_value)) {
        return refusal(3, "a tag has what no tag has");
    }
    // Whoever asked may have left meanwhile.
    let records = Arc::clone(records);
    let made = tokio::spawn(async move { records.create(request, key).await }).await.expect("a create")?;
    Ok(SandboxCreateV2Response { sandbox_id: made.id.clone(), task_id: made.task_id.clone() })
}

fn of(records: &Records, message: Bytes) -> Result<Arc<Record>, Refusal> {
    let request: OfSandbox = read(message)?;
    records.find(&request.sandbox_id).ok_or(Refusal { code: 5, message: "there is no such sandbox" })
}

fn list(records: &Records, request: &SandboxListRequest) -> SandboxListResponse {
    let wanted = |record: &Arc<Record>| {
        let tags = record.tags.lock().expect("no test panics with it");
        (request.app_id.is_empty() || record.app_id == request.app_id)
            && (request.before_timestamp == 0.0 || record.created_at < request.before_timestamp)
            && (request.include_finished || record.runs())
            && request.tags.iter().all(|tag| tags.contains(tag))
    };
    let listed = |record: Arc<Record>| SandboxInfoMessage {
        id: record.id.clone(),
        created_at: record.created_at,
        task_info: Some(TaskInfo { id: record.task_id.clone(), result: record.result.borrow().clone() }),
        app_id: record.app_id.clone(),
        tags: record.tags.lock().expect("no test panics with it").clone(),
        name: record.name.clone(),
    };
    let newest_first = records.all().into_iter().rev().filter(wanted).take(PAGE);
    SandboxListResponse { sandboxes: newest_first.map(listed).collect() }
}

fn by_name(records: &Records, request: &SandboxGetFromNameRequest) -> Result<OfSandbox, Refusal> {
    let app_id = records.app(&request.app_name);
    let is_it = |record: &Arc<Record>| {
        record.runs() && record.app_id == app_id && record.name == request.sandbox_name
    };
    let found = records.all().into_iter().find(is_it);
    let found = found.ok_or(Refusal { code: 5, message: "there is no such sandbox" })?;
    Ok(OfSandbox { sandbox_id: found.id.clone() })
}

async fn wait(records: &Records, message: Bytes) -> Result<SandboxWaitResponse, Refusal> {
    let request: SandboxWaitRequest = read(message)?;
    let missing = Refusal { code: 5, message: "there is no such sandbox" };
    let record = records.find(&request.sandbox_id).ok_or(missing)?;
    let mut result = record.result.subscribe();
    let patience = Duration::from_secs_f32(request.timeout.max(0.0));
    // No result within the time is an answer, too.
    drop(tokio::time::timeout(patience, result.wait_for(Option::is_some)).await);
    let result = record.result.borrow().clone();
    Ok(SandboxWaitResponse { result: Some(result.unwrap_or_default()) })
}

async fn terminate(records: &Records, message: Bytes) -> Result<Empty, Refusal> {
    of(records, message)?.finish(TERMINATED, 137).await;
    Ok(Empty {})
}
