//! A case that is tested, and its result.

use std::sync::Arc;

use eyot::conformance;
use serde::Serialize;

use super::ground::VerifyGround;

/// The result of a case, or of a row of them. The worst is the greatest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CaseStatus {
    /// The case cannot be tested here.
    NotApplicable,
    /// The promise is kept.
    Pass,
    /// This host does not enforce the promise, and `inspect` reports that.
    NotEnforced,
    /// The case was not tried: no sandbox could be made for it. This proves nothing.
    NotTried,
    /// The case failed beside others, and the promise was kept when it was tried alone.
    Unsteady,
    /// The promise is broken.
    Fail,
}

impl CaseStatus {
    /// Tells whether the case must be tried again alone, where no other case gets in its way.
    pub fn is_doubtful(self) -> bool {
        matches!(self, Self::Fail | Self::NotTried)
    }

    /// Tells whether the promise was neither seen to be kept nor reported as missing here.
    pub fn is_unproven(self) -> bool {
        matches!(self, Self::Fail | Self::NotTried | Self::Unsteady)
    }
}

/// The origin of a case.
#[derive(Clone, Copy)]
enum Kind {
    Threat(eyot_probes::Case),
    Rule(conformance::Case),
}

/// A case: one promise that is tested.
#[derive(Clone, Copy)]
pub struct VerifyCase {
    /// The row's id: `K11`, or `contract`.
    pub row: &'static str,
    /// The row's title.
    pub title: &'static str,
    kind: Kind,
}

/// The result of a case.
#[derive(Debug, Serialize)]
pub struct CaseResult {
    /// The row's id and title.
    #[serde(skip)]
    pub row: (&'static str, &'static str),
    /// The promise, as a sentence in snake case.
    pub name: &'static str,
    /// The status.
    pub status: CaseStatus,
    /// The reason why it did not pass.
    pub reason: Option<String>,
    /// The duration in milliseconds.
    pub duration_ms: u64,
}

impl CaseResult {
    /// Combines a doubtful result with that of the same case alone. One that failed has not passed,
    /// whatever comes of the second attempt.
    pub fn settled(self, alone: Self) -> Self {
        if self.status != CaseStatus::Fail || alone.status == CaseStatus::Fail {
            return alone;
        }
        let first = self.reason.unwrap_or_default();
        let then = if alone.status == CaseStatus::NotTried { "could not be tried" } else { "held" };
        let reason = Some(format!("beside other cases: {first}; alone it {then}"));
        Self { status: CaseStatus::Unsteady, reason, ..alone }
    }
}

/// The id of the row with the rules of the contract.
pub const CONTRACT: &str = "contract";

/// Returns every case, in the order of the rows; without the threats if they are not tried.
pub fn all(with_threats: bool) -> Vec<VerifyCase> {
    let threats = if with_threats { eyot_probes::cases() } else { Vec::new() };
    let mut threats: Vec<VerifyCase> = threats.into_iter().filter_map(threat).collect();
    let position = |case: &VerifyCase| eyot_probes::ROWS.iter().position(|row| row.id == case.row);
    threats.sort_by_key(position);
    let rule =
        |case| VerifyCase { row: CONTRACT, title: "the contract of every provider", kind: Kind::Rule(case) };
    threats.into_iter().chain(conformance::cases().into_iter().map(rule)).collect()
}

fn threat(case: eyot_probes::Case) -> Option<VerifyCase> {
    let row = eyot_probes::row_of(case.name)?;
    Some(VerifyCase { row: row.id, title: row.title, kind: Kind::Threat(case) })
}

impl VerifyCase {
    /// Returns the promise, as a sentence in snake case.
    pub fn name(&self) -> &'static str {
        match self.kind {
            Kind::Threat(case) => case.name,
            Kind::Rule(case) => case.name,
        }
    }

    /// Tells whether a filter selects the case: by the id of its row, or by a part of its name.
    pub fn matches(&self, wanted: &str) -> bool {
        let is_row = |id: &str| id.eq_ignore_ascii_case(wanted);
        if is_row(CONTRACT) || eyot_probes::ROWS.iter().any(|row| is_row(row.id)) {
            is_row(self.row)
        } else {
            self.name().contains(&wanted.to_lowercase())
        }
    }

    /// Tests the case.
    pub async fn attempt(self, ground: Arc<VerifyGround>) -> (CaseStatus, Option<String>) {
        let came_to = match self.kind {
            Kind::Threat(case) => match ground.world() {
                Some(world) => case.attempt(world).await.map(of_threat),
                None => {
                    Ok((CaseStatus::NotApplicable, Some("no threat is tried on this provider".to_owned())))
                }
            },
            Kind::Rule(case) => case.attempt(ground).await.map(of_rule),
        };
        came_to.unwrap_or_else(|broken| (CaseStatus::Fail, Some(broken)))
    }
}

fn of_threat(verdict: eyot_probes::Verdict) -> (CaseStatus, Option<String>) {
    match verdict {
        eyot_probes::Verdict::Holds => (CaseStatus::Pass, None),
        eyot_probes::Verdict::NotHere(reason) => (CaseStatus::NotApplicable, Some(reason)),
        eyot_probes::Verdict::NotEnforced(reason) => (CaseStatus::NotEnforced, Some(reason)),
        eyot_probes::Verdict::NotTried(reason) => (CaseStatus::NotTried, Some(reason)),
    }
}

fn of_rule(verdict: conformance::Verdict) -> (CaseStatus, Option<String>) {
    match verdict {
        conformance::Verdict::Holds => (CaseStatus::Pass, None),
        conformance::Verdict::NotHere(reason) => (CaseStatus::NotApplicable, Some(reason)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use CaseStatus::{Fail, NotEnforced, NotTried, Pass, Unsteady};

    fn result(status: CaseStatus) -> CaseResult {
        let reason = (status != Pass).then(|| "it got out".to_owned());
        CaseResult { row: ("K1", "a row"), name: "k01_a_case", status, reason, duration_ms: 1 }
    }

    #[test]
    fn a_case_that_failed_once_never_passes() {
        for (first, alone, settled) in [
            (Fail, Fail, Fail),
            (Fail, Pass, Unsteady),
            (Fail, NotTried, Unsteady),
            (Fail, NotEnforced, Unsteady),
            (NotTried, Pass, Pass),
            (NotTried, Fail, Fail),
            (NotTried, NotTried, NotTried),
        ] {
            assert_eq!(result(first).settled(result(alone)).status, settled, "{first:?}, then {alone:?}");
        }
        assert!([Fail, NotTried, Unsteady].into_iter().all(CaseStatus::is_unproven));
        let reason = result(Fail).settled(result(Pass)).reason;
        assert_eq!(reason.as_deref(), Some("beside other cases: it got out; alone it held"));
    }

    #[test]
    fn a_probe_without_a_sandbox_is_not_tried() {
        let verdict = eyot_probes::Verdict::NotTried("create sandbox: no process left".to_owned());
        assert_eq!(of_threat(verdict).0, NotTried);
    }
}
