//! The Python client: its tests, natively and in memory, LangChain's and Inspect's own, its types, and the package as it
//! would be published.

use std::path::Path;
use std::process::Command;

use super::{Ground, step, virtual_environment};
use crate::process::root;

/// The tests of what a provider does. They also run over sandboxes in memory, where unsupported features show as skipped.
const IN_MEMORY: [&str; 16] = [
    "tests/test_async.py",
    "tests/test_commands.py",
    "tests/test_events.py",
    "tests/test_files.py",
    "tests/test_folders.py",
    "tests/test_foreign_names.py",
    "tests/test_images.py",
    "tests/test_inspect.py",
    "tests/test_inspect_tasks.py",
    "tests/test_kept.py",
    "tests/test_network.py",
    "tests/test_pools.py",
    "tests/test_processes.py",
    "tests/test_sandboxes.py",
    "tests/test_streams.py",
    "tests/test_tools.py",
];

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
    step("pytest", program("pytest").args(["--quiet", "-rsxX"]))?;
    let mut in_memory = program("pytest");
    in_memory.env("EYOT_PROVIDER", "memory").args(["--quiet", "-rsxX"]).args(IN_MEMORY);
    step("pytest over sandboxes in memory", &mut in_memory)
}
