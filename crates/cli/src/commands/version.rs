//! `eyot version`: prints the version of this program.

use serde_json::json;

use crate::errors::Failure;
use crate::output::Output;

const VERSION: &str = env!("CARGO_PKG_VERSION");

pub fn run(output: Output) -> Result<u8, Failure> {
    if output.json {
        output.value(&json!({ "version": VERSION }))?;
    } else {
        output.text(&format!("eyot {VERSION}\n"))?;
    }
    Ok(0)
}
