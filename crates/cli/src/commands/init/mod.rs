//! `eyot init`: connects a project of an agent framework with Eyot.

mod flue;
mod project;
mod typecheck;

use crate::args::{InitArgs, InitFramework};
use crate::errors::Failure;
use crate::output::Output;

pub fn run(args: &InitArgs, output: Output) -> Result<u8, Failure> {
    match &args.framework {
        InitFramework::Flue(args) => flue::run(args, output),
    }
}
