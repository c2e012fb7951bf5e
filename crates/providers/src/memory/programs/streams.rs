//! The standard input and output of a program: live, or whole.
//!
//! A program that runs while its input comes takes that input from whoever called it, also what it does not
//! read: in `while read line; do PROGRAM; done` it would take the loop's lines. So only programs that read
//! their input to its end are live. The others get what has come when they begin, and what they print is
//! passed on when they end.

use std::sync::{Arc, Mutex, PoisonError};

use bashkit::{CommandInput, CommandOutput, Error};

/// The bytes that a program whose output is kept may print.
const MAX_KEPT_BYTES: usize = 128 << 20;

/// The standard input of a program. Clones read on from the same place.
#[derive(Clone)]
pub(super) enum ProgramInput {
    Live(CommandInput),
    Whole(Arc<Mutex<Vec<u8>>>),
}

impl ProgramInput {
    pub(super) fn whole(bytes: &[u8]) -> Self {
        Self::Whole(Arc::new(Mutex::new(bytes.to_vec())))
    }

    /// Reads the next bytes; `None` is the end.
    pub(super) async fn read_chunk(&self) -> bashkit::Result<Option<Vec<u8>>> {
        match self {
            Self::Live(input) => input.read_chunk().await,
            Self::Whole(left) => {
                let bytes = std::mem::take(&mut *left.lock().unwrap_or_else(PoisonError::into_inner));
                Ok((!bytes.is_empty()).then_some(bytes))
            }
        }
    }
}

/// The standard output or error of a program. Clones write to the same.
#[derive(Clone)]
pub(super) enum ProgramOutput {
    Live(CommandOutput),
    Kept(Arc<Mutex<Vec<u8>>>),
}

impl ProgramOutput {
    pub(super) fn kept() -> Self {
        Self::Kept(Arc::default())
    }

    /// Writes all of it.
    ///
    /// # Errors
    /// Nobody reads it any more, or there is too much of it.
    pub(super) async fn write_all(&self, bytes: &[u8]) -> bashkit::Result<()> {
        match self {
            Self::Live(output) => output.write_all(bytes).await,
            Self::Kept(kept) => {
                {
                    let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
                    if kept.len() + bytes.len() > MAX_KEPT_BYTES {
                        return Err(Error::Execution("the output of a program is too large".to_owned()));
                    }
                    kept.extend_from_slice(bytes);
                }
                tokio::task::coop::consume_budget().await;
                Ok(())
            }
        }
    }

    /// Takes what was kept.
    pub(super) fn take(&self) -> Vec<u8> {
        match self {
            Self::Live(_) => Vec::new(),
            Self::Kept(kept) => std::mem::take(&mut *kept.lock().unwrap_or_else(PoisonError::into_inner)),
        }
    }
}
