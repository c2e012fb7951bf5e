//! The report of a benchmark, as a table for people and as JSON for programs.

use std::fmt::Write;

use serde::Serialize;

use super::crowd::Crowd;
use super::items::BenchRow;
use super::transfers::MeasuredCopy;
use super::{Items, LiveCalls, SkippedPeer};

/// The provider that was measured.
#[derive(Debug, Serialize)]
#[serde(tag = "provider", rename_all = "snake_case")]
pub enum BenchSubject {
    /// The native provider.
    Native {
        /// Set if root ran it. Its sandboxes have a range of ids.
        root: bool,
    },
    /// The Docker provider.
    Docker {
        /// The Engine's version.
        engine: String,
        /// The image that all containers were made from.
        image: String,
    },
    /// A provider that is compared with nothing.
    #[serde(untagged)]
    Other {
        /// The name.
        #[serde(rename = "provider")]
        name: &'static str,
    },
}

impl BenchSubject {
    /// Returns the native provider, as run by this user.
    pub fn native() -> Self {
        Self::Native { root: rustix::process::geteuid().is_root() }
    }

    fn words(&self) -> String {
        match self {
            Self::Native { root: true } => "as root (a range of ids)".to_owned(),
            Self::Native { root: false } => "as an ordinary user (one id)".to_owned(),
            Self::Other { name } => format!("provider {name}"),
            Self::Docker { engine, image } => format!("Docker Engine {engine}, image `{image}`"),
        }
    }
}

/// Everything that one run measured.
#[derive(Debug, Serialize)]
pub struct BenchReport {
    /// The provider.
    #[serde(flatten)]
    pub subject: BenchSubject,
    /// The kernel's release.
    pub kernel: String,
    /// The number of processors that this process may use.
    pub processors: usize,
    /// The rows.
    pub rows: Vec<BenchRow>,
    /// Peers that are not among the rows, with the reasons.
    pub left_out: Vec<SkippedPeer>,
    /// Many live sandboxes, if `--live` was given.
    pub crowd: Option<Crowd>,
    /// The same for a provider that is measured by its calls alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub live: Option<LiveCalls>,
    /// Copies between two sandboxes, if `--transfer` was given.
    pub copied: Vec<MeasuredCopy>,
}

impl BenchReport {
    /// Makes the report of these items on this host.
    pub fn new(subject: BenchSubject, items: &Items, left_out: Vec<SkippedPeer>) -> Self {
        Self {
            subject,
            kernel: rustix::system::uname().release().to_string_lossy().into_owned(),
            processors: std::thread::available_parallelism().map_or(1, usize::from),
            rows: items.rows(),
            left_out,
            crowd: None,
            live: None,
            copied: Vec::new(),
        }
    }

    /// Renders the report as Markdown, in the form of `docs/performance.md`.
    pub fn markdown(&self) -> String {
        let subject = self.subject.words();
        let mut text = format!("Linux {}, {} processors, {subject}.\n\n", self.kernel, self.processors);
        text.push_str("| operation | min µs | p50 µs | p95 µs | ratio | target | against |\n");
        text.push_str("|---|---|---|---|---|---|---|\n");
        self.rows.iter().for_each(|row| text.push_str(&line(row)));
        for left_out in &self.left_out {
            write_line(&mut text, format_args!("\nNot measured: {} ({}).", left_out.peer, left_out.reason));
        }
        if let Some(crowd) = &self.crowd {
            text.push_str(&crowd_lines(crowd));
        }
        if let Some(live) = &self.live {
            text.push_str(&live_lines(live));
        }
        if !self.copied.is_empty() {
            text.push_str(
                "\n| from one sandbox to another | transfer | tar \\| tar on the host | ratio | memory |\n",
            );
            text.push_str("|---|---|---|---|---|\n");
            self.copied.iter().for_each(|copied| text.push_str(&copied_line(copied)));
        }
        text
    }
}

fn line(row: &BenchRow) -> String {
    let ratio = row.ratio.map(|ratio| format!("{ratio:.*}", decimals(ratio))).unwrap_or_default();
    let to_reach = row.to_reach.map(|most| format!("≤ {most}"));
    let to_reach_us = row.to_reach_us.map(|most| format!("≤ {most} µs"));
    let to_reach = to_reach.into_iter().chain(to_reach_us).collect::<Vec<_>>().join(", ");
    let against = row.against.unwrap_or_default();
    format!(
        "| {} | {:.0} | {:.0} | {:.0} | {ratio} | {to_reach} | {against} |\n",
        row.name, row.min_us, row.p50_us, row.p95_us
    )
}

/// Returns the number of decimals with which a ratio is shown.
fn decimals(ratio: f64) -> usize {
    if ratio < 0.1 { 3 } else { 2 }
}

fn copied_line(copied: &MeasuredCopy) -> String {
    let MeasuredCopy { what, transfer_ms, tar_ms, memory_kib, .. } = copied;
    let (ratio, memory_mib) = (transfer_ms / tar_ms, *memory_kib as f64 / 1024.0);
    format!("| {what} | {transfer_ms:.0} ms | {tar_ms:.0} ms | {ratio:.2} | {memory_mib:.1} MiB |\n")
}

fn live_lines(live: &LiveCalls) -> String {
    let LiveCalls { live, memory_each_kib, process_memory_mib, create_p50_us, echo_p50_us } = live;
    format!(
        "\n| with {live} live sandboxes | |\n|---|---|\n| memory of each | {memory_each_kib:.0} KiB |\n\
         | memory of this process | {process_memory_mib:.0} MiB |\n\
         | create, p50, while they were made | {create_p50_us:.0} µs |\n| `echo hi`, p50 | {echo_p50_us:.0} µs |\n"
    )
}

fn crowd_lines(crowd: &Crowd) -> String {
    let mut text = format!("\n| with {} idle sandboxes | | target |\n|---|---|---|\n", crowd.live);
    let slower = crowd.creates_per_second_alone / crowd.creates_per_second_in_crowd;
    let mut row = |what: &str, value: String, to_reach: &str| {
        write_line(&mut text, format_args!("| {what} | {value} | {to_reach} |"));
    };
    row("memory of each, kernel included", format!("{:.2} MiB", crowd.memory_each_kib / 1024.0), "≤ 0.5 MiB");
    row(
        "creates per second, two at a time, none live",
        format!("{:.0}", crowd.creates_per_second_alone),
        "≥ 400",
    );
    let rate = format!("{:.0} ({slower:.2}× slower)", crowd.creates_per_second_in_crowd);
    row("creates per second with all live", rate, "≥ 320 with 1,000, ≥ 250 with 2,000");
    let first = format!("{:.0} µs", crowd.exec_first_hundred_p50_us);
    row("exec /bin/true, p50, in the first hundred", first, "");
    let last = format!("{:.0} µs", crowd.exec_last_hundred_p50_us);
    row("exec /bin/true, p50, in the last hundred", last, "");
    row("eyot ls as a process, p50", format!("{:.0} ms", crowd.ls_p50_ms), "≤ 30 ms");
    row("eyot top --once as a process, p50", format!("{:.0} ms", crowd.top_p50_ms), "≤ 100 ms");
    text
}

/// Appends a line of text. Writing to a string can't fail.
fn write_line(text: &mut String, line: std::fmt::Arguments<'_>) {
    text.write_fmt(line).and_then(|()| text.write_char('\n')).unwrap_or_default();
}
