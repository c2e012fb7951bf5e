//! The AppArmor profile that allows one program to make user namespaces on hosts that require a
//! profile for it (Ubuntu 23.10 and later).

use std::path::Path;

/// Writes the profile for the program at this path. The profile confines nothing: it gives the
/// program, and what it runs (the launcher, from memory), a name that `userns` is allowed to.
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

/// Quotes a path for AppArmor, and escapes its wildcards.
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

/// Returns the command that installs the profile. Names the program unless it is `eyot` itself.
pub(super) fn install_command(program: &str) -> String {
    let is_eyot = Path::new(program).file_name().is_some_and(|name| name == "eyot");
    let eyot = if is_eyot { shell_word(program) } else { "eyot".to_owned() };
    let which = if is_eyot { String::new() } else { format!("={}", shell_word(program)) };
    format!(
        "{eyot} doctor --apparmor-profile{which} | sudo tee /etc/apparmor.d/eyot >/dev/null && \
         sudo apparmor_parser -r /etc/apparmor.d/eyot"
    )
}

/// Quotes a word for a shell.
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
