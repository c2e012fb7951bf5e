//! Budgets: limits on the turns, tokens, time and money that an agent may use.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::usage::TokenUsage;

/// Limits on what an agent and its tasks may use. `None`: no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct Budget {
    /// The most turns of the model. The summary of a conversation is one, too.
    pub max_turns: Option<u64>,
    /// The most tokens, read and written.
    pub max_tokens: Option<u64>,
    /// The longest time, in milliseconds. Of a run that is gone on with, the time from its first event to its last one counts,
    /// and the time in which no process had it does not.
    pub max_duration_ms: Option<u64>,
    /// The highest price, in the unit of the model's prices, usually dollars. A model without prices counts as free.
    pub max_cost: Option<f64>,
}

/// The limit of a budget that was reached.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BudgetLimit {
    /// The number of turns.
    Turns(u64),
    /// The number of tokens.
    Tokens(u64),
    /// The time, in milliseconds.
    DurationMs(u64),
    /// The price.
    Cost(f64),
}

/// A meter of what an agent has used of its budget. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct BudgetMeter {
    budget: Budget,
    started: Instant,
    used: Arc<Mutex<BudgetUsage>>,
}

/// The part of a budget that is used.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct BudgetUsage {
    pub(crate) turns: u64,
    pub(crate) usage: TokenUsage,
    /// The time that processes before this one took.
    pub(crate) time_before: Duration,
}

impl BudgetMeter {
    pub(crate) fn new(budget: Budget) -> Self {
        Self { budget, started: Instant::now(), used: Arc::default() }
    }

    /// Counts a turn that is about to start. An error: the limit that leaves no room for the turn.
    pub(crate) fn begin_turn(&self) -> Result<(), BudgetLimit> {
        if self.deadline().is_some_and(|deadline| Instant::now() >= deadline) {
            return Err(self.duration_limit());
        }
        let mut used = self.lock();
        self.check(&used)?;
        used.turns += 1;
        Ok(())
    }

    /// Adds what earlier processes of the run have used.
    pub(crate) fn restore(&self, before: BudgetUsage) {
        let mut used = self.lock();
        used.turns += before.turns;
        used.usage += before.usage;
        used.time_before += before.time_before;
    }

    /// Adds the tokens of a turn.
    pub(crate) fn charge(&self, usage: TokenUsage) {
        self.lock().usage += usage;
    }

    /// Returns the time at which the budget ends.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        let limit = Duration::from_millis(self.budget.max_duration_ms?);
        let left = limit.saturating_sub(self.lock().time_before);
        self.started.checked_add(left)
    }

    /// Returns the limit that belongs to [`BudgetMeter::deadline`].
    pub(crate) fn duration_limit(&self) -> BudgetLimit {
        BudgetLimit::DurationMs(self.budget.max_duration_ms.unwrap_or_default())
    }

    fn check(&self, used: &BudgetUsage) -> Result<(), BudgetLimit> {
        let Budget { max_turns, max_tokens, max_cost, .. } = self.budget;
        if let Some(limit) = max_turns.filter(|limit| used.turns >= *limit) {
            return Err(BudgetLimit::Turns(limit));
        }
        if let Some(limit) = max_tokens.filter(|limit| used.usage.total_tokens >= *limit) {
            return Err(BudgetLimit::Tokens(limit));
        }
        if let Some(limit) = max_cost.filter(|limit| used.usage.cost.total >= *limit) {
            return Err(BudgetLimit::Cost(limit));
        }
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, BudgetUsage> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Display for BudgetLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Turns(1) => f.write_str("the budget of one turn is used up"),
            Self::Turns(limit) => write!(f, "the budget of {limit} turns is used up"),
            Self::Tokens(limit) => write!(f, "the budget of {limit} tokens is used up"),
            Self::DurationMs(limit) => write!(f, "the budget of {limit} ms is used up"),
            Self::Cost(limit) => write!(f, "the budget of {limit} for the price of tokens is used up"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_turn_behind_the_last_one_has_no_room() {
        let meter = BudgetMeter::new(Budget { max_turns: Some(2), ..Budget::default() });
        assert_eq!((meter.begin_turn(), meter.begin_turn()), (Ok(()), Ok(())));
        assert_eq!(meter.begin_turn(), Err(BudgetLimit::Turns(2)));
    }

    #[test]
    fn tokens_are_counted_over_all_turns() {
        let spent = TokenUsage { total_tokens: 60, ..TokenUsage::default() };
        let meter = BudgetMeter::new(Budget { max_tokens: Some(100), ..Budget::default() });
        meter.charge(spent);
        assert_eq!(meter.begin_turn(), Ok(()));
        meter.clone().charge(spent);
        assert_eq!(meter.begin_turn(), Err(BudgetLimit::Tokens(100)));
    }

    #[test]
    fn a_price_is_counted_over_all_turns() {
        let mut spent = TokenUsage::default();
        spent.cost.total = 0.06;
        let meter = BudgetMeter::new(Budget { max_cost: Some(0.1), ..Budget::default() });
        meter.charge(spent);
        assert_eq!(meter.begin_turn(), Ok(()));
        meter.charge(spent);
        assert_eq!(meter.begin_turn(), Err(BudgetLimit::Cost(0.1)));
    }

    #[test]
    fn what_a_process_before_this_one_used_is_counted() {
        let budget = Budget { max_turns: Some(2), max_duration_ms: Some(60_000), ..Budget::default() };
        let (fresh, late) = (BudgetMeter::new(budget), BudgetMeter::new(budget));
        fresh.restore(BudgetUsage { turns: 1, ..BudgetUsage::default() });
        assert_eq!((fresh.begin_turn(), fresh.begin_turn()), (Ok(()), Err(BudgetLimit::Turns(2))));
        late.restore(BudgetUsage { time_before: Duration::from_secs(60), ..BudgetUsage::default() });
        assert_eq!(late.begin_turn(), Err(BudgetLimit::DurationMs(60_000)));
    }

    #[test]
    fn a_budget_of_no_time_has_room_for_nothing() {
        let meter = BudgetMeter::new(Budget { max_duration_ms: Some(0), ..Budget::default() });
        assert_eq!(meter.begin_turn(), Err(BudgetLimit::DurationMs(0)));
    }
}
