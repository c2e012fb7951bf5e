//! The options of the provider.

use crate::e2b::Secret;

/// The address of the control plane.
pub(super) const SERVER_URL: &str = "https://api.modal.com";
/// The app that sandboxes are made in.
pub(super) const APP: &str = "eyot";
/// The image of sandboxes that name none.
pub(super) const IMAGE: &str = "debian:12";
/// The time that a sandbox has, in seconds, before Modal ends it.
pub(super) const TIMEOUT_S: u64 = 3600;
/// The longest time that Modal allows, in seconds.
pub(super) const MAX_TIMEOUT_S: u64 = 24 * 60 * 60;

/// The options of the provider.
#[derive(Debug, Clone)]
pub struct ModalOptions {
    /// The id and the secret of the vendor's token; `None`: every call is refused.
    pub token: Option<(Secret, Secret)>,
    /// The address of the control plane.
    pub server_url: String,
    /// The environment of the workspace; empty: its default one.
    pub environment: String,
    /// The app that sandboxes are made in. Those of other apps are foreign.
    pub app: String,
    /// The image of sandboxes that name none.
    pub image: String,
    /// The time that a sandbox has before Modal ends it, in seconds.
    pub timeout_s: u64,
    /// The folder in which adopted sandboxes are noted.
    pub notes: std::path::PathBuf,
}

impl ModalOptions {
    /// Returns the default options, with what the vendor's own variables say: `MODAL_TOKEN_ID`, `MODAL_TOKEN_SECRET`,
    /// `MODAL_SERVER_URL` and `MODAL_ENVIRONMENT`. Adopted sandboxes are noted in a folder `modal` of the state folder.
    pub fn from_environment(state: &std::path::Path) -> Self {
        let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let token = variable("MODAL_TOKEN_ID").zip(variable("MODAL_TOKEN_SECRET"));
        Self {
            token: token.map(|(id, secret)| (Secret::new(id), Secret::new(secret))),
            server_url: variable("MODAL_SERVER_URL").unwrap_or_else(|| SERVER_URL.to_owned()),
            environment: variable("MODAL_ENVIRONMENT").unwrap_or_default(),
            app: APP.to_owned(),
            image: IMAGE.to_owned(),
            timeout_s: TIMEOUT_S,
            notes: state.join("modal"),
        }
    }
}
