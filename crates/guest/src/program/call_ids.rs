//! The call numbers that a connection has used. Clients count upwards, so a few ranges hold them
//! all.

use std::collections::BTreeMap;

/// More gaps than any honest client leaves.
const MOST_RANGES: usize = 4096;

/// The numbers used so far, as ranges: first to last.
#[derive(Debug, Default)]
pub struct CallIds(BTreeMap<u32, u32>);

impl CallIds {
    /// Uses a number. `false`: it is 0, it was used before, or the numbers are strewn too widely to
    /// be remembered.
    pub fn begin(&mut self, id: u32) -> bool {
        if id == 0 || self.was_used(id) || self.0.len() >= MOST_RANGES {
            return false;
        }
        let end = id.checked_add(1).and_then(|next| self.0.remove(&next)).unwrap_or(id);
        match self.0.range_mut(..id).next_back() {
            Some((_, last)) if *last == id - 1 => *last = end,
            _ => drop(self.0.insert(id, end)),
        }
        true
    }

    /// Tells whether a call of this number began, whatever became of it.
    pub fn was_used(&self, id: u32) -> bool {
        self.0.range(..=id).next_back().is_some_and(|(_, last)| *last >= id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_used_once_in_whatever_order_they_come() {
        let mut ids = CallIds::default();
        for id in [3, 1, 2, 5, u32::MAX, 4] {
            assert!(!ids.was_used(id) && ids.begin(id) && ids.was_used(id), "{id}");
        }
        for id in [0, 1, 2, 3, 4, 5, u32::MAX] {
            assert!(!ids.begin(id), "{id}");
        }
        assert_eq!(ids.0.len(), 2);
    }
}
