//! A clock for the phases of a task. The table at the end says where the time went.

use std::time::{Duration, Instant};

/// The phases that have ended, in order.
#[derive(Debug, Default)]
pub struct Phases {
    ended: Vec<(String, Duration)>,
}

impl Phases {
    /// Runs one phase and notes how long it took, whether or not it succeeded.
    pub fn time<T>(&mut self, name: impl Into<String>, phase: impl FnOnce() -> T) -> T {
        let begun = Instant::now();
        let done = phase();
        self.ended.push((name.into(), begun.elapsed()));
        done
    }

    /// Prints the table.
    pub fn print(&self) {
        println!("\n{:<40} {:>8}", "phase", "seconds");
        for (name, took) in &self.ended {
            println!("{name:<40} {:>8}", took.as_secs());
        }
        let total: Duration = self.ended.iter().map(|(_, took)| *took).sum();
        println!("{:<40} {:>8}", "total", total.as_secs());
    }
}
