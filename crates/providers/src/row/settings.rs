//! The settings with which a provider is opened.

use std::path::PathBuf;
use std::sync::Arc;

use eyot::{Result, SandboxProvider};
#[cfg(any(feature = "native", feature = "docker"))]
use eyot_image::AllowedImages;

use super::{OptionValue, ProviderCheck, ProviderOptions, ProviderRow};

/// The number of sandboxes that a program makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Makes {
    /// One at most.
    One,
    /// Many.
    Many,
}

/// The settings with which a provider is opened.
#[derive(Debug, Clone)]
pub struct ProviderSettings {
    /// The provider.
    pub row: &'static ProviderRow,
    /// The state folder.
    pub state: PathBuf,
    /// The provider's options.
    pub options: ProviderOptions,
    /// The only images that an Engine fetches; `None`: all.
    #[cfg(any(feature = "native", feature = "docker"))]
    pub fetched: Option<AllowedImages>,
    /// The sources of images that native's state folder does not have.
    #[cfg(feature = "native")]
    pub images: Option<Arc<eyot_native::ImageSources>>,
    /// For tests: simulated facts about the host, see `NativeOptions`.
    #[cfg(feature = "native")]
    pub simulated: Option<serde_json::Value>,
    /// For tests: the step that fails in every create, see `NativeOptions`.
    #[cfg(feature = "native")]
    pub fail_step: Option<String>,
}

impl ProviderSettings {
    /// Makes settings without options.
    pub fn new(row: &'static ProviderRow, state: impl Into<PathBuf>) -> Self {
        Self {
            row,
            state: state.into(),
            options: ProviderOptions::default(),
            #[cfg(any(feature = "native", feature = "docker"))]
            fetched: None,
            #[cfg(feature = "native")]
            images: None,
            #[cfg(feature = "native")]
            simulated: None,
            #[cfg(feature = "native")]
            fail_step: None,
        }
    }

    /// Returns the same settings with another state folder.
    pub fn at(&self, state: impl Into<PathBuf>) -> Self {
        Self { state: state.into(), ..self.clone() }
    }

    /// Returns the same settings for another provider, with its options.
    pub fn of(&self, row: &'static ProviderRow, options: ProviderOptions) -> Self {
        Self { row, options, ..self.clone() }
    }

    /// Opens the provider. This touches nothing.
    ///
    /// # Errors
    /// Those of the provider's constructor.
    pub fn open(&self, makes: Makes) -> Result<Arc<dyn SandboxProvider>> {
        (self.row.open)(self, makes)
    }

    /// Sets an option.
    ///
    /// # Errors
    /// `invalid` if the provider has no such option.
    pub fn set(&mut self, name: &str, value: OptionValue) -> Result<()> {
        self.options.set(self.row.known_option(name)?, value);
        Ok(())
    }

    /// Looks whether the provider can be used on this machine with these settings.
    pub async fn check(&self) -> ProviderCheck {
        match self.row.check {
            Some(check) => check(self.clone()).await,
            None => ProviderCheck::usable("it needs nothing of this machine"),
        }
    }

    /// Returns the value of an option, or its default.
    pub fn option(&self, name: &str) -> Option<OptionValue> {
        let default = || {
            let schema = self.row.option(name)?;
            schema.parse(schema.default?).ok()
        };
        self.options.get(name).cloned().or_else(default)
    }

    /// Returns the value of an option that is a text or a choice, or its default.
    pub fn text(&self, name: &str) -> Option<String> {
        match self.option(name)? {
            OptionValue::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the value of an option that is a number, or its default.
    pub fn number(&self, name: &str) -> Option<u64> {
        match self.option(name)? {
            OptionValue::Number(number) => Some(number),
            _ => None,
        }
    }

    /// Tells whether an option that is a flag is on.
    pub fn flag(&self, name: &str) -> bool {
        self.option(name) == Some(OptionValue::Flag(true))
    }
}
