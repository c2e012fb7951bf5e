//! `eyot doctor`: reports what this host can do, what it cannot, why, and how to fix it.

use std::io::{self, IsTerminal};
use std::path::PathBuf;

use crate::args::DoctorArgs;
use crate::context::Context;
use crate::errors::Failure;
use crate::output::printable;
use crate::provider::{self, Finding, Report, Status};

/// Exit code: this host cannot run sandboxes.
const NO_SANDBOXES: u8 = 1;

pub async fn run(args: &DoctorArgs, context: &Context) -> Result<u8, Failure> {
    if let Some(program) = &args.apparmor_profile {
        context.output.text(&provider::apparmor_profile(&program_path(program.clone())?))?;
        return Ok(0);
    }
    let diagnosing = provider::diagnose(&context.provider_settings);
    let report =
        context.output.explain_a_wait("making a sandbox, to see whether that works", diagnosing).await?;
    if context.output.json {
        context.output.value(&report)?
    } else {
        context.output.text(&page(&report, io::stdout().is_terminal()))?
    }
    Ok(if report.works { 0 } else { NO_SANDBOXES })
}

/// Returns the path by which the kernel knows a program: this one, unless another is named.
fn program_path(named: Option<PathBuf>) -> Result<PathBuf, Failure> {
    let (what, path) = match named {
        Some(program) => (format!("find `{}`", program.display()), program.canonicalize()),
        None => ("find this program".to_owned(), std::env::current_exe()),
    };
    path.map_err(|error| Failure::host(what, error))
}

/// Renders a line for each finding, with the fix below it.
fn page(report: &Report, colours: bool) -> String {
    let mut text = String::new();
    for finding in &report.findings {
        text.push_str(&lines(finding, colours));
    }
    let verdict = if report.works {
        "Sandboxes can be made here. `eyot verify` tries whether they hold."
    } else {
        "Sandboxes can't be made here."
    };
    text.push_str(&format!("\n{verdict}\n"));
    text
}

fn lines(finding: &Finding, colours: bool) -> String {
    let (word, colour) = match finding.status {
        Status::Ok => ("ok", "32"),
        Status::Info => ("info", "2"),
        Status::Warn => ("warn", "33"),
        Status::Error => ("error", "31"),
    };
    let word = format!("{word:<5}");
    let word = if colours { format!("\u{1b}[{colour}m{word}\u{1b}[0m") } else { word };
    let mut text = format!("{word}  {:<16}  {}\n", finding.id, printable(&finding.why));
    if let Some(fix) = &finding.fix {
        text.push_str(&format!("{:25}fix: {}\n", "", printable(fix)));
    }
    text
}
