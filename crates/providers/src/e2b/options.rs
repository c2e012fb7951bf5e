//! The options of the provider.

use super::secret::Secret;

/// The vendor's domain.
pub(super) const DOMAIN: &str = "e2b.app";
/// The template of sandboxes that name none.
pub(super) const TEMPLATE: &str = "base";
/// The owner in the metadata of sandboxes.
pub(super) const OWNER: &str = "eyot";
/// The time that a sandbox has, in seconds, before E2B kills it: the most that every plan allows.
pub(super) const TIMEOUT_S: u64 = 3600;
/// The longest time that E2B allows, in seconds.
pub(super) const MAX_TIMEOUT_S: u64 = 24 * 60 * 60;

/// The options of the provider.
#[derive(Debug, Clone)]
pub struct E2bOptions {
    /// The key of the vendor's API; `None`: every call is refused.
    pub api_key: Option<Secret>,
    /// The vendor's domain.
    pub domain: String,
    /// The address of the REST calls; `None`: `https://api.DOMAIN`.
    pub api_url: Option<String>,
    /// The address of every sandbox's envd; `None`: a host of each sandbox's own.
    pub sandbox_url: Option<String>,
    /// The template of sandboxes that name none.
    pub template: String,
    /// The time that a sandbox has before E2B kills it, in seconds.
    pub timeout_s: u64,
    /// The owner in the metadata of sandboxes. Those of other owners are not seen.
    pub owner: String,
    /// The folder in which adopted sandboxes are noted.
    pub notes: std::path::PathBuf,
}

impl E2bOptions {
    /// Returns the default options, with what the vendor's own variables say: `E2B_API_KEY`, `E2B_DOMAIN`, `E2B_API_URL`
    /// and `E2B_SANDBOX_URL`. Adopted sandboxes are noted in a folder `e2b` of the state folder.
    pub fn from_environment(state: &std::path::Path) -> Self {
        let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        Self {
            api_key: variable("E2B_API_KEY").map(Secret::new),
            domain: variable("E2B_DOMAIN").unwrap_or_else(|| DOMAIN.to_owned()),
            api_url: variable("E2B_API_URL"),
            sandbox_url: variable("E2B_SANDBOX_URL"),
            template: TEMPLATE.to_owned(),
            timeout_s: TIMEOUT_S,
            owner: OWNER.to_owned(),
            notes: state.join("e2b"),
        }
    }

    /// Returns the address of the REST calls.
    pub(super) fn api_url(&self) -> String {
        self.api_url.clone().unwrap_or_else(|| format!("https://api.{}", self.domain))
    }
}
