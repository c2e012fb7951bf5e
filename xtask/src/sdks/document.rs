//! A linter reads the API's document, generated clients do a job with it, and schemathesis asks a
//! server everything that it has, rightly and wrongly: no answer is a 500 or has a status that the
//! document lacks.

mod generated;
mod server;

use std::path::{Path, PathBuf};

use super::{Ground, step, virtual_environment};
use crate::process::root;
use server::Server;

/// The configurations of schemathesis. The second ends the sandbox and the pool that the first has.
const CONFIGURATIONS: [&str; 2] = ["there.toml", "anything.toml"];

/// Installs schemathesis, the linter and the generators.
pub(super) fn prepare(folder: &Path) -> Result<(), String> {
    generated::prepare()?;
    virtual_environment(&folder.join("document"), &configurations().join("requirements.txt"))
}

fn configurations() -> PathBuf {
    root().join("crates/server/tests/document")
}

/// Returns the committed document.
fn document() -> PathBuf {
    root().join("crates/server/openapi.json")
}

/// The number of requests for each operation and kind, in the soak.
const CASES_OF_SOAK: &str = "60";

/// Lints the document, uses it as a generated client does, and runs schemathesis.
pub(super) fn run(ground: &Ground) -> Result<(), String> {
    let mut server = Server::start(ground)?;
    generated::run(ground, &server)?;
    ask(ground, &mut server, &[])
}

/// Asks several times as much as [`run`].
pub(super) fn run_at_length(ground: &Ground) -> Result<(), String> {
    ask(ground, &mut Server::start(ground)?, &["--max-examples", CASES_OF_SOAK])
}

fn read(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|error| format!("read {}: {error}", path.display()))
}

/// Checks that the document has every operation that a configuration names: one that was renamed
/// would be taken like all others, without a word.
fn check_operations(configuration: &str, document: &str) -> Result<(), String> {
    let is_missing = |operation: &&str| !document.contains(&format!("\"operationId\": \"{operation}\""));
    match named_operations(configuration).into_iter().find(is_missing) {
        Some(missing) => Err(format!("schemathesis: the document has no operation `{missing}`")),
        None => Ok(()),
    }
}

/// Returns the operations in a configuration's lists `include-operation-id`.
fn named_operations(configuration: &str) -> Vec<&str> {
    let lists = configuration.split("include-operation-id = [").skip(1);
    let lists = lists.filter_map(|rest| rest.split(']').next());
    lists.flat_map(|list| list.split('"').skip(1).step_by(2)).collect()
}

fn ask(ground: &Ground, server: &mut Server, arguments: &[&str]) -> Result<(), String> {
    let configurations = configurations();
    let folder = ground.folder.join("document");
    for name in CONFIGURATIONS {
        check_operations(&read(&configurations.join(name))?, &read(&document())?)?;
        let mut schemathesis = ground.program(folder.join("bin/schemathesis"));
        schemathesis.arg("--config-file").arg(configurations.join(name)).arg("run");
        schemathesis.arg(document()).args(arguments);
        // Where it finds the program for tar streams; what it notes for the next time goes
        // elsewhere.
        schemathesis.env("PYTHONPATH", &configurations).env("PYTHONDONTWRITEBYTECODE", "1");
        schemathesis.current_dir(&server.folder);
        schemathesis.env("EYOT_SERVER", &server.url).env("EYOT_API_KEY", &server.key);
        step(&format!("schemathesis with {name}"), &mut schemathesis)?;
    }
    server.still_runs()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_are_found_in_lists_of_one_line_and_of_several() {
        let configuration = "include-operation-id = [\"a\", \"b\"]\nx = [\"no\"]\n\
                             include-operation-id = [\n    \"c\",\n]\n";
        assert_eq!(named_operations(configuration), ["a", "b", "c"]);
        assert!(named_operations("").is_empty());
    }

    #[test]
    fn an_operation_that_the_document_lacks_is_refused() {
        let refused =
            check_operations("include-operation-id = [\"there\", \"gone\"]", "\"operationId\": \"there\"");
        assert!(refused.unwrap_err().contains("`gone`"));
    }
}
