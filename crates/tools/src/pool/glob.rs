//! `glob`: the files whose path matches a pattern.

use eyot::{Error, GlobOptions, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{MAX_TEXT_BYTES, ToolContent, ToolContext, ToolDef, ToolOutput};

/// The most files in one answer.
const MAX_FILES: u32 = 1000;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    #[serde(default)]
    #[schemars(extend("default" = "default"))]
    sandbox: Option<String>,
    /// Such as `*.md`, `src/**/*.{rs,toml}` or `/etc/*.conf`
    #[schemars(length(min = 1))]
    pattern: String,
    /// Where a relative pattern begins
    #[serde(default)]
    #[schemars(extend("default" = "/home/user"))]
    cwd: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct Answer {
    /// Sorted, written as the pattern is: relative to cwd, or absolute
    files: Vec<String>,
}

pub(super) fn tool() -> Result<ToolDef> {
    let description = format!(
        "List files matching a glob pattern. `*` and `?` stay within a name, `**` crosses directories; names that begin \
         with a dot are to be spelt out. At most {MAX_FILES} files."
    );
    Ok(ToolDef::typed("glob", &description, run)?.returns::<Answer>().read_only().with_plain_numbers())
}

async fn run(context: ToolContext, args: Args) -> Result<ToolOutput> {
    let sandbox = context.sandbox(args.sandbox.as_deref()).await?;
    let (written, pattern) = split(&args.pattern);
    if pattern.is_empty() {
        let message = format!("`{}` ends with `/`, and only files are found", args.pattern);
        return Err(Error::invalid("pattern", message).with_hint("`dir/*` finds the files in a directory"));
    }
    let cwd = sandbox.resolve_path(args.cwd.as_deref().filter(|cwd| !cwd.is_empty()).unwrap_or("."))?;
    let root = if written.is_empty() { cwd } else { cwd.resolve(written)? };
    let prefix = root.as_str().trim_end_matches('/').to_owned();
    let options =
        GlobOptions { pattern: pattern.to_owned(), root: root.into(), hidden: false, max_results: MAX_FILES };
    let found = sandbox.glob(&options).await?;
    let relative = |path: &String| {
        let below = path.strip_prefix(&prefix).map_or(path.as_str(), |below| below.trim_start_matches('/'));
        format!("{written}{below}")
    };
    let (files, shortened) = fitting(found.paths.iter().map(relative).collect());
    let shown = files.len();
    let mut output = ToolOutput::json(&Answer { files });
    if found.truncated || shortened {
        let note =
            format!("[eyot: these are the first {shown} files; there are more: narrow the pattern or `cwd`]");
        output.content.push(ToolContent::Text(note));
    }
    Ok(output)
}

/// The directories that the pattern spells out, as it writes them, and what is to be searched for in them.
fn split(pattern: &str) -> (&str, &str) {
    let special = pattern.find(['*', '?', '[', '{', '\\']).unwrap_or(pattern.len());
    let spelt_out = pattern[..special].rfind('/').map_or(0, |slash| slash + 1);
    pattern.split_at(spelt_out)
}

/// The first of them, as many as an answer's text may have.
fn fitting(mut files: Vec<String>) -> (Vec<String>, bool) {
    let mut bytes = 0;
    let fits = |file: &&String| {
        bytes += file.len() + 3;
        bytes <= MAX_TEXT_BYTES
    };
    let fitting = files.iter().take_while(fits).count();
    let shortened = fitting < files.len();
    files.truncate(fitting);
    (files, shortened)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_s_directories_that_are_spelt_out_are_where_it_is_searched() {
        for (pattern, parts) in [
            ("*.md", ("", "*.md")),
            ("a.txt", ("", "a.txt")),
            ("src/**/*.rs", ("src/", "**/*.rs")),
            ("/etc/*.conf", ("/etc/", "*.conf")),
            ("/*", ("/", "*")),
            ("../{a,b}/c", ("../", "{a,b}/c")),
            ("a/b\\*/c", ("a/", "b\\*/c")),
        ] {
            assert_eq!(split(pattern), parts);
        }
    }
}
