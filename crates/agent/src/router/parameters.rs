//! The parameters of queries.

use std::collections::HashMap;

use axum::extract::FromRequestParts;
use axum::extract::Query;
use axum::http::request::Parts;

use super::failure::{Issue, RouteFailure};
use crate::event::AgentEventKind;
use crate::store::RunStatus;

/// The number of items that an answer has by default.
const DEFAULT_LIMIT: u64 = 100;
/// The most that it may have.
const MAX_LIMIT: u64 = 1_000;

/// The parameters of a query, which are checked as they are taken.
pub(super) struct Parameters {
    given: HashMap<String, String>,
    issues: Vec<Issue>,
}

impl<S: Sync> FromRequestParts<S> for Parameters {
    type Rejection = RouteFailure;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, RouteFailure> {
        let query = Query::try_from_uri(&parts.uri);
        let Query(given) = query.map_err(|error| RouteFailure::invalid_request(&error.body_text()))?;
        Ok(Self { given, issues: Vec::new() })
    }
}

impl Parameters {
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.given.get(name).map(String::as_str).filter(|text| !text.is_empty())
    }

    /// Takes a number of this range.
    fn number(&mut self, name: &'static str, least: u64, most: u64) -> Option<u64> {
        let text = self.given.get(name)?;
        let number = text.parse().ok().filter(|number| (least..=most).contains(number));
        if number.is_none() {
            let range =
                if most == u64::MAX { format!("{least} or more") } else { format!("{least} to {most}") };
            self.issues
                .push(Issue { path: [name], message: format!("`{name}` must be a whole number, {range}.") });
        }
        number
    }

    pub(super) fn limit(&mut self) -> u64 {
        self.number("limit", 1, MAX_LIMIT).unwrap_or(DEFAULT_LIMIT)
    }

    /// Takes the number of the event behind which the list begins.
    pub(super) fn after(&mut self) -> Option<u64> {
        self.number("after", 0, u64::MAX)
    }

    /// Takes the kinds of events that are wanted; `None`: all.
    pub(super) fn types(&mut self) -> Option<Vec<String>> {
        let types: Vec<String> = self.text("types")?.split(',').map(|name| name.trim().to_owned()).collect();
        let types: Vec<String> = types.into_iter().filter(|name| !name.is_empty()).collect();
        for name in types.iter().filter(|name| !AgentEventKind::NAMES.contains(&name.as_str())) {
            let known = AgentEventKind::NAMES.join(", ");
            self.issues.push(Issue {
                path: ["types"],
                message: format!("`{name}` is no type of an event. There are: {known}."),
            });
        }
        (!types.is_empty()).then_some(types)
    }

    pub(super) fn status(&mut self) -> Option<RunStatus> {
        let text = self.text("status")?;
        let status = [RunStatus::Active, RunStatus::Completed, RunStatus::Errored]
            .into_iter()
            .find(|status| status.as_str() == text);
        if status.is_none() {
            let message = "`status` must be `active`, `completed` or `errored`.".to_owned();
            self.issues.push(Issue { path: ["status"], message });
        }
        status
    }

    /// Refuses the request if one of the parameters that were taken is wrong.
    pub(super) fn checked(self) -> Result<(), RouteFailure> {
        if self.issues.is_empty() { Ok(()) } else { Err(RouteFailure::validation_failed(&self.issues)) }
    }
}
