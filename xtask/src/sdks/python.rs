//! The Python client: its tests, LangChain's and Inspect's own, its types, and the package as it
//! would be published.

use std::path::Path;
use std::process::Command;

use super::{Ground, step, virtual_environment};
use crate::process::root;

/// Installs what its tests need.
pub(super) fn prepare(folder: &Path) -> Result<(), String> {
    virtual_environment(&folder.join("python"), &root().join("sdks/python/tests/requirements.txt"))
}

/// Tests it.
pub(super) fn run(ground: &Ground) -> Result<(), String> {
    let client = root().join("sdks/python");
    let folder = ground.folder.join("python");
    let program = |name: &str| -> Command {
        let mut command = ground.program(folder.join("bin").join(name));
        command.current_dir(&client).env("PYTHONDONTWRITEBYTECODE", "1");
        command
    };
    // The wheel, not the sources: a file that it lacks is missed here.
    let mut install = program("pip");
    install.args(["install", "--quiet", "--disable-pip-version-check", "--no-deps", "--no-build-isolation"]);
    step("pip install of the client", install.args(["--force-reinstall", "."]))?;
    step("ruff", program("ruff").args(["check", "--no-cache", "."]))?;
    step("ruff format", program("ruff").args(["format", "--no-cache", "--check", "."]))?;
    step("mypy", program("mypy").arg("--cache-dir").arg(ground.folder.join("mypy")))?;
    step("pytest", program("pytest").args(["--quiet", "-rsxX"]))
}
