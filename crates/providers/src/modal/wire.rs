//! The messages of Modal's two services, as far as they are used here. Names and numbers are those of the
//! descriptors in PyPI's `modal` 1.6.4; fields that are not used are left out, as protobuf allows.
#![allow(missing_docs, reason = "the vendor's descriptors say what each field is")]

use prost::Message;

/// The service of the control plane.
pub const CLIENT: &str = "/modal.client.ModalClient/";
/// The service of a sandbox's worker, which runs commands.
pub const ROUTER: &str = "/modal.task_command_router.TaskCommandRouter/";
/// `OBJECT_CREATION_TYPE_CREATE_IF_MISSING`.
pub const CREATE_IF_MISSING: i32 = 1;
/// `GENERIC_STATUS_SUCCESS`.
pub const SUCCESS: i32 = 1;
/// `GENERIC_STATUS_TERMINATED`.
pub const TERMINATED: i32 = 3;
/// `GENERIC_STATUS_TIMEOUT`.
pub const TIMEOUT: i32 = 4;
/// `NetworkAccessType.OPEN`.
pub const NETWORK_OPEN: i32 = 1;
/// `NetworkAccessType.BLOCKED`.
pub const NETWORK_BLOCKED: i32 = 2;
/// `PTY_TYPE_SHELL`.
pub const PTY_SHELL: i32 = 2;
/// `TASK_EXEC_STDOUT_CONFIG_PIPE` and `TASK_EXEC_STDERR_CONFIG_PIPE`.
pub const PIPE: i32 = 1;
/// `TASK_EXEC_STDIO_FILE_DESCRIPTOR_STDOUT`.
pub const STDOUT: i32 = 0;
/// `TASK_EXEC_STDIO_FILE_DESCRIPTOR_STDERR`.
pub const STDERR: i32 = 1;

#[derive(Clone, PartialEq, Message)]
pub struct Empty {}

/// An answer with a token. Its debug form hides it.
#[derive(Clone, PartialEq, Message)]
#[prost(skip_debug)]
pub struct AuthTokenGetResponse {
    #[prost(string, tag = "1")]
    pub token: String,
}

#[derive(Clone, PartialEq, Message)]
pub struct EnvironmentGetOrCreateRequest {
    #[prost(string, tag = "1")]
    pub deployment_name: String,
    #[prost(int32, tag = "2")]
    pub object_creation_type: i32,
}

#[derive(Clone, PartialEq, Message)]
pub struct EnvironmentGetOrCreateResponse {
    #[prost(string, tag = "1")]
    pub environment_id: String,
    #[prost(message, optional, tag = "2")]
    pub metadata: Option<EnvironmentMetadata>,
}

#[derive(Clone, PartialEq, Message)]
pub struct EnvironmentMetadata {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(message, optional, tag = "2")]
    pub settings: Option<EnvironmentSettings>,
}

#[derive(Clone, PartialEq, Message)]
pub struct EnvironmentSettings {
    #[prost(string, tag = "1")]
    pub image_builder_version: String,
}

#[derive(Clone, PartialEq, Message)]
pub struct ClientHelloResponse {
    #[prost(string, tag = "1")]
    pub warning: String,
    #[prost(string, tag = "2")]
    pub image_builder_version: String,
}

#[derive(Clone, PartialEq, Message)]
pub struct AppGetOrCreateRequest {
    #[prost(string, tag = "1")]
    pub app_name: String,
    #[prost(string, tag = "2")]
    pub environment_name: String,
    #[prost(int32, tag = "3")]
    pub object_creation_type: i32,
}

#[derive(Clone, PartialEq, Message)]
pub struct AppGetOrCreateResponse {
    #[prost(string, tag = "1")]
    pub app_id: String,
}

#[derive(Clone, PartialEq, Message)]
pub struct ImageDefinition {
    #[prost(string, repeated, tag = "6")]
    pub dockerfile_commands: Vec<String>,
}

#[derive(Clone, PartialEq, Message)]
pub struct ImageGetOrCreateRequest {
    #[prost(message, optional, tag = "2")]
    pub image: Option<ImageDefinition>,
    #[prost(string, tag = "4")]
    pub app_id: String,
    #[prost(string, tag = "9")]
    pub builder_version: String,
}

#[derive(Clone, PartialEq, Message)]
pub struct ImageGetOrCreateResponse {
    #[prost(string, tag = "1")]
    pub image_id: String,
    #[prost(message, optional, tag = "2")]
    pub result: Option<GenericResult>,
}

#[derive(Clone, PartialEq, Message)]
pub struct ImageJoinStreamingRequest {
    #[prost(string, tag = "1")]
    pub image_id: String,
    #[prost(float, tag = "2")]
    pub timeout: f32,
    #[prost(string, tag = "3")]
    pub last_entry_id: String,
}

#[derive(Clone, PartialEq, Message)]
pub struct ImageJoinStreamingResponse {
    #[prost(message, optional, tag = "1")]
    pub result: Option<GenericResult>,
    #[prost(string, tag = "3")]
    pub entry_id: String,
    #[prost(bool, tag = "4")]
    pub eof: bool,
}

/// How something ended; the status 0 says that it has not.
#[derive(Clone, PartialEq, Message)]
pub struct GenericResult {
    #[prost(int32, tag = "1")]
    pub status: i32,
    #[prost(string, tag = "2")]
    pub exception: String,
    #[prost(int32, tag = "3")]
    pub exitcode: i32,
}

#[derive(Clone, PartialEq, Message)]
pub struct NetworkAccess {
    #[prost(int32, tag = "1")]
    pub network_access_type: i32,
}

#[derive(Clone, PartialEq, Message)]
pub struct SandboxTag {
    #[prost(string, tag = "1")]
    pub tag_name: String,
    #[prost(string, tag = "2")]
    pub tag_value: String,
}

/// The definition of a new sandbox.
#[derive(Clone, PartialEq, Message)]
pub struct SandboxDefinition {
    #[prost(string, repeated, tag = "1")]
    pub entrypoint_args: Vec<String>,
    #[prost(string, tag = "3")]
    pub image_id: String,
    #[prost(uint32, tag = "7")]
    pub timeout_secs: u32,
    #[prost(string, optional, tag = "8")]
    pub workdir: Option<String>,
    #[prost(message, optional, tag = "22")]
    pub network_access: Option<NetworkAccess>,
    #[prost(string, optional, tag = "30")]
    pub name: Option<String>,
}

/// Variables. Its debug form hides them.
#[derive(Clone, PartialEq, Message)]
#[prost(skip_debug)]
pub struct StringMap {
    #[prost(btree_map = "string, string", tag = "1")]
    pub contents: std::collections::BTreeMap<String, String>,
}

#[derive(Clone, PartialEq, Message)]
pub struct SecretSource {
    #[prost(oneof = "SecretSourceKind", tags = "1, 2")]
    pub source: Option<SecretSourceKind>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
pub enum SecretSourceKind {
    #[prost(string, tag = "1")]
    SecretId(String),
    #[prost(message, tag = "2")]
    Env(StringMap),
}

#[derive(Clone, PartialEq, Message)]
pub struct SandboxCreateV2Request {
    #[prost(string, tag = "1")]
    pub app_id: String,
    #[prost(message, optional, tag = "2")]
    pub definition: Option<SandboxDefinition>,
    #[prost(message, repeated, tag = "4")]
    pub tags: Vec<SandboxTag>,
    #[prost(message, repeated, tag = "6")]
    pub secret_sources: Vec<SecretSource>,
}

#[derive(Clone, PartialEq, Message)]
pub struct SandboxCreateV2Response {
    #[prost(string, tag = "1")]
    pub sandbox_id: String,
    #[prost(string, tag = "3")]
    pub task_id: String,
}

/// A way to a sandbox's worker. Its debug form hides the token.
#[derive(Clone, PartialEq, Message)]
#[prost(skip_debug)]
pub struct CommandRouterAccess {
    #[prost(string, tag = "1")]
    pub jwt: String,
    #[prost(string, tag = "2")]
    pub url: String,
}

macro_rules! hides {
    ($($name:ident),*) => {$(
        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.debug_struct(stringify!($name)).finish_non_exhaustive()
            }
        }
    )*};
}
hides!(AuthTokenGetResponse, StringMap, CommandRouterAccess);

#[derive(Clone, PartialEq, Message)]
pub struct SandboxListRequest {
    #[prost(string, tag = "1")]
    pub app_id: String,
    #[prost(double, tag = "2")]
    pub before_timestamp: f64,
    #[prost(string, tag = "3")]
    pub environment_name: String,
    #[prost(bool, tag = "4")]
    pub include_finished: bool,
    #[prost(message, repeated, tag = "5")]
    pub tags: Vec<SandboxTag>,
}

#[derive(Clone, PartialEq, Message)]
pub struct SandboxListResponse {
    #[prost(message, repeated, tag = "1")]
    pub sandboxes: Vec<SandboxInfoMessage>,
}

/// `SandboxInfo`.
#[derive(Clone, PartialEq, Message)]
pub struct SandboxInfoMessage {
    #[prost(string, tag = "1")]
    pub id: String,
    #[prost(double, tag = "3")]
    pub created_at: f64,
    #[prost(message, optional, tag = "4")]
    pub task_info: Option<TaskInfo>,
    #[prost(string, tag = "5")]
    pub app_id: String,
    #[prost(message, repeated, tag = "6")]
    pub tags: Vec<SandboxTag>,
    #[prost(string, tag = "7")]
    pub name: String,
}

#[derive(Clone, PartialEq, Message)]
pub struct TaskInfo {
    #[prost(string, tag = "1")]
    pub id: String,
    #[prost(message, optional, tag = "4")]
    pub result: Option<GenericResult>,
}

/// `SandboxTerminateRequest` and others that name a sandbox alone.
#[derive(Clone, PartialEq, Message)]
pub struct OfSandbox {
    #[prost(string, tag = "1")]
    pub sandbox_id: String,
}

#[derive(Clone, PartialEq, Message)]
pub struct SandboxWaitRequest {
    #[prost(string, tag = "1")]
    pub sandbox_id: String,
    #[prost(float, tag = "2")]
    pub timeout: f32,
}

#[derive(Clone, PartialEq, Message)]
pub struct SandboxWaitResponse {
    #[prost(message, optional, tag = "1")]
    pub result: Option<GenericResult>,
}

#[derive(Clone, PartialEq, Message)]
pub struct SandboxTagsGetResponse {
    #[prost(message, repeated, tag = "1")]
    pub tags: Vec<SandboxTag>,
}

#[derive(Clone, PartialEq, Message)]
pub struct SandboxGetFromNameRequest {
    #[prost(string, tag = "1")]
    pub sandbox_name: String,
    #[prost(string, tag = "2")]
    pub environment_name: String,
    #[prost(string, tag = "3")]
    pub app_name: String,
}

#[derive(Clone, PartialEq, Message)]
pub struct SandboxGetTaskIdResponse {
    #[prost(string, optional, tag = "1")]
    pub task_id: Option<String>,
    #[prost(message, optional, tag = "2")]
    pub task_result: Option<GenericResult>,
}

#[derive(Clone, PartialEq, Message)]
pub struct PtyInfo {
    #[prost(bool, tag = "1")]
    pub enabled: bool,
    #[prost(uint32, tag = "2")]
    pub winsz_rows: u32,
    #[prost(uint32, tag = "3")]
    pub winsz_cols: u32,
    #[prost(string, tag = "4")]
    pub env_term: String,
    #[prost(int32, tag = "7")]
    pub pty_type: i32,
    #[prost(bool, tag = "8")]
    pub no_terminate_on_idle_stdin: bool,
}

#[derive(Clone, PartialEq, Message)]
pub struct TaskExecStartRequest {
    #[prost(string, tag = "1")]
    pub task_id: String,
    #[prost(string, tag = "2")]
    pub exec_id: String,
    #[prost(string, repeated, tag = "3")]
    pub command_args: Vec<String>,
    #[prost(int32, tag = "4")]
    pub stdout_config: i32,
    #[prost(int32, tag = "5")]
    pub stderr_config: i32,
    #[prost(uint32, optional, tag = "6")]
    pub timeout_secs: Option<u32>,
    #[prost(string, optional, tag = "7")]
    pub workdir: Option<String>,
    #[prost(message, optional, tag = "9")]
    pub pty_info: Option<PtyInfo>,
    #[prost(message, repeated, tag = "13")]
    pub secret_sources: Vec<SecretSource>,
}

/// `TaskExecWaitRequest`, `TaskExecPollRequest` and others that name a command alone.
#[derive(Clone, PartialEq, Message)]
pub struct OfExec {
    #[prost(string, tag = "1")]
    pub task_id: String,
    #[prost(string, tag = "2")]
    pub exec_id: String,
}

#[derive(Clone, PartialEq, Message)]
pub struct TaskExecStdioReadRequest {
    #[prost(string, tag = "1")]
    pub task_id: String,
    #[prost(string, tag = "2")]
    pub exec_id: String,
    #[prost(uint64, tag = "3")]
    pub offset: u64,
    #[prost(int32, tag = "4")]
    pub file_descriptor: i32,
}

#[derive(Clone, PartialEq, Message)]
pub struct TaskExecStdioReadResponse {
    #[prost(bytes = "bytes", tag = "1")]
    pub data: bytes::Bytes,
}

#[derive(Clone, PartialEq, Message)]
pub struct TaskExecStdinWriteRequest {
    #[prost(string, tag = "1")]
    pub task_id: String,
    #[prost(string, tag = "2")]
    pub exec_id: String,
    #[prost(uint64, tag = "3")]
    pub offset: u64,
    #[prost(bytes = "bytes", tag = "4")]
    pub data: bytes::Bytes,
    #[prost(bool, tag = "5")]
    pub eof: bool,
}

/// `TaskExecWaitResponse` and `TaskExecPollResponse`.
#[derive(Clone, PartialEq, Message)]
pub struct TaskExecStatus {
    #[prost(oneof = "ExecEnd", tags = "1, 2")]
    pub exit_status: Option<ExecEnd>,
}

#[derive(Clone, Copy, PartialEq, Eq, prost::Oneof)]
pub enum ExecEnd {
    #[prost(int32, tag = "1")]
    Code(i32),
    #[prost(int32, tag = "2")]
    Signal(i32),
}

/// `google.rpc.Status`, which travels in `grpc-status-details-bin`.
#[derive(Clone, PartialEq, Message)]
pub struct RpcStatus {
    #[prost(int32, tag = "1")]
    pub code: i32,
    #[prost(message, repeated, tag = "3")]
    pub details: Vec<RpcDetail>,
}

/// `google.protobuf.Any`.
#[derive(Clone, PartialEq, Message)]
pub struct RpcDetail {
    #[prost(string, tag = "1")]
    pub type_url: String,
    #[prost(bytes = "bytes", tag = "2")]
    pub value: bytes::Bytes,
}

/// The wait that Modal asks for, in such a detail.
#[derive(Clone, PartialEq, Message)]
pub struct RpcRetryPolicy {
    #[prost(float, tag = "1")]
    pub retry_after_secs: f32,
}
