//! The frames of an answer, and the point at which an answer is cut off.

use serde_json::Value;

/// A list of frames that is being built.
#[derive(Default)]
pub(super) struct FrameList {
    frames: Vec<String>,
    /// The number of frames after the first half of the last piece.
    middle: usize,
}

impl FrameList {
    /// Adds a frame that has a name.
    pub(super) fn event(&mut self, name: &str, data: &Value) {
        self.frames.push(format!("event: {name}\ndata: {data}\n\n"));
    }

    /// Adds a frame without a name.
    pub(super) fn data(&mut self, data: impl std::fmt::Display) {
        self.frames.push(format!("data: {data}\n\n"));
    }

    /// Adds the frames of a growing piece, and remembers their middle.
    pub(super) fn grow(
        &mut self,
        pieces: impl Iterator<Item = String>,
        mut add: impl FnMut(&mut Self, String),
    ) {
        let first = self.frames.len();
        pieces.for_each(|piece| add(self, piece));
        self.middle = first + (self.frames.len() - first).div_ceil(2);
    }

    /// Returns all frames.
    pub(super) fn whole(self) -> Vec<String> {
        self.frames
    }

    /// Returns the frames up to the middle of the last piece.
    pub(super) fn half(mut self) -> Vec<String> {
        self.frames.truncate(self.middle);
        self.frames
    }
}
