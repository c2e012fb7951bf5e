//! The results: named rows of times, and the ratios of their medians.

use std::time::Instant;

use serde::Serialize;

/// A row of the table, before it has times.
#[derive(Debug, Clone, Copy)]
pub struct Item {
    /// The operation that is measured.
    pub name: &'static str,
    /// The name of the row that it is compared with.
    pub against: Option<&'static str>,
    /// The largest ratio that is acceptable.
    pub to_reach: Option<f64>,
    /// The longest time that is acceptable, in microseconds.
    pub to_reach_us: Option<f64>,
}

impl Item {
    /// Makes a row that is compared with nothing.
    pub const fn plain(name: &'static str) -> Self {
        Self { name, against: None, to_reach: None, to_reach_us: None }
    }

    /// Makes a row with the largest acceptable ratio.
    pub const fn ratio(name: &'static str, against: &'static str, to_reach: f64) -> Self {
        Self { to_reach: Some(to_reach), ..Self::beside(name, against) }
    }

    /// Makes a row whose ratio is shown for orientation.
    pub const fn beside(name: &'static str, against: &'static str) -> Self {
        Self { against: Some(against), ..Self::plain(name) }
    }

    /// Adds the longest acceptable time, in microseconds.
    pub const fn within(self, to_reach_us: f64) -> Self {
        Self { to_reach_us: Some(to_reach_us), ..self }
    }
}

/// A row as it is reported. Times are in microseconds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BenchRow {
    pub name: &'static str,
    pub samples: usize,
    pub min_us: f64,
    pub p50_us: f64,
    pub p95_us: f64,
    /// The row's median divided by that of the row that it is compared with.
    pub ratio: Option<f64>,
    pub against: Option<&'static str>,
    /// The largest ratio that is acceptable.
    pub to_reach: Option<f64>,
    /// The longest time that is acceptable.
    pub to_reach_us: Option<f64>,
}

/// The times of every row, in the order of their first appearance.
#[derive(Debug, Default)]
pub struct Items {
    rows: Vec<(Item, Vec<f64>)>,
    /// Set during warm-up rounds: their times are dropped.
    pub warming_up: bool,
}

impl Items {
    /// Notes the time since `since`, in microseconds.
    pub fn note(&mut self, item: Item, since: Instant) {
        let time = since.elapsed().as_secs_f64() * 1e6;
        if self.warming_up {
            return;
        }
        match self.rows.iter_mut().find(|(known, _)| known.name == item.name) {
            Some((_, times)) => times.push(time),
            None => self.rows.push((item, vec![time])),
        }
    }

    /// Returns the rows, with their ratios.
    pub fn rows(&self) -> Vec<BenchRow> {
        self.rows.iter().map(|(item, times)| self.row(item, times)).collect()
    }

    fn row(&self, item: &Item, times: &[f64]) -> BenchRow {
        let p50_us = quantile(times, 0.5);
        let baseline = item.against.and_then(|name| self.rows.iter().find(|(other, _)| other.name == name));
        BenchRow {
            name: item.name,
            samples: times.len(),
            min_us: quantile(times, 0.0),
            p50_us,
            p95_us: quantile(times, 0.95),
            ratio: baseline.map(|(_, others)| p50_us / quantile(others, 0.5)),
            against: item.against.filter(|_| baseline.is_some()),
            to_reach: item.to_reach.filter(|_| baseline.is_some()),
            to_reach_us: item.to_reach_us,
        }
    }
}

/// Returns the value below which this share of the times lies. The list must not be empty.
pub fn quantile(times: &[f64], share: f64) -> f64 {
    let mut sorted = times.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[((sorted.len() - 1) as f64 * share).round() as usize]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_of_the_sorted_times() {
        let times = [5.0, 1.0, 4.0, 2.0, 3.0];
        assert_eq!([0.0, 0.5, 1.0].map(|share| quantile(&times, share)), [1.0, 3.0, 5.0]);
    }

    #[test]
    fn a_ratio_needs_the_row_that_it_is_compared_with() {
        let mut items = Items::default();
        items.rows.push((Item::ratio("a", "b", 2.0), vec![6.0]));
        assert_eq!(items.rows()[0].ratio, None);
        items.rows.push((Item::plain("b"), vec![4.0]));
        assert_eq!(items.rows()[0].ratio, Some(1.5));
        assert_eq!(items.rows()[0].to_reach, Some(2.0));
    }
}
