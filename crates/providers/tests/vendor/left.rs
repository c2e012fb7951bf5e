//! The sandboxes that cases leave below a stand-in.

use eyot::{ErrorKind, SandboxProvider};

/// Removes the sandboxes that are left below a stand-in. One whose removal is under way is left to it.
pub async fn remove_left(native: &dyn SandboxProvider) {
    for left in native.list().await.expect("a list") {
        match native.remove(left.id.as_str()).await {
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Destroyed) => {}
            removed => removed.expect("a sandbox that can be removed"),
        }
    }
}
