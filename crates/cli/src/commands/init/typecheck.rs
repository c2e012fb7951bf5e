//! Checks one file of a project with the project's own TypeScript compiler and options. Errors in
//! other files are not reported.

use std::io::Write;
use std::path::Path;
use std::process::Command;

use serde::Serialize;
use serde_json::{Value, json};

use super::project::Project;
use crate::errors::Failure;

/// The result of the check.
#[derive(Debug, Serialize)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum Typecheck {
    /// The compiler accepts the file.
    Passed,
    /// The compiler rejects the file.
    Failed {
        /// The compiler's output.
        output: String,
    },
    /// The compiler could not be run.
    NotRun {
        /// The reason.
        reason: String,
    },
}

/// Checks a file, named relative to the project.
pub fn typecheck(project: &Project, file: &Path) -> Result<Typecheck, Failure> {
    let Some(compiler) = project.package_file(".bin/tsc") else {
        return Ok(Typecheck::NotRun {
            reason: "the project has no tsc; it is in the package typescript".to_owned(),
        });
    };
    // Beside the project's own, which it extends, so that both mean the same by the same paths.
    let failed = |error| Failure::host("write a tsconfig for the check", error);
    let named = tempfile::Builder::new().prefix("tsconfig.eyot-").suffix(".json").tempfile_in(&project.root);
    let mut config = named.map_err(failed)?;
    config.write_all(configuration(project, file).to_string().as_bytes()).map_err(failed)?;
    let mut command = Command::new(&compiler);
    command.arg("--pretty").arg("false").arg("--project").arg(config.path()).current_dir(&project.root);
    let ran = command.output();
    let ran = ran.map_err(|error| Failure::host("run the project's tsc", error))?;
    if ran.status.success() {
        return Ok(Typecheck::Passed);
    }
    let output = [ran.stdout, ran.stderr].concat();
    Ok(Typecheck::Failed { output: String::from_utf8_lossy(&output).trim_end().to_owned() })
}

fn configuration(project: &Project, file: &Path) -> Value {
    let mut config = json!({ "files": [file], "include": [] });
    let mut options = json!({ "noEmit": true, "composite": false, "incremental": false, "rootDir": "." });
    if project.root.join("tsconfig.json").is_file() {
        config["extends"] = json!("./tsconfig.json");
    } else {
        for (name, value) in [("module", "NodeNext"), ("moduleResolution", "NodeNext"), ("target", "ES2022")]
        {
            options[name] = json!(value);
        }
        options["strict"] = json!(true);
        options["skipLibCheck"] = json!(true);
    }
    config["compilerOptions"] = options;
    config
}
