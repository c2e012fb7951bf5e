//! `eyot init flue`: writes `sandboxes/eyot.ts` into the source folder of a Flue project.

use std::fs::{self, OpenOptions};
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};

use eyot::{Error, ErrorKind};
use serde::Serialize;

use super::project::Project;
use super::typecheck::{Typecheck, typecheck};
use crate::args::InitFlueArgs;
use crate::errors::{FAILED, Failure};
use crate::output::Output;

/// The content of the file.
const SANDBOX: &str = include_str!("eyot.ts");
/// The path of the file in the source folder.
const FILE: &str = "sandboxes/eyot.ts";
/// The client's package. It is not published: a registry has nothing of this name, or a stranger's.
const CLIENT: &str = "@eyot/client";
/// The packages that the file imports.
const PACKAGES: [&str; 2] = [CLIENT, "@flue/runtime"];
/// The folder of the client in a clone of Eyot. The user sets the variable.
const CLIENT_SOURCE: &str = "\"$EYOT/sdks/typescript\"";
/// The archive that `npm pack` makes of it.
const CLIENT_ARCHIVE: &str = concat!("./eyot-client-", env!("CARGO_PKG_VERSION"), ".tgz");
/// Exit code: the file is written, but the compiler rejects it.
const REFUSED: u8 = 1;

/// The environment variables that the client reads.
const VARIABLES: [(&str, &str); 3] = [
    ("EYOT_SERVER", "the server: http://HOST:PORT or unix:/PATH; without it one is started"),
    ("EYOT_API_KEY", "its key, from `eyot keys create NAME`"),
    ("EYOT_BIN", "the program that is started without a server; by default `eyot` on the PATH"),
];

/// Code for an agent of Flue 2.
const SNIPPET: &str = "\
'use agent';
import { useModel, useSandbox } from '@flue/runtime';
import { eyot } from '../sandboxes/eyot.ts';

export function Coder() {
  useModel('anthropic/claude-opus-4-6');
  useSandbox(eyot);
}
";

/// Code for an agent of Flue before 2.
const OLD_SNIPPET: &str = "\
import { createAgent } from '@flue/runtime';
import { eyot } from '../sandboxes/eyot.ts';

export default createAgent(() => ({ sandbox: eyot, model: 'anthropic/claude-opus-4-6' }));
";

/// The result, and the steps that are left.
#[derive(Debug, Serialize)]
struct Done {
    /// The file, relative to the project.
    file: PathBuf,
    typecheck: Typecheck,
    /// The packages that the project does not have yet.
    missing: Vec<&'static str>,
    /// The command that installs them.
    #[serde(skip_serializing_if = "Option::is_none")]
    install: Option<String>,
    environment: Vec<Variable>,
    /// Code for an agent's module.
    snippet: &'static str,
}

/// A variable of the environment.
#[derive(Debug, Serialize)]
struct Variable {
    name: &'static str,
    purpose: &'static str,
}

pub fn run(args: &InitFlueArgs, output: Output) -> Result<u8, Failure> {
    let project = Project::around(&args.directory)?;
    let flue = project.installed("@flue/runtime");
    let folder = match &args.folder {
        Some(folder) => folder.clone(),
        None => source_folder(&project, flue.as_deref(), output)?,
    };
    let file = Path::new(&folder).join(FILE);
    let file = file.strip_prefix(".").map(Path::to_owned).unwrap_or(file);
    write(&project.root.join(&file), &file, args.force)?;
    let missing: Vec<_> =
        PACKAGES.into_iter().filter(|package| project.installed(package).is_none()).collect();
    let typecheck = match missing.as_slice() {
        [] => typecheck(&project, &file)?,
        [package, ..] => Typecheck::NotRun { reason: format!("{package} is not installed") },
    };
    let done = Done {
        file,
        typecheck,
        install: (!missing.is_empty()).then(|| install_line(&project, &missing)),
        missing,
        environment: VARIABLES.map(|(name, purpose)| Variable { name, purpose }).into(),
        snippet: if is_before_2(flue.as_deref()) { OLD_SNIPPET } else { SNIPPET },
    };
    if output.json {
        output.value(&done)?
    } else {
        output.text(&render(&done))?
    }
    Ok(if matches!(done.typecheck, Typecheck::Failed { .. }) { REFUSED } else { 0 })
}

/// Returns the command that installs these packages. The client is packed from a clone first: a link
/// to its folder would bring the clone's own copy of Flue with it.
fn install_line(project: &Project, missing: &[&str]) -> String {
    let sources: Vec<_> =
        missing.iter().map(|&name| if name == CLIENT { CLIENT_ARCHIVE } else { name }).collect();
    let install = project.install_line(&sources);
    if missing.contains(&CLIENT) {
        format!("npm ci --prefix {CLIENT_SOURCE} && npm pack {CLIENT_SOURCE} && {install}")
    } else {
        install
    }
}

/// Returns the folder where Flue looks for its sources: the first of these that exists. If there
/// are two, a person is asked.
fn source_folder(project: &Project, flue: Option<&str>, output: Output) -> Result<String, Failure> {
    let is_there = |folder: &str| project.root.join(folder).is_dir();
    let folder = match (is_there(".flue"), is_there("src")) {
        (true, true) => return chosen(output),
        (true, false) => ".flue",
        (false, true) if !knows_no_src(flue) => "src",
        (false, _) => ".",
    };
    Ok(folder.to_owned())
}

/// Tells whether this version of Flue ignores `src/`, which it knows since 0.9.
fn knows_no_src(flue: Option<&str>) -> bool {
    let mut numbers = flue.unwrap_or_default().split('.').map(str::parse::<u64>);
    matches!((numbers.next(), numbers.next()), (Some(Ok(0)), Some(Ok(0..=8))))
}

fn is_before_2(flue: Option<&str>) -> bool {
    let major = flue.and_then(|version| version.split('.').next()?.parse::<u64>().ok());
    major.is_some_and(|major| major < 2)
}

/// Asks a person which of the two folders to use.
fn chosen(output: Output) -> Result<String, Failure> {
    let unclear = || {
        Failure::usage("there are `.flue/` and `src/`, and it is not clear where this belongs").hint(
            "say it: --folder .flue or --folder src; Flue itself looks into .flue first, and only there",
        )
    };
    if output.json || !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return Err(unclear());
    }
    let mut stderr = io::stderr();
    write!(stderr, "There are .flue/ and src/; Flue looks into .flue/ alone then. Into which? [.flue] ")?;
    stderr.flush()?;
    let mut answer = String::new();
    io::stdin().read_line(&mut answer).map_err(|error| Failure::host("read the answer", error))?;
    match answer.trim().trim_end_matches('/') {
        "" | ".flue" => Ok(".flue".to_owned()),
        "src" => Ok("src".to_owned()),
        _ => Err(unclear()),
    }
}

/// Writes the file. An existing file with other content is an error unless `force` is set.
fn write(path: &Path, shown: &Path, force: bool) -> Result<(), Failure> {
    let failed = |error| Failure::host(format!("write `{}`", shown.display()), error);
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(failed)?;
    }
    if force {
        return fs::write(path, SANDBOX).map_err(failed);
    }
    match OpenOptions::new().write(true).create_new(true).open(path) {
        Ok(mut file) => file.write_all(SANDBOX.as_bytes()).map_err(failed),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            if fs::read(path).is_ok_and(|there| there == SANDBOX.as_bytes()) {
                return Ok(());
            }
            let message = format!("write `{}`: it is there, and is another", shown.display());
            let error = Error::new(ErrorKind::AlreadyExists, message);
            Err(Failure::with_code(error, FAILED).hint("--force replaces it"))
        }
        Err(error) => Err(failed(error)),
    }
}

/// Renders the result for a person.
fn render(done: &Done) -> String {
    let mut text = format!("{}\n", done.file.display());
    text += &match &done.typecheck {
        Typecheck::Passed => "  checked with the project's tsc: nothing is wrong\n".to_owned(),
        Typecheck::Failed { output } => format!("  the project's tsc refuses it:\n{output}\n"),
        Typecheck::NotRun { reason } => format!("  not checked: {reason}\n"),
    };
    if let Some(install) = &done.install {
        let clone = if done.missing.contains(&CLIENT) { " ($EYOT is your clone of Eyot)" } else { "" };
        text += &format!("\nMissing; this installs it{clone}:\n  {install}\n");
    }
    text += "\nIn the environment of the agents:\n";
    for Variable { name, purpose } in &done.environment {
        text += &format!("  {name:<13} {purpose}\n");
    }
    text + "\nIn an agent, such as agents/coder.ts beside sandboxes/:\n\n" + done.snippet
}
