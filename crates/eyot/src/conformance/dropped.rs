//! Calls whose caller stopped waiting: a call is dropped at each of its awaits in turn, and each
//! time its sandbox can be used at once. Whatever a call holds is given back with it.

use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use futures_util::future::{BoxFuture, join_all};

use super::Fixture;
use super::check::{Check, Disposable, Failure, cases, ensure, ensure_eq, output, promptly, slowness, until};
use super::create::{listed, named};
use crate::capabilities::Capability;
use crate::error::{Error, ErrorKind, Result};
use crate::exec::{Command, ExecOptions};
use crate::files::{CreateDirOptions, RemoveOptions};
use crate::provider::SandboxProvider;
use crate::sandbox::{Sandbox, StartOptions};
use crate::spec::{Lifecycle, SandboxName, SandboxSpec};

cases! {
    a_call_that_is_dropped_at_any_await_leaves_its_sandbox_usable(fixture) needs [Shell];
    a_sleep_or_a_wake_that_is_dropped_at_any_await_leaves_its_sandbox_usable(fixture) needs [Sleep, Shell];
    a_create_that_is_dropped_at_any_await_leaves_nothing_and_its_name_free(fixture) needs [];
    a_remove_that_is_dropped_at_any_await_can_be_done_again_and_frees_the_name(fixture) needs [];
    clients_that_give_up_while_others_sleep_and_wake_lock_no_sandbox(fixture) needs [Sleep, Shell];
}

/// A call goes on for no more awaits than this: one that does waits for something that never comes.
pub const MAX_AWAITS: usize = 500;
/// The time for which a call is dropped at each await. A provider that takes longer is dropped at
/// every fifth await from then on.
const AT_EACH_AWAIT: Duration = Duration::from_secs(10);
/// The distance of two awaits at which a call is dropped, once it was tried for so long.
const STRIDE: usize = 5;

/// A check that holds between two tries.
type Checking = BoxFuture<'static, Check>;
/// A call, as it is begun anew for each try.
type Call = BoxFuture<'static, Result<()>>;

/// Goes on with a call until it has awaited so often, and drops it there. `None`: so it was; else what it came to before.
pub async fn dropped_after<T>(awaits: usize, call: impl Future<Output = T>) -> Option<T> {
    let (mut call, mut left) = (Box::pin(call), awaits);
    std::future::poll_fn(move |context| match call.as_mut().poll(context) {
        Poll::Ready(ended) => Poll::Ready(Some(ended)),
        Poll::Pending if left <= 1 => Poll::Ready(None),
        Poll::Pending => {
            left -= 1;
            Poll::Pending
        }
    })
    .await
}

/// Drops the call at its first await, a new one at its second, and so on until one ends by itself, which must be as `fine` says.
/// After each, `check` holds.
async fn drop_everywhere(
    what: &str,
    call: impl Fn() -> Call,
    fine: impl Fn(&Error) -> bool,
    check: impl Fn() -> Checking,
) -> Check {
    let (begun, mut awaits) = (Instant::now(), 0);
    while awaits < MAX_AWAITS {
        awaits += if begun.elapsed() < AT_EACH_AWAIT { 1 } else { STRIDE };
        let ended = promptly(what, dropped_after(awaits, call())).await?;
        let told = format!("{what}, dropped at await {awaits}");
        promptly(&told, check()).await?.map_err(|failure| failed(&told, failure))?;
        match ended {
            None => {}
            Some(Err(error)) if !fine(&error) => {
                return Err(Failure::Broken(format!("{what} failed with {}: {error}", error.kind())));
            }
            Some(_) => return Ok(()),
        }
    }
    Err(Failure::Broken(format!("{what} goes on after {MAX_AWAITS} awaits")))
}

fn failed(what: &str, failure: Failure) -> Failure {
    match failure {
        Failure::Broken(why) => Failure::Broken(format!("{what}: {why}")),
        not_here => not_here,
    }
}

fn never(_: &Error) -> bool {
    false
}

/// Returns whether a sandbox is gone already.
fn is_gone(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Destroyed)
}

/// A sandbox with a file, and its name.
async fn sandbox(fixture: &dyn Fixture) -> Check<(Disposable, SandboxName)> {
    let (spec, name) = named(fixture);
    let sandbox = Disposable(Sandbox::create(&*fixture.provider(), spec).await?);
    sandbox.0.write("kept", "kept").await?;
    Ok((sandbox, name))
}

/// Uses a sandbox as everybody does: it is woken if it sleeps.
async fn used(provider: &dyn SandboxProvider, name: &SandboxName) -> Check<Sandbox> {
    loop {
        let read = async {
            let sandbox = if provider.capabilities().has(Capability::Sleep) {
                Sandbox::wake(provider, name.as_str()).await?
            } else {
                Sandbox::open(provider, name.as_str()).await?
            };
            let read = sandbox.exec("cat kept", ExecOptions::default()).await?;
            Ok((sandbox, read))
        };
        match read.await {
            // Somebody else puts it to sleep meanwhile: a sleep that was dropped may be carried out now.
            Err(error) if Error::is_sleeping(&error) => {}
            Ok((_, read)) if !read.success() => {}
            Err(error) => return Err(error.into()),
            Ok((sandbox, read)) => {
                ensure_eq!(read.stdout_text(), "kept");
                return Ok(sandbox);
            }
        }
    }
}

async fn a_call_that_is_dropped_at_any_await_leaves_its_sandbox_usable(fixture: Arc<dyn Fixture>) -> Check {
    let provider = fixture.provider();
    let (first, name) = sandbox(&*fixture).await?;
    for (what, needs, call) in calls() {
        if !needs.iter().all(|need| provider.capabilities().has(*need)) {
            continue;
        }
        drop_everywhere(what, || call(first.0.clone()), never, || use_of(&provider, &name)).await?;
    }
    Ok(())
}

/// A use of a sandbox, for later.
fn use_of(provider: &Arc<dyn SandboxProvider>, name: &SandboxName) -> Checking {
    let (provider, name) = (Arc::clone(provider), name.clone());
    Box::pin(async move { used(&*provider, &name).await.map(drop) })
}

type OnSandbox = fn(Sandbox) -> Call;

/// Calls of every kind, each of which ends by itself.
fn calls() -> Vec<(&'static str, &'static [Capability], OnSandbox)> {
    use Capability::{ChangeDeadlines, Processes, Tar, Usage};
    vec![
        ("an exec", &[], |sandbox| {
            Box::pin(async move { sandbox.exec("echo x", ExecOptions::default()).await.map(drop) })
        }),
        ("an exec with a deadline", &[], |sandbox| {
            let options = ExecOptions { timeout_ms: Some(1), ..ExecOptions::default() };
            Box::pin(async move { sandbox.exec("sleep 1000", options).await.map(drop) })
        }),
        ("a streamed exec", &[], |sandbox| {
            Box::pin(async move {
                let line = "echo x; echo y";
                let mut events = sandbox.exec_stream(line, ExecOptions::default()).await?;
                while let Some(event) = events.next().await {
                    event?;
                }
                Ok(())
            })
        }),
        ("a write", &[], |sandbox| Box::pin(async move { sandbox.write("new/written", "x").await })),
        ("a read", &[], |sandbox| Box::pin(async move { sandbox.read("kept").await.map(drop) })),
        ("a list", &[], |sandbox| Box::pin(async move { sandbox.list(".").await.map(drop) })),
        ("a mkdir", &[], |sandbox| {
            let options = CreateDirOptions { recursive: true };
            Box::pin(async move { sandbox.create_dir("d/e", options).await })
        }),
        ("a remove of a file", &[], |sandbox| {
            let options = RemoveOptions { force: true, recursive: true };
            Box::pin(async move { sandbox.remove("d", options).await })
        }),
        ("a tar", &[Tar], |sandbox| Box::pin(async move { sandbox.tar_out(".").await.map(drop) })),
        ("a usage", &[Usage], |sandbox| Box::pin(async move { sandbox.usage().await.map(drop) })),
        ("a start", &[Processes], |sandbox| {
            let line = Command::shell("sleep 1000");
            Box::pin(async move {
                let started = sandbox.start(line, StartOptions::default()).await?;
                sandbox.kill(started.id, None).await
            })
        }),
        ("a change of the deadlines", &[ChangeDeadlines], |sandbox| {
            Box::pin(async move { sandbox.set_lifecycle(&Lifecycle::default()).await })
        }),
    ]
}

async fn a_sleep_or_a_wake_that_is_dropped_at_any_await_leaves_its_sandbox_usable(
    fixture: Arc<dyn Fixture>,
) -> Check {
    let provider = fixture.provider();
    let (_first, name) = sandbox(&*fixture).await?;
    let asked = || (Arc::clone(&provider), name.clone());
    let sleep = || -> Call {
        let (provider, name) = asked();
        Box::pin(async move { provider.sleep(name.as_str()).await })
    };
    drop_everywhere("a sleep", sleep, never, || use_of(&provider, &name)).await?;
    let wake = || -> Call {
        let (provider, name) = asked();
        Box::pin(async move { Sandbox::wake(&*provider, name.as_str()).await.map(drop) })
    };
    let check = || -> Checking {
        let (provider, name) = asked();
        Box::pin(async move {
            used(&*provider, &name).await?;
            Ok(provider.sleep(name.as_str()).await?)
        })
    };
    provider.sleep(name.as_str()).await?;
    drop_everywhere("a wake", wake, never, check).await
}

async fn a_create_that_is_dropped_at_any_await_leaves_nothing_and_its_name_free(
    fixture: Arc<dyn Fixture>,
) -> Check {
    let provider = fixture.provider();
    let (spec, name) = named(&*fixture);
    let create = || -> Call {
        let (provider, spec) = (fixture.provider(), spec.clone());
        Box::pin(async move { Sandbox::create(&*provider, spec).await?.destroy().await })
    };
    let is_free = || -> Checking {
        let (provider, spec, name) = (Arc::clone(&provider), spec.clone(), name.clone());
        Box::pin(async move {
            until("its end", async || Ok(!listed(&*provider, &name).await?)).await?;
            Ok(made_when_free(&*provider, &spec).await?.destroy().await?)
        })
    };
    drop_everywhere("a create", create, never, is_free).await
}

async fn a_remove_that_is_dropped_at_any_await_can_be_done_again_and_frees_the_name(
    fixture: Arc<dyn Fixture>,
) -> Check {
    let provider = fixture.provider();
    let (spec, name) = named(&*fixture);
    let remove = || -> Call {
        let (provider, name) = (fixture.provider(), name.clone());
        Box::pin(async move { provider.remove(name.as_str()).await })
    };
    let made_anew = || -> Checking {
        let (provider, spec, name) = (Arc::clone(&provider), spec.clone(), name.clone());
        Box::pin(async move {
            match provider.remove(name.as_str()).await {
                Err(error) if is_gone(&error) => {}
                removed => removed?,
            }
            // For the next remove.
            Ok(made_when_free(&*provider, &spec).await.map(drop)?)
        })
    };
    made_anew().await?;
    drop_everywhere("a remove", remove, is_gone, made_anew).await?;
    Ok(provider.remove(name.as_str()).await?)
}

/// Makes a sandbox whose name is being given back.
async fn made_when_free(provider: &dyn SandboxProvider, spec: &SandboxSpec) -> Result<Sandbox> {
    loop {
        match Sandbox::create(provider, spec.clone()).await {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            made => return made,
        }
    }
}

/// The number of clients, and of sandboxes.
const CLIENTS: usize = 12;
const SANDBOXES: usize = 3;
/// The clients are done after this long, or one of them hangs.
const PATIENCE_WITH_CLIENTS: Duration = Duration::from_secs(120);

async fn clients_that_give_up_while_others_sleep_and_wake_lock_no_sandbox(
    fixture: Arc<dyn Fixture>,
) -> Check {
    let mut sandboxes = Vec::new();
    for _ in 0..SANDBOXES {
        sandboxes.push(sandbox(&*fixture).await?);
    }
    let rounds = fixture.rounds();
    let clients = (0..CLIENTS).map(|client| {
        let (provider, name) = (fixture.provider(), sandboxes[client % SANDBOXES].1.clone());
        tokio::spawn(async move { impatient(&*provider, &name, client, rounds).await })
    });
    // Some hundred sleeps and wakes, each of which is a second's work for an Engine.
    let all = tokio::time::timeout(PATIENCE_WITH_CLIENTS * slowness(), join_all(clients.collect::<Vec<_>>()));
    for client in all.await.map_err(|_| Failure::Broken("a client waits for ever".to_owned()))? {
        client.map_err(|error| Failure::Broken(error.to_string()))??;
    }
    let provider = fixture.provider();
    for (_, name) in &sandboxes {
        let sandbox = promptly("a use afterwards", used(&*provider, name)).await??;
        ensure_eq!(output(&sandbox, "cat kept").await?, "kept");
    }
    Ok(())
}

/// Begins commands and gives them up, puts the sandbox to sleep, and uses it.
async fn impatient(provider: &dyn SandboxProvider, name: &SandboxName, seed: usize, rounds: usize) -> Check {
    for round in 0..rounds {
        // The moment is the point of it.
        let patience = Duration::from_millis(2 + (seed * 7 + round * 5) as u64 % 29);
        let begun = async {
            let sandbox = Sandbox::wake(provider, name.as_str()).await?;
            sandbox.exec("sleep 1000", ExecOptions::default()).await
        };
        if let Ok(ended) = tokio::time::timeout(patience, begun).await {
            // Somebody else has put it to sleep.
            let was_cut = ended.as_ref().map_or_else(Error::is_sleeping, |result| !result.success());
            ensure!(was_cut, "a command came to {ended:?}");
        }
        promptly("a sleep", provider.sleep(name.as_str())).await??;
        promptly("a use", used(provider, name)).await??;
    }
    Ok(())
}
