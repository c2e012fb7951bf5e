//! Tests many cases at once, each on its own thread, because some block theirs.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use tokio::runtime::{Handle, Runtime};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

use super::case::{CaseResult, CaseStatus, VerifyCase};
use super::ground::VerifyGround;
use crate::errors::Failure;
use crate::signals::Signals;

/// A function that is called after every case.
pub type Progress<'a> = &'a dyn Fn(&CaseResult);

/// Returns the number of cases at once: they measure nothing, but start many processes.
fn at_once() -> usize {
    std::thread::available_parallelism().map_or(2, usize::from).clamp(2, 8)
}

/// Tests all cases and returns the results in their order. One that failed, or could not be tried, is
/// tried again alone. A signal ends it early: no further case begins, those under way are dropped, and
/// [`VerifyGround::clear`] removes what they left.
pub async fn run(
    cases: Vec<VerifyCase>,
    ground: &Arc<VerifyGround>,
    progress: Progress<'_>,
) -> Result<Vec<CaseResult>, Failure> {
    let mut signals = Signals::listen().map_err(|error| Failure::host("listen for signals", error))?;
    let runtime = Runtime::new().map_err(|error| Failure::host("start the event loop", error))?;
    let (stop, stopped) = watch::channel(false);
    let mut results = BTreeMap::new();
    let all: Vec<_> = cases.iter().copied().enumerate().collect();
    let mut round = begin(all, at_once(), runtime.handle(), ground, &stopped);
    let of_settled = |one: &CaseResult| {
        if !one.status.is_doubtful() {
            progress(one);
        }
    };
    results.extend(complete(&mut round, &mut signals, &stop, &of_settled).await?);
    let doubtful = results.iter().filter(|(_, one): &(_, &CaseResult)| one.status.is_doubtful());
    let doubtful: Vec<_> = doubtful.filter_map(|(at, _)| Some((*at, *cases.get(*at)?))).collect();
    let mut round = begin(doubtful, 1, runtime.handle(), ground, &stopped);
    for (at, alone) in complete(&mut round, &mut signals, &stop, &|_| ()).await? {
        if let Some(first) = results.remove(&at) {
            let settled = first.settled(alone);
            progress(&settled);
            results.insert(at, settled);
        }
    }
    let settling = Arc::clone(ground);
    if let Ok(Err(error)) = runtime.spawn(async move { settling.settle().await }).await {
        tracing::warn!(%error, "a sandbox of a case was not destroyed");
    }
    runtime.shutdown_background();
    Ok(results.into_values().collect())
}

/// Waits for a round of cases. After a signal no further one begins, and those under way are stopped.
async fn complete(
    running: &mut Running,
    signals: &mut Signals,
    stop: &watch::Sender<bool>,
    progress: Progress<'_>,
) -> Result<Vec<(usize, CaseResult)>, Failure> {
    let (mut tried, mut signal) = (Vec::new(), None);
    loop {
        tokio::select! {
            done = running.join_next() => match done {
                Some(Ok(Some((index, one)))) => {
                    progress(&one);
                    tried.push((index, one));
                }
                Some(_stopped) => {}
                None => break,
            },
            number = signals.end(), if signal.is_none() => {
                signal = Some(number);
                stop.send_replace(true);
            }
        }
    }
    match signal {
        Some(number) => Err(Failure::Interrupted(number)),
        None => Ok(tried),
    }
}

/// The cases under way. Each returns its index and its result, or nothing if it was stopped.
type Running = JoinSet<Option<(usize, CaseResult)>>;

fn begin(
    cases: Vec<(usize, VerifyCase)>,
    at_once: usize,
    runtime: &Handle,
    ground: &Arc<VerifyGround>,
    stopped: &watch::Receiver<bool>,
) -> Running {
    let (mut running, turns) = (JoinSet::new(), Arc::new(Semaphore::new(at_once)));
    for (index, case) in cases {
        let (ground, turns, mut stopped) = (Arc::clone(ground), Arc::clone(&turns), stopped.clone());
        let attempt = async move {
            let turn = turns.acquire_owned().await.ok()?;
            if *stopped.borrow() {
                return None;
            }
            let threads = Handle::current();
            let on_a_thread = tokio::task::spawn_blocking(move || {
                threads.block_on(async move {
                    tokio::select! {
                        tried = attempt(case, ground) => Some(tried),
                        _ = stopped.wait_for(|stopped| *stopped) => None,
                    }
                })
            });
            let tried = on_a_thread.await.unwrap_or_else(|_| Some(panicked(case)))?;
            drop(turn);
            Some((index, tried))
        };
        running.spawn_on(attempt, runtime);
    }
    running
}

async fn attempt(case: VerifyCase, ground: Arc<VerifyGround>) -> CaseResult {
    let began = Instant::now();
    let (status, reason) = case.attempt(ground).await;
    let duration_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
    CaseResult { row: (case.row, case.title), name: case.name(), status, reason, duration_ms }
}

fn panicked(case: VerifyCase) -> CaseResult {
    let reason = Some("it panicked, which is a defect of Eyot".to_owned());
    CaseResult {
        row: (case.row, case.title),
        name: case.name(),
        status: CaseStatus::Fail,
        reason,
        duration_ms: 0,
    }
}
