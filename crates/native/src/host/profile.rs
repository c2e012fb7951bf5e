//! The AppArmor profile that lets one program make user namespaces where that takes a profile (Ubuntu 23.10 and later).

use std::path::Path;

/// The profile for a program at this path. It confines nothing: it gives the program a name that `userns` is allowed
/// to, and so do what it runs (the launcher, from memory).
pub fn apparmor_profile(program: &Path) -> String {
    let path = quoted(&program.to_string_lossy());
    format!(
        "# Lets {path} make the user namespaces that sandboxes live in.\n\
         abi <abi/4.0>,\n\
         include <tunables/global>\n\
         \n\
         profile eyot {path} flags=(unconfined) {{\n  \
           userns,\n\
         \n  \
           include if exists <local/eyot>\n\
         }}\n"
    )
}

/// A path as AppArmor reads it: in quotes, with its wildcards taken literally.
fn quoted(path: &str) -> String {
    let mut text = String::from("\"");
    for letter in path.chars() {
        if "\\\"*?[]{}^".contains(letter) {
            text.push('\\');
        }
        text.push(letter);
    }
    text.push('"');
    text
}

/// The command that installs it. A program that is not `eyot` itself is named.
pub(super) fn install_command(program: &str) -> String {
    let is_eyot = Path::new(program).file_name().is_some_and(|name| name == "eyot");
    let eyot = if is_eyot { shell_word(program) } else { "eyot".to_owned() };
    let which = if is_eyot { String::new() } else { format!("={}", shell_word(program)) };
    format!(
        "{eyot} doctor --apparmor-profile{which} | sudo tee /etc/apparmor.d/eyot >/dev/null && \
         sudo apparmor_parser -r /etc/apparmor.d/eyot"
    )
}

/// A word as a shell reads it.
pub(super) fn shell_word(text: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "/._-+=:@%".contains(letter);
    if !text.is_empty() && text.chars().all(plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_with_wildcards_is_meant_literally() {
        let profile = apparmor_profile(Path::new("/opt/a*b {c}/eyot"));
        assert!(
            profile.contains("profile eyot \"/opt/a\\*b \\{c\\}/eyot\" flags=(unconfined) {\n  userns,\n")
        );
    }

    #[test]
    fn the_command_runs_eyot_for_itself_and_for_others() {
        assert!(
            install_command("/usr/bin/eyot")
                .starts_with("/usr/bin/eyot doctor --apparmor-profile | sudo tee")
        );
        assert!(install_command("/opt/my app").starts_with("eyot doctor --apparmor-profile='/opt/my app' |"));
    }
}
