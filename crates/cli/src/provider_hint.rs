//! The hint at another provider where one in memory lacks what was asked for.

use eyot::ErrorKind;

use crate::context::Context;
use crate::errors::{COMMAND_NOT_FOUND, Failure};
use crate::provider::names_where;

/// Names the providers that have what a failure misses, if those in memory are used here.
pub fn with_provider_hint(failure: Failure, context: &Context) -> Failure {
    let row = context.provider_settings.row;
    if failure.has_hint() || context.names_a_server() || !row.lives_with_its_process {
        return failure;
    }
    // Another provider is at hand if it needs nothing but this machine.
    let others = names_where(|row| !row.lives_with_its_process && !row.is_elsewhere);
    match &failure {
        Failure::Error { exit_code: COMMAND_NOT_FOUND, .. } => failure.hint(format!(
            "there are the programs that `ls /usr/bin` lists; others need --provider {others}"
        )),
        Failure::Error { error, .. } if error.kind() == ErrorKind::Unsupported => {
            // Others lack some of it, too.
            failure.hint("that needs another provider, such as --provider native")
        }
        _ => failure,
    }
}
