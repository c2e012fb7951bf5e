//! `tar`, in the format of GNU's, plain or packed by gzip.

mod create;
mod extract;
mod list;
mod names;
mod options;
mod source;
pub(super) mod time;

use async_trait::async_trait;

use super::run::{Ending, ProgramRun, ShellProgram};
use super::worker::{Worker, work};
use names::TarPattern;
use options::{FAILURE, Options, TarMode, TarStep, fatal, parse, usage};

pub(super) struct Tar;

#[async_trait]
impl ShellProgram for Tar {
    async fn run(&self, run: &ProgramRun<'_>) -> Result<i32, Ending> {
        match run.args.first().map(String::as_str) {
            Some("--version") => return run.print("tar (GNU tar) 1.35\n").await.map(|()| 0),
            Some("--help" | "-?" | "--usage") => {
                return run.print("Usage: tar [OPTION...] [FILE]...\n").await.map(|()| 0);
            }
            _ => {}
        }
        let options = parse(run.args)?;
        if options.mode == Some(TarMode::Create) && !options.has_names() {
            return Err(usage("Cowardly refusing to create an empty archive", FAILURE));
        }
        work(run, move |worker| match options.mode {
            Some(TarMode::Extract | TarMode::List) => extract::extract(worker, &options),
            _ => create::create(worker, &options),
        })
        .await
    }
}

/// The steps of the command line, with those that files hold.
fn expanded(worker: &Worker, options: &Options) -> Result<Vec<TarStep>, Ending> {
    let mut steps = Vec::new();
    for step in &options.steps {
        match step {
            TarStep::NamesFrom(file) => {
                steps.extend(lines(worker, file, options.zero_names)?.map(TarStep::Name))
            }
            TarStep::ExcludeFrom(file) => {
                let patterns =
                    lines(worker, file, false)?.map(|line| TarStep::Exclude(TarPattern::new(&line, true)));
                steps.extend(patterns);
            }
            step => steps.push(step.clone()),
        }
    }
    Ok(steps)
}

fn lines(worker: &Worker, file: &str, zero: bool) -> Result<impl Iterator<Item = String> + use<>, Ending> {
    let bytes = if file == "-" {
        let mut all = Vec::new();
        while let Some(bytes) = worker.read_input()? {
            all.extend(bytes);
        }
        all
    } else {
        let content = worker.read(file)?;
        let content = content.map_err(|reason| fatal(format!("{file}: Cannot open: {reason}")))?;
        content.to_vec(u64::MAX).unwrap_or_default()
    };
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let mark = if zero { '\0' } else { '\n' };
    let lines: Vec<String> = text.split(mark).filter(|line| !line.is_empty()).map(str::to_owned).collect();
    Ok(lines.into_iter())
}
