//! The shell in a sandbox that runs the driver's scripts, and the script that tells the lives of a sandbox apart.

/// Sets `life` to what is another text after every wake.
pub(super) const LIFE: &str = include_str!("life.sh");

/// Returns the command of a script.
pub(crate) fn bash(script: &str, arguments: impl IntoIterator<Item = String>) -> Vec<String> {
    let bash = ["/bin/bash", "--norc", "--noprofile", "-p", "-c", script, "eyot"].map(str::to_owned);
    bash.into_iter().chain(arguments).collect()
}
