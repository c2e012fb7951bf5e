//! The bridge's way of putting arguments into one line of a shell, and paths into the workspace.

/// Quotes an argument as the bridge does: plain if it is, else in `$'…'`.
pub fn quoted(argument: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"@%+=:,./-".contains(&byte);
    if !argument.is_empty() && argument.bytes().all(is_plain) {
        return argument.to_owned();
    }
    let mut quoted = "$'".to_owned();
    for char in argument.chars() {
        match char {
            '\\' => quoted.push_str("\\\\"),
            '\'' => quoted.push_str("\\'"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            other => quoted.push(other),
        }
    }
    quoted + "'"
}

/// Resolves a path; `None`: it leads out of the workspace.
pub fn in_workspace(path: &str) -> Option<String> {
    let whole = if path.starts_with('/') { path.to_owned() } else { format!("/workspace/{path}") };
    let mut parts = Vec::new();
    for part in whole.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            name => parts.push(name),
        }
    }
    let resolved = format!("/{}", parts.join("/"));
    (resolved == "/workspace" || resolved.starts_with("/workspace/")).then_some(resolved)
}
