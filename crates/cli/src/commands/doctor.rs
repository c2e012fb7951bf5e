//! `eyot doctor`: reports what this host can do, what it cannot, why, and how to fix it.

use std::io::{self, IsTerminal};
use std::path::PathBuf;

use crate::args::DoctorArgs;
use crate::context::Context;
use crate::errors::Failure;
use crate::output::printable;
use crate::provider::{self, Finding, ProviderSettings, Report, Status};

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
        context.output.text(&page(&report, &context.provider_settings, io::stdout().is_terminal()))?
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
fn page(report: &Report, settings: &ProviderSettings, colours: bool) -> String {
    let (mut text, runner) = (String::new(), FixRunner::here());
    for finding in &report.findings {
        text.push_str(&lines(finding, &runner, colours));
    }
    let of_other = (settings.row.name != "native").then(|| format!(" with --provider {}", settings.row.name));
    let of_other = of_other.unwrap_or_default();
    let verdict = if report.works {
        format!("Sandboxes can be made here{of_other}. `eyot verify` tries whether they hold.")
    } else {
        format!("Sandboxes can't be made here{of_other}.")
    };
    let folder = settings.state.display().to_string();
    text.push_str(&format!("\nThe state folder is `{}`.\n{verdict}\n", printable(&folder)));
    text
}

fn lines(finding: &Finding, runner: &FixRunner, colours: bool) -> String {
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
        text.push_str(&format!("{:25}{}\n", "", printable(&runner.line(fix))));
    }
    text
}

/// The user who is to run a fix.
struct FixRunner {
    has_sudo: bool,
    is_root: bool,
    /// The shell that ran this program: `$$` means it, and another one in a shell of root.
    shell: u32,
}

impl FixRunner {
    fn here() -> Self {
        let folders = std::env::var_os("PATH").unwrap_or_default();
        Self {
            has_sudo: std::env::split_paths(&folders).any(|folder| folder.join("sudo").is_file()),
            is_root: rustix::process::geteuid().is_root(),
            shell: std::os::unix::process::parent_id(),
        }
    }

    /// Words a fix as this user can run it: fixes are written with `sudo`.
    fn line(&self, fix: &str) -> String {
        if self.has_sudo || !fix.contains(SUDO) {
            return format!("fix: {fix}");
        }
        let without = |fix: &str| fix.replace(SUDO, "");
        if self.is_root {
            return format!("fix: {}", without(fix));
        }
        let by_root = |fix: &str| without(fix).replace("$$", &self.shell.to_string());
        // What comes first is for the user's own shell.
        match fix.split_once(" || ").filter(|(first, _)| !first.contains(SUDO)) {
            Some((first, second)) => format!("fix: {first}; or as root: {}", by_root(second)),
            None => format!("fix, as root: {}", by_root(fix)),
        }
    }
}

const SUDO: &str = "sudo ";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fix_names_root_where_there_is_no_sudo() {
        let user = FixRunner { has_sudo: false, is_root: false, shell: 41 };
        let cases = [
            ("findmnt /usr", "fix: findmnt /usr"),
            ("sudo sysctl -w a=1", "fix, as root: sysctl -w a=1"),
            ("eyot doctor | sudo tee f && sudo load f", "fix, as root: eyot doctor | tee f && load f"),
            ("sudo prlimit --pid $$ --nofile=9", "fix, as root: prlimit --pid 41 --nofile=9"),
            (
                "ulimit -Sn hard || sudo prlimit --pid $$ --nofile=9",
                "fix: ulimit -Sn hard; or as root: prlimit --pid 41 --nofile=9",
            ),
        ];
        for (fix, line) in cases {
            assert_eq!(user.line(fix), line);
        }
    }

    #[test]
    fn a_fix_stays_as_it_is_where_sudo_is_and_loses_it_where_root_has_none() {
        let fix = "ulimit -Sn hard || sudo prlimit --pid $$ --nofile=9";
        let has_sudo = FixRunner { has_sudo: true, is_root: false, shell: 41 };
        assert_eq!(has_sudo.line(fix), format!("fix: {fix}"));
        let root = FixRunner { has_sudo: false, is_root: true, shell: 41 };
        assert_eq!(root.line(fix), "fix: ulimit -Sn hard || prlimit --pid $$ --nofile=9");
    }
}
