//! The facts about files in envd's terms, as `find` inside the sandbox tells them.

use eyot::{Command, ErrorKind, ExecOptions, Sandbox};
use serde_json::{Value, json};

use super::connect::{Code, RpcError};

/// The facts of one file, each ended by a NUL: kind, kind of a link's target, permission bits in two forms, size,
/// time of change, owner, group, path below the start, target of a link.
const FORMAT: &str = r"%y\0%Y\0%m\0%M\0%s\0%T@\0%u\0%g\0%P\0%l\0";
const FACTS: usize = 10;
/// The last second that a date can name: 9999-12-31T23:59:59Z.
const LATEST_S: f64 = 253_402_300_799.0;

/// Describes one file.
pub(super) async fn one(sandbox: &Sandbox, user: Option<&String>, path: &str) -> Result<Value, RpcError> {
    let found = find(sandbox, user, path, &["-maxdepth", "0"]).await?;
    found.into_iter().next().ok_or_else(|| missing(path))
}

/// Describes what is in a directory, down to a depth.
pub(super) async fn below(
    sandbox: &Sandbox,
    user: Option<&String>,
    path: &str,
    depth: u32,
) -> Result<Vec<Value>, RpcError> {
    if !sandbox.stat(path).await?.is_directory {
        return Err(RpcError::new(Code::InvalidArgument, format!("path is not a directory: {path}")));
    }
    find(sandbox, user, path, &["-mindepth", "1", "-maxdepth", &depth.to_string()]).await
}

fn missing(path: &str) -> RpcError {
    RpcError::new(Code::NotFound, format!("path not found: {path}"))
}

async fn find(
    sandbox: &Sandbox,
    user: Option<&String>,
    path: &str,
    depths: &[&str],
) -> Result<Vec<Value>, RpcError> {
    let follow = if depths.len() > 2 { "-H" } else { "-P" };
    let argv = ["find", follow, path, "-ignore_readdir_race"].into_iter();
    let argv = argv.chain(depths.iter().copied()).chain(["-printf", FORMAT]);
    let options = ExecOptions {
        user: user.cloned(),
        cwd: Some("/".to_owned()),
        max_output_bytes: Some(super::MAX_JSON_BYTES as u64),
        ..ExecOptions::default()
    };
    let told = sandbox.exec(Command::argv(argv), options).await?;
    if told.stdout_truncated() {
        return Err(RpcError::new(Code::ResourceExhausted, format!("there are too many files: {path}")));
    }
    if !told.success() {
        // It failed at the path itself; what is below it is not there or can't be read.
        return Err(match sandbox.stat(path).await {
            Err(error) if error.kind() == ErrorKind::NotFound => missing(path),
            _ => RpcError::new(Code::Internal, format!("error reading {path}: {}", told.stderr_text())),
        });
    }
    let text = String::from_utf8_lossy(&told.stdout);
    let facts: Vec<&str> = text.split('\0').collect();
    facts.chunks_exact(FACTS).map(|facts| entry(path, facts)).collect()
}

fn entry(root: &str, facts: &[&str]) -> Result<Value, RpcError> {
    let [kind, target_kind, mode, permissions, size, time, owner, group, below, link] = facts else {
        return Err(RpcError::new(Code::Internal, "`find` told too little"));
    };
    let path = match *below {
        "" => root.to_owned(),
        below => format!("{}/{below}", root.trim_end_matches('/')),
    };
    let name = path.rsplit('/').next().unwrap_or_default();
    let kind = match if *kind == "l" { *target_kind } else { *kind } {
        "f" => "FILE_TYPE_FILE",
        "d" => "FILE_TYPE_DIRECTORY",
        // A link that leads nowhere.
        "N" | "L" => "FILE_TYPE_SYMLINK",
        _ => "FILE_TYPE_UNSPECIFIED",
    };
    // Whoever owns a file chooses its time. One beyond the year 9999 can't be written.
    let seconds = time.parse::<f64>().ok().filter(|seconds| !seconds.is_nan()).unwrap_or_default();
    let seconds = seconds.clamp(0.0, LATEST_S);
    let time = std::time::UNIX_EPOCH + std::time::Duration::from_secs_f64(seconds);
    let mut entry = json!({
        "name": name,
        "type": kind,
        "path": path,
        "size": size,
        "mode": u32::from_str_radix(mode, 8).unwrap_or_default(),
        "permissions": permissions,
        "owner": owner,
        "group": group,
        "modifiedTime": humantime::format_rfc3339_millis(time).to_string(),
    });
    if !link.is_empty() {
        entry["symlinkTarget"] = json!(link);
    }
    Ok(entry)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_that_no_date_has_is_cut() {
        for (time, year) in [("1e300", "9999"), ("-5", "1970"), ("NaN", "1970"), ("soon", "1970")] {
            let facts = ["f", "f", "644", "-rw-r--r--", "4", time, "user", "user", "a", ""];
            let entry = entry("/root/", &facts).unwrap();
            assert!(entry["modifiedTime"].as_str().unwrap().starts_with(year), "{time}: {entry}");
        }
    }

    #[test]
    fn a_link_is_told_as_what_it_leads_to_with_its_target() {
        let facts = ["l", "d", "777", "lrwxrwxrwx", "4", "1.5", "user", "user", "a/b", "/srv"];
        let entry = entry("/root/", &facts).unwrap();
        assert_eq!((&entry["type"], &entry["path"]), (&json!("FILE_TYPE_DIRECTORY"), &json!("/root/a/b")));
        assert_eq!((&entry["name"], &entry["symlinkTarget"]), (&json!("b"), &json!("/srv")));
        assert_eq!(entry["modifiedTime"], json!("1970-01-01T00:00:01.500Z"));
    }
}
