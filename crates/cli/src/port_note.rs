//! The note about a port where no server runs yet.

use eyot::Sandbox;

use crate::output::Output;

/// Notes that the port has no server yet. One that starts later is shown, too.
pub async fn note_if_nothing_listens(sandbox: &Sandbox, name: &str, port: u16, output: Output) {
    if sandbox.dial(port).await.is_err() {
        output.note(&format!(
            "nothing listens on port {port} of `{name}` yet; start a server there, such as: \
             eyot start {name} -- python3 -m http.server {port}"
        ));
    }
}
