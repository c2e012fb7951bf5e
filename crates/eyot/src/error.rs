//! Errors, for three readers: code matches an [`ErrorKind`], the caller or the model reads one
//! sentence, the operator follows the source chain. Host paths never stand in the sentence; they
//! may stand in a source.

use std::error::Error as StdError;
use std::fmt;

use serde::{Deserialize, Serialize};

/// The result of every operation of this library.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The kind of a failure, for code to match on. The names are the ones on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ErrorKind {
    /// The request itself is wrong; nothing was changed.
    Invalid,
    /// No such file, directory, program, process or sandbox.
    NotFound,
    /// The name, id or path is taken; its holder was not harmed.
    AlreadyExists,
    /// A file was needed and the path is a directory.
    IsDirectory,
    /// A directory was needed and the path is something else.
    NotDirectory,
    /// The sandbox's user may not do that, or the path leaves the directory it is held beneath.
    Permission,
    /// Larger than a limit that the error names.
    TooLarge,
    /// A quota (disk, processes, sandboxes) is used up.
    Quota,
    /// This provider does not do that; nothing was changed.
    Unsupported,
    /// The sandbox is gone for good.
    Destroyed,
    /// The sandbox or its backend does not answer; it may come back.
    Unavailable,
    /// A deadline of the operation itself passed. (A command's deadline is an outcome, not an error.)
    Timeout,
    /// The caller cancelled. (A cancelled command is an outcome, not an error.)
    Cancelled,
    /// The state changed under the operation, or two operations contradict each other.
    Conflict,
    /// A step of making the sandbox failed; nothing was left behind.
    Setup,
    /// A defect in Eyot or its backend.
    Internal,
}

impl ErrorKind {
    /// The name of the kind as it stands on the wire, such as `not_found`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Invalid => "invalid",
            Self::NotFound => "not_found",
            Self::AlreadyExists => "already_exists",
            Self::IsDirectory => "is_directory",
            Self::NotDirectory => "not_directory",
            Self::Permission => "permission",
            Self::TooLarge => "too_large",
            Self::Quota => "quota",
            Self::Unsupported => "unsupported",
            Self::Destroyed => "destroyed",
            Self::Unavailable => "unavailable",
            Self::Timeout => "timeout",
            Self::Cancelled => "cancelled",
            Self::Conflict => "conflict",
            Self::Setup => "setup",
            Self::Internal => "internal",
        }
    }

    /// The kind with that wire name, if there is one.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == name)
    }

    /// Every kind there is.
    pub const ALL: [Self; 16] = [
        Self::Invalid,
        Self::NotFound,
        Self::AlreadyExists,
        Self::IsDirectory,
        Self::NotDirectory,
        Self::Permission,
        Self::TooLarge,
        Self::Quota,
        Self::Unsupported,
        Self::Destroyed,
        Self::Unavailable,
        Self::Timeout,
        Self::Cancelled,
        Self::Conflict,
        Self::Setup,
        Self::Internal,
    ];
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// An operation failed. [`fmt::Display`] gives one lower-case sentence; `source()` is for operators.
#[derive(Debug)]
pub struct Error {
    kind: ErrorKind,
    message: String,
    /// The offset in the message at which the reason begins.
    reason_at: usize,
    hint: Option<String>,
    source: Option<Box<dyn StdError + Send + Sync>>,
    /// The operation had no effect.
    no_effect: bool,
}

impl Error {
    /// An error of this kind. The message is one lower-case sentence: verb, object, place, reason.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), reason_at: 0, hint: None, source: None, no_effect: false }
    }

    /// Adds a source for the operator; it is never part of the sentence.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// Marks the operation as one that never reached its sandbox: it can be tried again without
    /// being done twice.
    #[must_use]
    pub fn with_no_effect(mut self) -> Self {
        self.no_effect = true;
        self
    }

    /// Takes back that the operation had no effect if an earlier try, or an earlier part of it, may have had one.
    #[must_use]
    pub fn with_unknown_effect_if(mut self, it_may_have_had_one: bool) -> Self {
        self.no_effect &= !it_may_have_had_one;
        self
    }

    /// Returns whether it is known that the operation never reached its sandbox. `false`: it may
    /// have had an effect.
    pub fn had_no_effect(&self) -> bool {
        self.no_effect
    }

    /// Adds advice for the reader.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Puts `context: ` before the sentence; kind, hint and source stay.
    #[must_use]
    pub fn context(mut self, context: impl fmt::Display) -> Self {
        let before = self.message.len();
        self.message = format!("{context}: {}", self.message);
        self.reason_at += self.message.len() - before;
        self
    }

    /// Returns the sentence without what [`Error::context`] has put before it: the reason alone.
    pub fn reason(&self) -> &str {
        &self.message[self.reason_at..]
    }

    /// Returns whether a [`SandboxOperationUnsupported`] is behind it, whose sentence is whole.
    pub(crate) fn is_unsupported_operation(&self) -> bool {
        self.source.as_ref().is_some_and(|source| source.is::<SandboxOperationUnsupported>())
    }

    /// Returns whether the sandbox has no processes and all of its files: it was put to sleep, or
    /// its guest ended unexpectedly ([`Error::is_dead`]). [`crate::Sandbox::wake`] gives a handle
    /// that works. (That holds as well where somebody else has woken it since the handle at hand
    /// was made.)
    pub fn is_sleeping(&self) -> bool {
        self.sleeping_source().is_some()
    }

    /// Returns whether [`Error::is_sleeping`] holds because the sandbox's guest ended unexpectedly:
    /// it was killed from outside, or the host was restarted.
    pub fn is_dead(&self) -> bool {
        self.sleeping_source().is_some_and(|asleep| asleep.unexpectedly)
    }

    /// Returns the sandbox that has no processes, if [`Error::is_sleeping`] holds.
    pub fn sleeping_sandbox(&self) -> Option<&str> {
        self.sleeping_source().map(|asleep| asleep.sandbox.as_str())
    }

    fn sleeping_source(&self) -> Option<&SandboxSleeping> {
        self.source.as_ref()?.downcast_ref()
    }

    /// Returns the same error about a sandbox that the caller knows by this name.
    /// [`Error::is_sleeping`] must hold.
    #[must_use]
    pub(crate) fn renamed_sleeping(&self, sandbox: impl fmt::Display) -> Self {
        let same = if self.is_dead() { Self::dead(sandbox) } else { Self::sleeping(sandbox) };
        Self { no_effect: self.no_effect, ..same }
    }

    /// The kind of failure.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Advice for the reader, where there is any.
    pub fn hint(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    /// A request that is wrong, naming the field and the reason.
    pub fn invalid(field: impl fmt::Display, reason: impl fmt::Display) -> Self {
        Self::new(ErrorKind::Invalid, format!("`{field}` {reason}"))
    }

    /// The host's own files refused: `what` is verb and object, such as `append to the event log`.
    pub fn host(what: impl fmt::Display, error: std::io::Error) -> Self {
        use std::io::ErrorKind as Host;
        let kind = match error.kind() {
            Host::NotFound => ErrorKind::NotFound,
            Host::PermissionDenied | Host::ReadOnlyFilesystem => ErrorKind::Permission,
            Host::StorageFull | Host::QuotaExceeded => ErrorKind::Quota,
            Host::NotADirectory => ErrorKind::NotDirectory,
            _ => ErrorKind::Unavailable,
        };
        Self::new(kind, format!("{what}: {}", system_reason(&error))).with_source(error)
    }

    /// The reason of the system why an operation on a file inside a sandbox failed, as a driver returns it. The handle
    /// puts before it what was to be done, where.
    ///
    /// ```
    /// let missing = eyot::Error::file(std::io::ErrorKind::NotFound.into());
    /// assert_eq!((missing.kind(), missing.to_string().as_str()), (eyot::ErrorKind::NotFound, "entity not found"));
    /// ```
    pub fn file(error: std::io::Error) -> Self {
        use std::io::ErrorKind as Host;
        let kind = match error.kind() {
            Host::NotFound => ErrorKind::NotFound,
            Host::AlreadyExists | Host::DirectoryNotEmpty => ErrorKind::AlreadyExists,
            Host::IsADirectory => ErrorKind::IsDirectory,
            Host::NotADirectory => ErrorKind::NotDirectory,
            Host::PermissionDenied | Host::ReadOnlyFilesystem => ErrorKind::Permission,
            Host::StorageFull | Host::QuotaExceeded => ErrorKind::Quota,
            Host::FileTooLarge => ErrorKind::TooLarge,
            Host::InvalidInput | Host::InvalidFilename | Host::ArgumentListTooLong => ErrorKind::Invalid,
            _ => ErrorKind::Unavailable,
        };
        Self::new(kind, system_reason(&error)).with_source(error)
    }

    /// The sandbox is gone for good.
    pub fn destroyed(sandbox: impl fmt::Display) -> Self {
        Self::new(ErrorKind::Destroyed, format!("sandbox `{sandbox}` has been destroyed"))
    }

    /// The sandbox is gone for good, because its time to live was over. The hint says so.
    pub fn expired(sandbox: impl fmt::Display) -> Self {
        Self::destroyed(sandbox).with_hint("its ttl had passed")
    }

    /// The sandbox is gone for good, because a deadline had passed, and nothing says which. The hint
    /// says so.
    pub fn past_deadline(sandbox: impl fmt::Display) -> Self {
        Self::destroyed(sandbox).with_hint("its deadline (ttl or idle) has passed")
    }

    /// The same of a sandbox by another name, as its caller knows it: gone for good, with the hint that says why.
    #[must_use]
    pub fn renamed_destroyed(&self, sandbox: impl fmt::Display) -> Self {
        let renamed = Self::destroyed(sandbox);
        match self.hint() {
            Some(hint) if self.kind == ErrorKind::Destroyed => renamed.with_hint(hint),
            _ => renamed,
        }
    }

    /// The sandbox sleeps: `unavailable`, and [`Error::is_sleeping`].
    pub fn sleeping(sandbox: impl fmt::Display) -> Self {
        Self::without_processes(sandbox, false)
    }

    /// The sandbox's guest ended unexpectedly: `unavailable`, [`Error::is_sleeping`] and [`Error::is_dead`].
    pub fn dead(sandbox: impl fmt::Display) -> Self {
        Self::without_processes(sandbox, true)
    }

    fn without_processes(sandbox: impl fmt::Display, unexpectedly: bool) -> Self {
        let sleeping = SandboxSleeping { sandbox: sandbox.to_string(), unexpectedly };
        let hint = format!("its files are kept, and what ran in it has ended; wake it: eyot wake {sandbox}");
        Self::new(ErrorKind::Unavailable, sleeping.to_string()).with_hint(hint).with_source(sleeping)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.source.as_deref().map(|source| source as &(dyn StdError + 'static))
    }
}

/// A provider can't do an operation, or not with these options. Nothing was changed.
///
/// It travels as an [`Error`] of kind [`ErrorKind::Unsupported`]; this type is its source, so that code can read
/// the three parts.
#[derive(Debug, Clone, PartialEq, Eq)]
#[doc(alias = "SandboxOperationUnsupportedError")]
pub struct SandboxOperationUnsupported {
    /// The operation, such as `remove`.
    pub operation: String,
    /// The provider's name, such as `native`.
    pub provider: String,
    /// The options that can't be honoured; empty when the operation itself is missing.
    pub options: Vec<String>,
}

impl SandboxOperationUnsupported {
    /// `provider` does not support `operation`, or not with `options`.
    pub fn new(operation: &str, provider: &str, options: &[&str]) -> Self {
        let options = options.iter().map(|option| (*option).to_owned()).collect();
        Self { operation: operation.to_owned(), provider: provider.to_owned(), options }
    }
}

impl fmt::Display for SandboxOperationUnsupported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} does not support {}", self.provider, self.operation)?;
        for (index, option) in self.options.iter().enumerate() {
            write!(f, "{} \"{option}\"", if index == 0 { " with" } else { "," })?;
        }
        Ok(())
    }
}

impl StdError for SandboxOperationUnsupported {}

impl From<SandboxOperationUnsupported> for Error {
    fn from(unsupported: SandboxOperationUnsupported) -> Self {
        Self::new(ErrorKind::Unsupported, unsupported.to_string()).with_source(unsupported)
    }
}

/// A sandbox has no processes: it sleeps, was put to sleep since the handle at hand was made, or its guest ended unexpectedly.
///
/// It travels as an [`Error`] of kind [`ErrorKind::Unavailable`]; this type is its source. See [`Error::is_sleeping`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SandboxSleeping {
    /// The name, or its id where that is how it was asked for.
    pub sandbox: String,
    /// The sandbox was not put to sleep: its guest was killed from outside, or the host was
    /// restarted.
    pub unexpectedly: bool,
}

impl fmt::Display for SandboxSleeping {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.unexpectedly {
            return write!(
                f,
                "sandbox `{}` has no processes any more: its guest ended unexpectedly",
                self.sandbox
            );
        }
        write!(f, "sandbox `{}` sleeps", self.sandbox)
    }
}

impl StdError for SandboxSleeping {}

/// Returns the system's reason as the end of a sentence: in lower case and without its number.
pub fn system_reason(error: &std::io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or_default();
    let mut letters = text.chars();
    letters.next().map(|first| first.to_lowercase().chain(letters).collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_a_wire_name_that_leads_back_to_it() {
        for kind in ErrorKind::ALL {
            assert_eq!(ErrorKind::from_name(kind.as_str()), Some(kind));
            assert_eq!(serde_json::to_string(&kind).unwrap(), format!("\"{kind}\""));
        }
    }

    #[test]
    fn the_reason_is_what_was_said_before_any_context() {
        let error = Error::new(ErrorKind::NotFound, "no such file").context("read `ä`").context("copy");
        assert_eq!(
            (error.to_string().as_str(), error.reason()),
            ("copy: read `ä`: no such file", "no such file")
        );
    }

    #[test]
    fn a_sleeping_sandbox_is_told_apart_from_one_that_does_not_answer_and_stays_so_in_a_context() {
        let error = Error::sleeping("builder").context("read file `a`");
        assert_eq!(error.to_string(), "read file `a`: sandbox `builder` sleeps");
        assert!(error.is_sleeping() && error.kind() == ErrorKind::Unavailable);
        assert!(error.hint().is_some_and(|hint| hint.contains("eyot wake builder")));
        assert!(!Error::new(ErrorKind::Unavailable, "sandbox `builder` sleeps").is_sleeping());
    }

    #[test]
    fn a_dead_sandbox_can_be_woken_as_one_that_sleeps_and_says_what_happened() {
        let error = Error::dead("builder").context("read file `a`");
        assert!(error.is_sleeping() && error.is_dead() && error.kind() == ErrorKind::Unavailable);
        assert!(error.to_string().contains("ended unexpectedly"), "{error}");
        assert!(error.hint().is_some_and(|hint| hint.contains("eyot wake builder")));
        assert!(
            error.renamed_sleeping("b").is_dead() && !Error::sleeping("b").renamed_sleeping("c").is_dead()
        );
        let untouched = Error::sleeping("b").with_no_effect().context("read `a`").renamed_sleeping("c");
        assert!(untouched.had_no_effect() && !error.had_no_effect());
    }

    #[test]
    fn an_unsupported_operation_names_operation_provider_and_options() {
        let error = Error::from(SandboxOperationUnsupported::new("remove", "demo", &["recursive", "force"]));
        assert_eq!(error.to_string(), "demo does not support remove with \"recursive\", \"force\"");
        let source = error.source().and_then(|source| source.downcast_ref::<SandboxOperationUnsupported>());
        assert_eq!(source.map(|unsupported| unsupported.operation.as_str()), Some("remove"));
    }
}
