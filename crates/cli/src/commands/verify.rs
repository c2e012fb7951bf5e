//! `eyot verify`: tests, row by row, whether sandboxes keep their promises on this host.

use std::sync::Arc;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;

use crate::args::VerifyArgs;
use crate::context::Context;
use crate::errors::Failure;
use crate::output::{printable, say};
use crate::provider::ProviderRow;
use crate::table::Table;
use crate::verify::{self, CONTRACT, CaseResult, CaseStatus, VerifyCase, VerifyGround};

/// Exit code: a promise is not kept.
const FAILS: u8 = 1;
/// Exit code: no promise was seen to be broken, and some were not proven. A pipeline that stops at
/// a hole may try these again. Arguments that are wrong have the code 2.
const UNPROVEN: u8 = 3;

pub async fn run(args: &VerifyArgs, context: &Context) -> Result<u8, Failure> {
    let row = context.provider_settings.row;
    let mut cases = verify::all(row.tries_threats);
    if !args.filter.is_empty() {
        cases.retain(|case| args.filter.iter().any(|wanted| case.matches(wanted)));
    }
    if cases.is_empty() {
        return Err(nothing_matches(row));
    }
    if args.list {
        return list(&cases, context);
    }
    if args.slow {
        eyot_probes::want_slow();
    }
    let image = context.config.defaults.image.as_deref();
    let state = context.state_folder()?;
    let ground = Arc::new(VerifyGround::prepare(&context.provider_settings, state, image).await?);
    let progress = VerifyProgress::new(cases.len(), context);
    let tried = verify::run(cases, &ground, &|one| progress.follow(one)).await;
    progress.bar.finish_and_clear();
    let cleared = ground.clear().await;
    let report = VerifyReport::of(tried?);
    if context.output.json {
        context.output.value(&report)?
    } else {
        context.output.text(&page(&report, context.verbose))?
    }
    cleared?;
    Ok(report.exit_code())
}

/// Says why there is nothing to try.
fn nothing_matches(row: &ProviderRow) -> Failure {
    if row.tries_threats {
        return Failure::usage("`--filter` matches nothing").hint("`eyot verify --list` shows what there is");
    }
    let name = row.name;
    let failure = Failure::usage(format!(
        "`--filter` matches no rule of the contract, which is what is tried on {name}"
    ));
    failure.hint(format!(
        "`eyot --provider {name} verify --list` shows the rules; threats are tried on native sandboxes"
    ))
}

fn list(cases: &[VerifyCase], context: &Context) -> Result<u8, Failure> {
    if context.output.json {
        let names: Vec<[&str; 2]> = cases.iter().map(|case| [case.row, case.name()]).collect();
        context.output.value(&names)?;
        return Ok(0);
    }
    let mut table = Table::new(["ROW", "CASE"]);
    for case in cases {
        table.row([case.row.to_owned(), case.name().to_owned()]);
    }
    context.output.text(&table.render())?;
    Ok(0)
}

/// The progress: a bar for a person who waits, and a line for each case where standard error is a
/// file or a pipe.
struct VerifyProgress {
    bar: ProgressBar,
    has_lines: bool,
}

impl VerifyProgress {
    fn new(cases: usize, context: &Context) -> Self {
        let style = ProgressStyle::with_template("{pos}/{len} {wide_msg}")
            .unwrap_or_else(|_| ProgressStyle::default_bar());
        let bar = ProgressBar::new(cases as u64).with_style(style);
        let shows_bar = context.output.shows_progress();
        bar.set_draw_target(if shows_bar {
            ProgressDrawTarget::stderr()
        } else {
            ProgressDrawTarget::hidden()
        });
        Self { bar, has_lines: !shows_bar && !context.output.quiet && !context.output.json }
    }

    fn follow(&self, one: &CaseResult) {
        self.bar.inc(1);
        self.bar.set_message(one.name);
        let line = format!("{}: {}\n", word(one.status), one.name);
        if self.has_lines {
            let (position, all) = (self.bar.position(), self.bar.length().unwrap_or_default());
            say(&format!("[{position}/{all}] {line}"));
        } else if one.status.is_unproven() {
            self.bar.suspend(|| say(&line));
        }
    }
}

/// The results of all cases.
#[derive(Serialize)]
struct VerifyReport {
    summary: Summary,
    rows: Vec<VerifyRow>,
}

/// The numbers of rows by their result.
#[derive(Default, Serialize)]
struct Summary {
    pass: usize,
    fail: usize,
    unsteady: usize,
    not_tried: usize,
    not_enforced: usize,
    not_applicable: usize,
}

/// One row, with the result of its worst case.
#[derive(Serialize)]
struct VerifyRow {
    id: &'static str,
    title: &'static str,
    status: CaseStatus,
    cases: Vec<CaseResult>,
}

impl VerifyReport {
    fn of(tried: Vec<CaseResult>) -> Self {
        let mut rows: Vec<VerifyRow> = Vec::new();
        for one in tried {
            let (id, title) = one.row;
            if rows.last().is_none_or(|row| row.id != id) {
                rows.push(VerifyRow { id, title, status: CaseStatus::NotApplicable, cases: Vec::new() });
            }
            if let Some(row) = rows.last_mut() {
                row.status = row.status.max(one.status);
                row.cases.push(one);
            }
        }
        let mut summary = Summary::default();
        for row in &rows {
            match row.status {
                CaseStatus::Pass => summary.pass += 1,
                CaseStatus::Fail => summary.fail += 1,
                CaseStatus::Unsteady => summary.unsteady += 1,
                CaseStatus::NotTried => summary.not_tried += 1,
                CaseStatus::NotEnforced => summary.not_enforced += 1,
                CaseStatus::NotApplicable => summary.not_applicable += 1,
            }
        }
        Self { summary, rows }
    }

    /// Returns the exit code: 0 if every promise that this host can keep was seen to be kept.
    fn exit_code(&self) -> u8 {
        match self.rows.iter().map(|row| row.status).max() {
            Some(CaseStatus::Fail) => FAILS,
            Some(worst) if worst.is_unproven() => UNPROVEN,
            _ => 0,
        }
    }
}

fn word(status: CaseStatus) -> &'static str {
    match status {
        CaseStatus::Pass => "pass",
        CaseStatus::Fail => "FAIL",
        CaseStatus::Unsteady => "unsteady",
        CaseStatus::NotTried => "not tried",
        CaseStatus::NotEnforced => "not enforced",
        CaseStatus::NotApplicable => "not applicable",
    }
}

/// Renders the table of rows, the cases that did not pass (with `everything`, all of them), and the
/// summary.
fn page(report: &VerifyReport, everything: bool) -> String {
    let mut table = Table::new(["ROW", "RESULT", "PASSED", "WHAT"]);
    for row in &report.rows {
        let passed = row.cases.iter().filter(|one| one.status == CaseStatus::Pass).count();
        let passed = format!("{passed}/{}", row.cases.len());
        table.row([row.id.to_owned(), word(row.status).to_owned(), passed, row.title.to_owned()]);
    }
    let mut text = table.render();
    let cases = report.rows.iter().flat_map(|row| &row.cases);
    let shown: Vec<&CaseResult> = cases.filter(|one| everything || one.status != CaseStatus::Pass).collect();
    if !shown.is_empty() {
        text.push('\n');
    }
    for one in shown {
        let reason =
            one.reason.as_deref().map(|reason| format!(": {}", printable(reason))).unwrap_or_default();
        text.push_str(&format!("{:<14}  {}{reason}\n", word(one.status), one.name));
    }
    let Summary { pass, fail, unsteady, not_tried, not_enforced, not_applicable } = report.summary;
    if fail > 0 {
        let of_contract = report.rows.iter().all(|row| row.id == CONTRACT || row.status != CaseStatus::Fail);
        let means =
            if of_contract { "The provider breaks the contract." } else { "It is a hole in the isolation." };
        text.push_str(&format!("\nEach case that fails has failed twice, the second time alone. {means}\n"));
    }
    if unsteady + not_tried > 0 {
        text.push_str("\nUnsteady cases failed beside others and held alone; not tried is one without a sandbox. Neither is proven: \
                       try them on a host that is less busy, with --filter NAME.\n");
    }
    if let [row] = report.rows.as_slice()
        && row.id == CONTRACT
    {
        text.push_str(&rules_line(row));
        return text;
    }
    text.push_str(&format!(
        "\n{pass} rows pass, {fail} fail, {unsteady} are unsteady, {not_tried} were not tried, {not_enforced} are not \
         enforced here, {not_applicable} don't apply here.\n"
    ));
    text
}

/// Returns the numbers of rules where nothing but the contract was tried.
fn rules_line(row: &VerifyRow) -> String {
    let count = |status: CaseStatus| row.cases.iter().filter(|case| case.status == status).count();
    let (hold, broken, not_here) =
        (count(CaseStatus::Pass), count(CaseStatus::Fail), count(CaseStatus::NotApplicable));
    let unproven = row.cases.len() - hold - broken - not_here;
    format!(
        "\n{hold} rules hold, {broken} are broken, {unproven} are not proven, {not_here} don't apply here.\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(statuses: &[CaseStatus]) -> VerifyReport {
        let result = |status: &CaseStatus| CaseResult {
            row: ("K1", "a row"),
            name: "k01_a_case",
            status: *status,
            reason: Some("a reason".to_owned()),
            duration_ms: 1,
        };
        VerifyReport::of(statuses.iter().map(result).collect())
    }

    #[test]
    fn a_hole_ends_with_another_code_than_what_is_not_proven_and_neither_with_success() {
        for (unproven, code) in [(CaseStatus::Fail, 1), (CaseStatus::Unsteady, 3), (CaseStatus::NotTried, 3)]
        {
            let report = report(&[CaseStatus::Pass, unproven, CaseStatus::NotEnforced]);
            assert_eq!(report.exit_code(), code, "{unproven:?}");
            assert_eq!((report.rows[0].status, report.summary.pass), (unproven, 0));
        }
        assert_eq!(report(&[CaseStatus::Unsteady, CaseStatus::Fail, CaseStatus::NotTried]).exit_code(), 1);
        let rest = [CaseStatus::Pass, CaseStatus::NotEnforced, CaseStatus::NotApplicable];
        assert_eq!(report(&rest).exit_code(), 0);
    }

    #[test]
    fn a_case_that_was_not_tried_does_not_read_as_a_failure() {
        let page = page(&report(&[CaseStatus::NotTried]), false);
        assert!(page.contains("not tried       k01_a_case: a reason"), "{page}");
        assert!(!page.contains("FAIL") && page.contains("less busy"), "{page}");
    }

    #[test]
    fn where_the_contract_alone_is_tried_its_rules_are_counted() {
        let mut report = report(&[CaseStatus::Pass, CaseStatus::Fail, CaseStatus::NotApplicable]);
        report.rows[0].id = CONTRACT;
        let page = page(&report, false);
        assert!(page.contains("1 rules hold, 1 are broken, 0 are not proven, 1 don't apply here."), "{page}");
        assert!(page.contains("The provider breaks the contract."), "{page}");
    }
}
