//! The faults of a call's arguments: the first of it in words, the rest counted. Arguments may have
//! a million fields.

/// The most that is told.
const MAX_TOLD: usize = 20;

/// The faults, as far as they are told.
#[derive(Debug, Default)]
pub(super) struct ArgumentProblems {
    told: Vec<String>,
    more: usize,
}

impl ArgumentProblems {
    /// One more thing that is wrong; it is put into words only if it is told.
    pub(super) fn add(&mut self, problem: impl FnOnce() -> String) {
        if self.told.len() < MAX_TOLD { self.told.push(problem()) } else { self.more += 1 }
    }

    /// Everything that is wrong there as well.
    pub(super) fn append(&mut self, other: &mut Self) {
        for problem in other.told.drain(..) {
            self.add(|| problem);
        }
        self.more += std::mem::take(&mut other.more);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.told.is_empty()
    }

    /// A line each, and how many more there are.
    pub(super) fn render(mut self) -> String {
        if self.more > 0 {
            self.told.push(format!("and {} more", self.more));
        }
        self.told.join("\n")
    }
}
