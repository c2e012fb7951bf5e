//! Names of fields in errors of the library, as the flags with which they were given.

use eyot::{Error, ErrorKind};

/// The fields of specs and requests, and the flags that set them.
const FLAGS: [(&str, &[&str]); 32] = [
    ("container.extra_hosts", &["--add-host"]),
    ("container.network", &["--engine-network"]),
    ("container.ports", &["--publish", "-p"]),
    ("container.pull", &["--pull"]),
    ("container.runtime", &["--runtime"]),
    ("cwd", &["--workdir", "-w"]),
    ("egress.allow", &["--allow"]),
    ("egress.deny", &["--deny"]),
    ("env", &["--env", "-e", "--env-file"]),
    ("id", &["--id"]),
    ("image", &["--image"]),
    ("labels", &["--label", "-l"]),
    ("lifecycle.idle_timeout_ms", &["--idle-timeout"]),
    ("lifecycle.on_idle", &["--on-idle"]),
    ("lifecycle.ttl_ms", &["--ttl"]),
    ("limits.cpus", &["--cpus"]),
    ("limits.disk_mib", &["--disk", "--disk-mib"]),
    ("limits.max_file_bytes", &["--max-file-bytes"]),
    ("limits.max_output_bytes", &["--max-output-bytes"]),
    ("limits.memory_mib", &["--memory", "-m", "--memory-mib"]),
    ("limits.pids", &["--pids", "--pids-limit"]),
    ("limits.timeout_ms", &["--timeout", "--timeout-ms"]),
    ("manifest.directories", &["--dir"]),
    ("manifest.files", &["--file"]),
    ("metadata", &["--metadata"]),
    ("mounts.source", &["--mount", "--volume", "-v"]),
    ("mounts.target", &["--mount", "--volume", "-v"]),
    ("network", &["--net", "--network"]),
    ("require", &["--require"]),
    ("user", &["--user", "-u"]),
    ("workdir", &["--workdir", "-w"]),
    ("workspace.id", &["--workspace"]),
];

/// The operations whose names in the library say little to a user of the command line. A name that begins another one comes behind it.
const OPERATIONS: [(&str, &str); 6] = [
    ("set_lifecycle", "a change of deadlines"),
    ("set_egress_rules", "a change of the network's rules"),
    ("egress_rules", "rules of the network"),
    ("egress_decisions", "rules of the network"),
    ("live_processes", "a list of all processes"),
    ("published_ports", "published ports"),
];

/// Returns the sentence of an error with the flags that were written in place of the fields that they set. `words` are
/// the arguments. A field that comes from a file keeps its name.
pub fn in_flags(error: &Error, words: &[String]) -> String {
    let sentence = error.to_string();
    match error.kind() {
        // `Error::invalid` begins with the field.
        ErrorKind::Invalid => {
            let beginnings = [error.reason().to_owned(), sentence.clone()];
            let named = |field: &str| {
                let quoted = format!("`{field}`");
                beginnings.iter().any(|beginning| beginning.starts_with(&quoted)).then_some(quoted)
            };
            replaced(sentence, words, named)
        }
        ErrorKind::Unsupported => {
            let sentence = replaced(sentence, words, |field| Some(format!("\"{field}\"")));
            OPERATIONS.iter().fold(sentence, |sentence, (method, plain)| {
                sentence.replacen(
                    &format!(" does not support {method}"),
                    &format!(" does not support {plain}"),
                    1,
                )
            })
        }
        _ => sentence,
    }
}

fn replaced(sentence: String, words: &[String], quoted: impl Fn(&str) -> Option<String>) -> String {
    let written = FLAGS.iter().filter_map(|(field, flags)| {
        let flag = flags.iter().find(|flag| is_written(flag, words))?;
        Some((quoted(field)?, in_words(field, flag)))
    });
    written.fold(sentence, |sentence, (quoted, words)| sentence.replacen(&quoted, &words, 1))
}

/// Names the flag, and the part of its value where that has several.
fn in_words(field: &str, flag: &str) -> String {
    match field.strip_prefix("mounts.") {
        Some(part) => format!("the {part} of {flag}"),
        None => flag.to_owned(),
    }
}

/// Tells whether an option is among the arguments, as `--ttl 1h`, `--ttl=1h` or `-lteam=web`.
fn is_written(flag: &str, words: &[String]) -> bool {
    let is_short = !flag.starts_with("--");
    words.iter().take_while(|word| *word != "--").any(|word| match word.strip_prefix(flag) {
        Some(rest) => rest.is_empty() || is_short || rest.starts_with('='),
        None => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn a_field_is_called_as_it_was_written() {
        let error = Error::invalid("labels", "has more than 4096 bytes in `a`").context("create sandbox");
        for (line, sentence) in [
            ("create --label a=b", "create sandbox: --label has more than 4096 bytes in `a`"),
            ("create -la=b", "create sandbox: -l has more than 4096 bytes in `a`"),
            ("create --label=a=b", "create sandbox: --label has more than 4096 bytes in `a`"),
            // From a file.
            ("create --labels a=b", "create sandbox: `labels` has more than 4096 bytes in `a`"),
            ("run -- --label a=b", "create sandbox: `labels` has more than 4096 bytes in `a`"),
        ] {
            assert_eq!(in_flags(&error, &words(line)), sentence, "{line}");
        }
    }

    #[test]
    fn a_field_in_front_of_the_reason_and_a_method_of_the_library_are_called_as_users_know_them() {
        let error = Error::invalid("path", "leaves the workspace").context("`manifest.files`");
        assert_eq!(in_flags(&error, &words("create --file ../x=f")), "--file: `path` leaves the workspace");
        let error: Error = eyot::SandboxOperationUnsupported::new("set_lifecycle", "docker", &[]).into();
        assert_eq!(
            in_flags(&error, &words("update a --ttl 1h")),
            "docker does not support a change of deadlines"
        );
    }

    #[test]
    fn a_sandbox_that_is_called_like_a_field_keeps_its_name() {
        let error = Error::new(ErrorKind::NotFound, "there is no sandbox `user`");
        assert_eq!(in_flags(&error, &words("exec user -u root")), "there is no sandbox `user`");
        let error = Error::invalid("signal", "is none for `user`");
        assert_eq!(in_flags(&error, &words("kill user -u root")), "`signal` is none for `user`");
    }

    #[test]
    fn what_a_provider_lacks_is_called_as_it_was_written() {
        let lacked =
            eyot::SandboxOperationUnsupported::new("create", "e2b", &["lifecycle.ttl_ms", "limits.pids"]);
        let sentence = in_flags(&lacked.into(), &words("create --ttl 1h"));
        assert!(sentence.contains("--ttl") && sentence.contains("\"limits.pids\""), "{sentence}");
    }
}
