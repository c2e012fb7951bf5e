//! The driver's commands: each is a process that a script becomes once it has seen that the command can run.

use std::sync::Arc;

use async_trait::async_trait;
use eyot::{
    ExecRequest, Execution, ExecutionControl, ExecutionInput, PtySize, Result, SandboxOperationUnsupported,
    Signal,
};
use futures_util::StreamExt;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::NAME;
use super::input::PlacedInput;
use super::link::ModalLink;
use super::pump::pump;
use super::script::{LinkScripts, ModalProcess, NewScript, StartedScript, kill, resize, start};
use crate::e2b::driver::ScriptedSandbox;
use crate::e2b::exec::{RUN, check_lengths, hidden, run_arguments};
use crate::e2b::files::{FileScripts, StagedUpload};

/// Takes the arguments out of a file.
const LONG: &str = include_str!("long.sh");
/// The most bytes of arguments that go with the scripts themselves in what Modal takes.
const MAX_INLINE_BYTES: usize = 32 << 10;
/// The events that may wait for a reader.
const WAITING_EVENTS: usize = 8;

#[async_trait]
impl ScriptedSandbox for LinkScripts {
    fn check(&self) -> Result<()> {
        self.0.check()
    }

    async fn exec(self: Arc<Self>, request: ExecRequest) -> Result<Execution> {
        exec(&self.0, request).await
    }

    fn vendor_id(&self) -> &str {
        &self.0.id
    }

    async fn end(&self) -> Result<()> {
        self.0.client.terminate(&self.0.id).await
    }

    fn let_go(&self) {
        self.0.destroyed.cancel();
    }
}

/// Starts a command.
async fn exec(link: &Arc<ModalLink>, request: ExecRequest) -> Result<Execution> {
    let refused = |option| Err(SandboxOperationUnsupported::new("exec", NAME, &[option]).into());
    if request.user.is_some() {
        return refused("user");
    }
    if request.cwd.beneath.is_some() {
        return refused("beneath");
    }
    let (stdin, pty) = (request.stdin, request.pty);
    let new = script(request);
    let variables = new.env.iter().map(|(name, value)| name.len() + "=".len() + value.len());
    check_lengths(new.arguments.iter().map(String::len).chain(variables))?;
    let running = begin(link, new).await?;
    let (process, link) = (running.process.clone(), Arc::clone(link));
    let ended = CancellationToken::new();
    let input = |_| PlacedInput::of_command(&link, &process.exec_id, pty.is_some(), ended.clone());
    if pty.is_some() && !stdin {
        // As the input of a terminal that nobody types into: it ends at once.
        drop(input(()));
    }
    let input = stdin.then(|| Box::new(input(())) as Box<dyn ExecutionInput>);
    let control = Arc::new(ExecController { link: Arc::clone(&link), process });
    let (sender, receiver) = mpsc::channel(WAITING_EVENTS);
    let ending = ended.drop_guard();
    tokio::spawn(async move {
        pump(link, running, sender).await;
        drop(ending);
    });
    let events = futures_util::stream::unfold(receiver, |mut receiver| async {
        receiver.recv().await.map(|event| (event, receiver))
    });
    Ok(Execution { events: events.fuse().boxed(), input, control })
}

/// Starts a command. Arguments that are more than Modal takes go by a file.
async fn begin(link: &Arc<ModalLink>, new: NewScript) -> Result<StartedScript> {
    if new.arguments.iter().map(String::len).sum::<usize>() <= MAX_INLINE_BYTES {
        return start(link, new).await;
    }
    let scripts = Arc::new(LinkScripts(Arc::clone(link)));
    let file = StagedUpload::new(&scripts);
    let content: Vec<u8> = new.arguments[1..].iter().flat_map(|text| text.bytes().chain([0])).collect();
    scripts.upload(&file.path, futures_util::stream::iter([Ok(content.into())]).boxed()).await?;
    let (script, arguments) = (format!("{LONG}{}", new.script), vec![String::new(), file.path.clone()]);
    let started = start(link, NewScript { script, arguments, ..new }).await?;
    // The script has removed it.
    file.finish();
    Ok(started)
}

/// Returns the script of a request. The command's variables are for it alone, so they have other names on the way to the
/// script. They are not among the arguments, which a vendor may log.
fn script(request: ExecRequest) -> NewScript {
    let ExecRequest { command, cwd, mut env, pty, stdin, .. } = request;
    if pty.is_some() {
        env.entry("TERM".to_owned()).or_insert_with(|| "xterm-256color".to_owned());
    }
    let arguments = std::iter::once(String::new()).chain(run_arguments(&cwd, env.len(), command)).collect();
    NewScript { script: RUN.to_owned(), arguments, env: hidden(env), stdin, pty, makes: None }
}

/// The control of a command.
struct ExecController {
    link: Arc<ModalLink>,
    process: ModalProcess,
}

#[async_trait]
impl ExecutionControl for ExecController {
    async fn kill(&self) -> Result<()> {
        kill(&self.link, &self.process).await
    }

    async fn signal(&self, _: Signal) -> Result<()> {
        Err(SandboxOperationUnsupported::new("signal", NAME, &[]).into())
    }

    async fn resize(&self, size: PtySize) -> Result<()> {
        resize(&self.link, &self.process, size).await
    }
}
