//! `eyot version`: prints the version of this program.

use serde_json::json;

use crate::build_info::{BUILD, VERSION, VERSION_IN_WORDS};
use crate::errors::Failure;
use crate::output::Output;

pub fn run(output: Output) -> Result<u8, Failure> {
    if output.json {
        let build = Some(BUILD).filter(|build| !build.is_empty());
        output.value(&json!({ "version": VERSION, "build": build }))?;
    } else {
        output.text(&format!("eyot {}\n", *VERSION_IN_WORDS))?;
    }
    Ok(0)
}
