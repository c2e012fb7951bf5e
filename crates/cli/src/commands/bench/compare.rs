//! Compares two builds of this program: their benches run in turn, so that a noisy machine disturbs
//! both alike.

use std::path::Path;
use std::process::Stdio;

use serde::{Deserialize, Serialize};

use super::progress;
use crate::bench::quantile;
use crate::context::Context;
use crate::errors::Failure;

/// The number of times that each build is run.
const TURNS: u32 = 5;

/// An operation in both builds: the medians of its medians, in microseconds.
#[derive(Debug, Serialize)]
struct ComparedRow {
    name: String,
    this_us: f64,
    other_us: f64,
    /// `this_us` divided by `other_us`.
    ratio: f64,
}

/// The part of a build's report that is compared.
#[derive(Debug, Deserialize)]
struct ReportOfBuild {
    rows: Vec<RowOfBuild>,
}

#[derive(Debug, Deserialize)]
struct RowOfBuild {
    name: String,
    p50_us: f64,
}

/// The medians of each row of a build, in the order of the rows.
type Medians = Vec<(String, Vec<f64>)>;

/// Runs both builds in turn and prints how their medians compare.
pub async fn run(other: &Path, rounds: u32, context: &Context) -> Result<u8, Failure> {
    let this = std::env::current_exe().map_err(|error| Failure::host("find this program", error))?;
    let state = context.state_folder()?;
    let mut medians: [Medians; 2] = Default::default();
    let steps = progress(context, u64::from(TURNS) * 2);
    for _ in 0..TURNS {
        for (program, medians) in [this.as_path(), other].into_iter().zip(&mut medians) {
            let report = report_of(program, &state, rounds).await?;
            report.rows.into_iter().for_each(|row| note(medians, row));
            steps.inc(1);
        }
    }
    steps.finish_and_clear();
    let rows = compared(&medians);
    if context.output.json { context.output.value(&rows) } else { context.output.text(&table(&rows)) }?;
    Ok(0)
}

async fn report_of(program: &Path, state: &Path, rounds: u32) -> Result<ReportOfBuild, Failure> {
    let what = format!("run `{} bench`", program.display());
    let mut command = tokio::process::Command::new(program);
    command.args(["--json", "bench", "--rounds", &rounds.to_string(), "--state"]).arg(state);
    command.stdin(Stdio::null()).kill_on_drop(true);
    let ran = command.output().await.map_err(|error| Failure::host(&what, error))?;
    if !ran.status.success() {
        let said = String::from_utf8_lossy(&ran.stderr).trim().to_owned();
        return Err(Failure::host(&what, std::io::Error::other(said)));
    }
    serde_json::from_slice(&ran.stdout).map_err(|error| Failure::host(&what, error.into()))
}

fn note(medians: &mut Medians, row: RowOfBuild) {
    match medians.iter_mut().find(|(name, _)| *name == row.name) {
        Some((_, times)) => times.push(row.p50_us),
        None => medians.push((row.name, vec![row.p50_us])),
    }
}

/// Compares the rows that both builds have.
fn compared([this, other]: &[Medians; 2]) -> Vec<ComparedRow> {
    let of_both = this.iter().filter_map(|(name, times)| {
        let (_, others) = other.iter().find(|(other, _)| other == name)?;
        let (this_us, other_us) = (quantile(times, 0.5), quantile(others, 0.5));
        Some(ComparedRow { name: name.clone(), this_us, other_us, ratio: this_us / other_us })
    });
    of_both.collect()
}

fn table(rows: &[ComparedRow]) -> String {
    let head = "| operation | this p50 µs | other p50 µs | this / other |\n|---|---|---|---|\n";
    let line = |row: &ComparedRow| {
        format!("| {} | {:.0} | {:.0} | {:.2} |\n", row.name, row.this_us, row.other_us, row.ratio)
    };
    head.to_owned() + &rows.iter().map(line).collect::<String>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_that_one_build_lacks_are_left_out_and_the_median_of_the_turns_counts() {
        let of = |rows: &[(&str, &[f64])]| -> Medians {
            rows.iter().map(|(name, times)| ((*name).to_owned(), times.to_vec())).collect()
        };
        let rows = compared(&[of(&[("exec", &[1.0, 3.0, 9.0]), ("new", &[1.0])]), of(&[("exec", &[6.0])])]);
        assert_eq!(table(&rows).lines().nth(2), Some("| exec | 3 | 6 | 0.50 |"));
        assert_eq!(rows.len(), 1);
    }
}
