//! Text of an `awk` program: shared bytes, which are counted while they live.

use std::cell::Cell;
use std::rc::Rc;

/// The most bytes that the values of one run may take.
pub(super) const MAX_BYTES: usize = 128 << 20;
/// The memory of a value without its bytes.
const VALUE_BYTES: usize = 80;

thread_local! {
    static USED: Cell<usize> = const { Cell::new(0) };
}

/// Returns the bytes that the values of this thread's run take.
pub(super) fn used_bytes() -> usize {
    USED.get()
}

/// Counts bytes that are not text.
pub(super) fn take_bytes(bytes: usize) {
    USED.set(USED.get().saturating_add(bytes));
}

/// Takes such bytes off the count.
pub(super) fn return_bytes(bytes: usize) {
    USED.set(USED.get().saturating_sub(bytes));
}

struct CountedBytes(Box<[u8]>);

impl Drop for CountedBytes {
    fn drop(&mut self) {
        return_bytes(self.0.len() + VALUE_BYTES);
    }
}

/// The text of a value.
#[derive(Clone)]
pub(super) struct AwkText(Rc<CountedBytes>);

impl AwkText {
    pub(super) fn new(bytes: impl Into<Box<[u8]>>) -> Self {
        let bytes = bytes.into();
        take_bytes(bytes.len() + VALUE_BYTES);
        Self(Rc::new(CountedBytes(bytes)))
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.0.0
    }
}

impl From<&str> for AwkText {
    fn from(text: &str) -> Self {
        Self::new(text.as_bytes())
    }
}
