//! The document as other people's programs read it: a linter, and two generators of clients, each of whose clients does a
//! first job on a server.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::super::{Ground, step, typescript};
use super::server::Server;
use super::{configurations, document};

/// The name of the Python package that is generated.
const PACKAGE: &str = "eyot_generated";

/// Installs the linter and what TypeScript needs. The generator for Python is among the packages
/// that schemathesis comes with.
pub(super) fn prepare() -> Result<(), String> {
    typescript::install(&programs())
}

/// Returns the folder of the programs that use the generated clients.
fn programs() -> PathBuf {
    configurations().join("generated")
}

/// Lints the document and those of Flue's routes, generates both clients, compiles them, and has each do a job.
pub(super) fn run(ground: &Ground, server: &Server) -> Result<(), String> {
    ["lint", "generate", "compile", "job"]
        .iter()
        .try_for_each(|script| run_script(ground, server, script))?;
    let folder = server.folder.join("generated");
    fs::create_dir(&folder).map_err(|error| format!("make {}: {error}", folder.display()))?;
    let bin = ground.folder.join("document/bin");
    generate_python(ground, &bin, &folder)?;
    let mut compile = ground.program(bin.join("python"));
    step("compileall", compile.args(["-m", "compileall", "-q"]).arg(&folder))?;
    let mut job = ground.program(bin.join("python"));
    job.arg(programs().join("job.py")).env("PYTHONPATH", &folder);
    step("the job in Python", called(&mut job, server))
}

fn run_script(ground: &Ground, server: &Server, script: &str) -> Result<(), String> {
    let mut npm = ground.program("npm");
    npm.args(["run", "--silent", script]).current_dir(programs());
    npm.env("REDOCLY_TELEMETRY", "off").env("REDOCLY_SUPPRESS_UPDATE_NOTICE", "true");
    step(&format!("npm run {script} (the document)"), called(&mut npm, server))
}

fn generate_python(ground: &Ground, bin: &Path, folder: &Path) -> Result<(), String> {
    let mut generate = ground.program(bin.join("openapi-python-client"));
    generate.arg("generate").arg("--path").arg(document()).arg("--output-path").arg(folder.join(PACKAGE));
    generate.args(["--meta", "none", "--fail-on-warning", "--config"]).arg(programs().join("python.yaml"));
    // It formats what it writes, with a program that it looks for.
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::iter::once(bin.to_owned()).chain(std::env::split_paths(&path));
    generate.env("PATH", std::env::join_paths(folders).map_err(|error| error.to_string())?);
    step("openapi-python-client", &mut generate)
}

/// Tells a program where the server is.
fn called<'a>(command: &'a mut Command, server: &Server) -> &'a mut Command {
    command.env("EYOT_SERVER", &server.url).env("EYOT_API_KEY", &server.key);
    command.env("EYOT_AUTHORIZATION", format!("Bearer {}", server.key))
}
