//! The rights of a caller: the runs that it sees, and those that it starts.

use std::convert::Infallible;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;

use crate::store::RunRecord;

/// The rights of a request's caller: the runs that it sees, and those that it starts. A program that has tenants puts it into the request's extensions; without it
/// the caller sees every run, and starts runs of no pool.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunAccess {
    /// The pool of the runs that the caller starts.
    pub pool: Option<String>,
    /// The pools whose runs the caller sees; `None`: every run.
    pub pools: Option<Vec<String>>,
}

impl RunAccess {
    /// Tells whether the caller may see a run.
    pub fn sees(&self, run: &RunRecord) -> bool {
        let Some(pools) = &self.pools else { return true };
        run.pool.as_ref().is_some_and(|pool| pools.contains(pool))
    }
}

impl<S: Sync> FromRequestParts<S> for RunAccess {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(parts.extensions.get().cloned().unwrap_or_default())
    }
}
