//! The vocabulary of the cases: a list of them, their outcomes, and checks that say what was wrong.

use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use eyot::Error;
use futures_util::future::BoxFuture;

use crate::world::World;

/// One threat.
#[derive(Clone, Copy)]
pub struct Case {
    /// The row of the threat table, and what must hold, as a sentence in snake case.
    pub name: &'static str,
    /// Tries it.
    pub(crate) run: fn(Arc<World>) -> BoxFuture<'static, Check>,
}

impl Case {
    /// Tries it in sandboxes of its own. A case that fails, or whose future is dropped, leaves them
    /// to [`World::clear`].
    ///
    /// # Errors
    /// What did not hold, in words.
    pub async fn attempt(&self, world: Arc<World>) -> Result<Verdict, String> {
        let came_to = match tokio::time::timeout(patience(), (self.run)(world)).await {
            Ok(came_to) => came_to,
            Err(_elapsed) => {
                Err(Failure::Broken(format!("it hangs: nothing within {} seconds", patience().as_secs())))
            }
        };
        match came_to {
            Ok(()) => Ok(Verdict::Holds),
            Err(Failure::NotHere(reason)) => Ok(Verdict::NotHere(reason)),
            Err(Failure::NotEnforced(reason)) => Ok(Verdict::NotEnforced(reason)),
            Err(Failure::NotTried(reason)) => Ok(Verdict::NotTried(reason)),
            Err(Failure::Broken(broken)) => Err(broken),
        }
    }
}

/// The outcome of a case that did not fail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The forbidden thing did not work.
    Holds,
    /// It can't be tried here, and why: a program is missing, a kernel lacks a feature.
    NotHere(String),
    /// Nothing on this host holds it off, which is known and reported, and why.
    NotEnforced(String),
    /// It was not tried, because a sandbox for it could not be made, and why. This proves nothing.
    NotTried(String),
}

/// Why a case did not hold.
#[derive(Debug)]
pub enum Failure {
    /// It does not hold.
    Broken(String),
    /// It can't be tried here, and why.
    NotHere(String),
    /// It is not held off here, as `isolation()` says, and why.
    NotEnforced(String),
    /// A sandbox for it could not be made, and why.
    NotTried(String),
}

/// The result of a case, or of a part of one.
pub type Check<T = ()> = Result<T, Failure>;

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Broken(format!("failed with {}: {error}", error.kind()))
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self::Broken(format!("on the host: {error}"))
    }
}

/// Lists the cases of a file. Each is given a `stage` of its own (a sandbox that is destroyed
/// afterwards, without a trace), or the `world` if it makes its own.
macro_rules! cases {
    ($($name:ident($given:ident);)*) => {
        pub fn cases() -> Vec<crate::check::Case> {
            vec![$(crate::check::Case {
                name: stringify!($name),
                run: |world| Box::pin(cases!(@$given world, $name)),
            }),*]
        }
    };
    (@stage $world:ident, $name:ident) => { async move { $world.on_a_stage($name).await } };
    (@world $world:ident, $name:ident) => { $name($world) };
}

/// Fails unless the condition holds; what follows says what was expected and what was found.
macro_rules! ensure {
    ($holds:expr, $($said:tt)+) => {
        if !$holds {
            let said = format!("{} ({}:{})", format_args!($($said)+), file!(), line!());
            return Err(crate::check::Failure::Broken(said));
        }
    };
}

/// Fails unless both are equal.
macro_rules! ensure_eq {
    ($found:expr, $expected:expr) => {{
        let (found, expected) = (&$found, &$expected);
        crate::check::ensure!(found == expected, "{} is {found:?}, not {expected:?}", stringify!($found));
    }};
}

/// Fails unless the result is an error of one of the kinds.
macro_rules! ensure_fails {
    ($result:expr, $($kind:ident)|+) => {
        match $result {
            Ok(_) => crate::check::ensure!(
                false, "{} succeeded; {} was due", stringify!($result), stringify!($($kind)|+)
            ),
            Err(error) => crate::check::ensure!(
                matches!(error.kind(), $(eyot::ErrorKind::$kind)|+),
                "{} failed with {} ({error}); {} was due",
                stringify!($result), error.kind(), stringify!($($kind)|+)
            ),
        }
    };
}

pub(crate) use {cases, ensure, ensure_eq, ensure_fails};

/// Goes no further, because it can't be tried here.
pub fn not_here<T>(reason: impl Into<String>) -> Check<T> {
    Err(Failure::NotHere(reason.into()))
}

/// Goes no further, because this host enforces no such limit, and reports that it doesn't.
pub fn not_enforced<T>(reason: impl Into<String>) -> Check<T> {
    Err(Failure::NotEnforced(reason.into()))
}

/// Returns how many times slower than usual this machine may be, by `EYOT_SLOWNESS`; 1 by default.
/// An emulated processor needs more. Every patience, and every deadline by which something must
/// have begun, is that much longer.
pub(crate) fn slowness() -> u32 {
    static SLOWNESS: LazyLock<u32> = LazyLock::new(|| {
        let said = std::env::var("EYOT_SLOWNESS").ok().and_then(|said| said.parse().ok());
        said.unwrap_or(1).max(1)
    });
    *SLOWNESS
}

/// Returns the time after which an unfinished call counts as a hang.
pub(crate) fn hang() -> Duration {
    Duration::from_secs(60) * slowness()
}

/// Fails unless something is done before it is obviously hanging.
pub async fn promptly<T>(what: &str, work: impl Future<Output = T>) -> Check<T> {
    let late = |_| Failure::Broken(format!("{what} was not done within {:?}", hang()));
    tokio::time::timeout(hang(), work).await.map_err(late)
}

/// Waits until something holds, asking again and again; a failure says what was waited for.
pub async fn until<F: Future<Output = Check<bool>>>(what: &str, mut holds: impl FnMut() -> F) -> Check {
    let patience = Duration::from_secs(20) * slowness();
    let given_up = tokio::time::Instant::now() + patience;
    while !holds().await? {
        ensure!(tokio::time::Instant::now() < given_up, "{what} did not happen within {patience:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Ok(())
}

static SLOW: AtomicBool = AtomicBool::new(false);

/// From here on cases do what takes minutes: floods of a GiB, a million files.
pub fn want_slow() {
    SLOW.store(true, Ordering::Relaxed);
}

/// Tells whether the long cases are to run.
pub(crate) fn slow() -> bool {
    SLOW.load(Ordering::Relaxed)
}

/// Returns the time that one case may take. Waits inside a case give up earlier.
fn patience() -> Duration {
    Duration::from_secs(if slow() { 900 } else { 180 }) * slowness()
}
