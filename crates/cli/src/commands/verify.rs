//! `eyot verify`: tests, row by row, whether sandboxes keep their promises on this host.

use std::sync::Arc;

use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;

use crate::args::{ProviderArg, VerifyArgs};
use crate::context::Context;
use crate::errors::Failure;
use crate::output::printable;
use crate::table::Table;
use crate::verify::{self, CaseResult, CaseStatus, VerifyCase, VerifyGround};

/// Exit code: a promise is not kept.
const FAILS: u8 = 1;

pub async fn run(args: &VerifyArgs, context: &Context) -> Result<u8, Failure> {
    if context.provider_settings.kind != ProviderArg::Native {
        return Err(Failure::usage("`eyot verify` tries native sandboxes, not a Docker Engine's")
            .hint("docs/testing.md says which tests try those"));
    }
    let mut cases = verify::all();
    if !args.filter.is_empty() {
        cases.retain(|case| args.filter.iter().any(|wanted| case.matches(wanted)));
    }
    if cases.is_empty() {
        return Err(
            Failure::usage("`--filter` matches nothing").hint("`eyot verify --list` shows what there is")
        );
    }
    if args.list {
        return list(&cases, context);
    }
    if args.slow {
        eyot_probes::want_slow();
    }
    let ground = Arc::new(VerifyGround::prepare(&context.provider_settings, context.state_folder()?).await?);
    let bar = progress_bar(cases.len(), context);
    let tried = verify::run(cases, &ground, &|one| follow(&bar, one)).await;
    bar.finish_and_clear();
    let cleared = ground.clear().await;
    let report = VerifyReport::of(tried?);
    if context.output.json {
        context.output.value(&report)?
    } else {
        context.output.text(&page(&report, context.verbose))?
    }
    cleared?;
    Ok(if report.summary.fail == 0 { 0 } else { FAILS })
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

/// Shows a bar to a person who waits, and nothing to a program.
fn progress_bar(cases: usize, context: &Context) -> ProgressBar {
    if !context.output.shows_progress() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{pos}/{len} {wide_msg}")
        .unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::new(cases as u64).with_style(style)
}

fn follow(bar: &ProgressBar, one: &CaseResult) {
    bar.inc(1);
    bar.set_message(one.name);
    if one.status == CaseStatus::Fail {
        bar.suspend(|| crate::output::say(&format!("fail: {}\n", one.name)));
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
                CaseStatus::NotEnforced => summary.not_enforced += 1,
                CaseStatus::NotApplicable => summary.not_applicable += 1,
            }
        }
        Self { summary, rows }
    }
}

fn word(status: CaseStatus) -> &'static str {
    match status {
        CaseStatus::Pass => "pass",
        CaseStatus::Fail => "FAIL",
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
    let Summary { pass, fail, not_enforced, not_applicable } = report.summary;
    if fail > 0 {
        text.push_str("\nA busy host can make a case fail: try it by itself, with --filter NAME. One that fails again is a hole.\n");
    }
    text.push_str(&format!(
        "\n{pass} rows pass, {fail} fail, {not_enforced} are not enforced here, {not_applicable} don't apply here.\n"
    ));
    text
}
