//! The page: what is built of it is what is there, and it does in a browser what it is for.
//! Pictures of each view are in `target/web-screenshots` afterwards.

use std::path::Path;

use super::{Ground, step, typescript};
use crate::process::target_directory;
use crate::web;

/// Installs what builds and tests it.
pub(super) fn prepare(_folder: &Path) -> Result<(), String> {
    typescript::install(&web::folder())
}

/// Checks and tests it.
pub(super) fn run(ground: &Ground) -> Result<(), String> {
    web::check()?;
    let pictures = target_directory()?.join("web-screenshots");
    let mut npm = ground.program("npm");
    npm.args(["test", "--silent"]).current_dir(web::folder()).env("EYOT_SCREENSHOTS", pictures);
    step("npm test (the page in chromium)", &mut npm)
}
