//! The options of a provider: their schema, and values that were checked against it.

use std::collections::BTreeMap;

use eyot::internal::nearest;
use eyot::{Error, ErrorKind, Result};
use serde::Serialize;

use super::ProviderRow;

/// The schema of an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct OptionSchema {
    /// The name, with the unit of a number (`memory_mib`).
    pub name: &'static str,
    /// The values that it takes.
    #[serde(flatten)]
    pub kind: OptionKind,
    /// The default, as it would be written; `None`: the help says what holds then.
    pub default: Option<&'static str>,
    /// One line of help.
    pub help: &'static str,
}

/// The kind of an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum OptionKind {
    /// Any text but none.
    Text,
    /// `true` or `false`.
    Flag,
    /// A whole number.
    Number {
        /// The unit, such as `MiB`, or the noun of what is counted.
        unit: &'static str,
        /// The least.
        least: u64,
        /// The most.
        most: u64,
    },
    /// One of these words.
    Choice {
        /// The words.
        words: &'static [&'static str],
    },
}

/// A checked value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OptionValue {
    /// A text, or a word of a choice.
    Text(String),
    /// A flag.
    Flag(bool),
    /// A number.
    Number(u64),
}

impl OptionSchema {
    /// Parses a value.
    ///
    /// # Errors
    /// `invalid`, with what may be written.
    pub fn parse(&self, text: &str) -> Result<OptionValue> {
        self.value(text).ok_or_else(|| {
            let given = if text.is_empty() { "nothing".to_owned() } else { format!("`{text}`") };
            Error::invalid(self.name, format!("must be {}, not {given}", self.kind.words()))
        })
    }

    fn value(&self, text: &str) -> Option<OptionValue> {
        match self.kind {
            OptionKind::Text => Some(text).filter(|text| !text.is_empty()).map(OptionValue::text),
            OptionKind::Choice { words } => words.contains(&text).then(|| OptionValue::text(text)),
            OptionKind::Flag => text.parse().ok().map(OptionValue::Flag),
            OptionKind::Number { least, most, .. } => {
                text.parse().ok().filter(|number| (least..=most).contains(number)).map(OptionValue::Number)
            }
        }
    }
}

impl OptionValue {
    fn text(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl OptionKind {
    /// Returns the values in words, such as `a number of slots from 0 to 64`.
    pub fn words(&self) -> String {
        match self {
            Self::Text => "a text".to_owned(),
            Self::Flag => "true or false".to_owned(),
            Self::Number { unit, least, most } => format!("a number of {unit} from {least} to {most}"),
            Self::Choice { words } => words.join(" or "),
        }
    }
}

/// The options of one provider that were set.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProviderOptions(BTreeMap<&'static str, OptionValue>);

impl ProviderOptions {
    /// Checks options against the schema of a provider. A later value replaces an earlier one.
    ///
    /// # Errors
    /// `invalid` for a name that the provider does not have, with the nearest one or all of them as
    /// the hint, and for a wrong value.
    pub fn parse<'a>(row: &ProviderRow, pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<Self> {
        let mut options = Self::default();
        for (name, text) in pairs {
            let schema = row.known_option(name)?;
            let parsed = schema.parse(text);
            let value = parsed.map_err(|error| error.context(format!("options of {}", row.name)))?;
            options.set(schema, value);
        }
        Ok(options)
    }

    /// Sets an option.
    pub fn set(&mut self, schema: &OptionSchema, value: OptionValue) {
        self.0.insert(schema.name, value);
    }

    /// Returns the value of an option, if it was set.
    pub fn get(&self, name: &str) -> Option<&OptionValue> {
        self.0.get(name)
    }

    /// Tells whether none was set.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes the options that are not set here from others.
    #[must_use]
    pub fn over(self, below: Self) -> Self {
        Self(below.0.into_iter().chain(self.0).collect())
    }
}

impl ProviderRow {
    /// Returns the option of this name.
    pub fn option(&self, name: &str) -> Option<&'static OptionSchema> {
        self.options.iter().find(|option| option.name == name)
    }

    /// Returns the option of this name, which must be there.
    ///
    /// # Errors
    /// `invalid`, with the nearest name or all of them as the hint.
    pub fn known_option(&self, name: &str) -> Result<&'static OptionSchema> {
        self.option(name).ok_or_else(|| {
            let message = format!("the provider {} has no option `{name}`", self.name);
            Error::new(ErrorKind::Invalid, message).with_hint(self.options_hint(name))
        })
    }

    fn options_hint(&self, name: &str) -> String {
        let names: Vec<&str> = self.options.iter().map(|option| option.name).collect();
        match (nearest(name, &names).first(), names.as_slice()) {
            (Some(near), _) => format!("it has `{near}`"),
            (None, []) => "it has no options: leave it out".to_owned(),
            (None, names) => format!("it has {}; `eyot providers` describes them", names.join(", ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use eyot::Capabilities;

    use super::*;

    const ROW: ProviderRow = ProviderRow {
        options: &[
            OptionSchema {
                name: "quota_mib",
                kind: OptionKind::Number { unit: "MiB", least: 1, most: 4096 },
                default: Some("64"),
                help: "the quota of files",
            },
            OptionSchema { name: "address", kind: OptionKind::Text, default: None, help: "the address" },
            OptionSchema {
                name: "shared",
                kind: OptionKind::Flag,
                default: Some("false"),
                help: "one for all",
            },
            OptionSchema {
                name: "speed",
                kind: OptionKind::Choice { words: &["slow", "fast"] },
                default: Some("fast"),
                help: "the speed",
            },
        ],
        ..ProviderRow::new("tried", "a test's", Capabilities::default, |_, _| {
            Err(Error::new(ErrorKind::Internal, "a test opens none"))
        })
    };

    fn parsed(pairs: &[(&str, &str)]) -> Result<ProviderOptions> {
        ProviderOptions::parse(&ROW, pairs.iter().copied())
    }

    #[test]
    fn values_are_of_their_kind_and_the_last_one_counts() {
        let options =
            parsed(&[("quota_mib", "1"), ("quota_mib", "2"), ("shared", "true"), ("speed", "slow")]).unwrap();
        assert_eq!(options.get("quota_mib"), Some(&OptionValue::Number(2)));
        assert_eq!(options.get("shared"), Some(&OptionValue::Flag(true)));
        assert_eq!(options.get("speed"), Some(&OptionValue::text("slow")));
        assert_eq!(options.get("address"), None);
    }

    #[test]
    fn a_wrong_value_is_refused_with_what_may_be_written() {
        for (name, text, may) in [
            ("quota_mib", "0", "a number of MiB from 1 to 4096, not `0`"),
            ("quota_mib", "4097", "from 1 to 4096"),
            ("quota_mib", "-1", "from 1 to 4096"),
            ("quota_mib", "1.5", "from 1 to 4096"),
            ("shared", "yes", "true or false, not `yes`"),
            ("speed", "medium", "slow or fast"),
            ("address", "", "a text, not nothing"),
        ] {
            let error = parsed(&[(name, text)]).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Invalid);
            let said = error.to_string();
            assert!(said.contains(may) && said.contains(name) && said.contains("tried"), "{said}");
        }
    }

    #[test]
    fn an_unknown_name_is_refused_with_the_nearest_or_all_of_them() {
        let hint = |name: &str| parsed(&[(name, "1")]).unwrap_err().hint().unwrap_or_default().to_owned();
        assert_eq!(hint("qouta_mib"), "it has `quota_mib`");
        assert!(hint("colour").contains("quota_mib, address, shared, speed"), "{}", hint("colour"));
    }

    #[test]
    fn what_is_set_wins_over_what_is_below() {
        let options = parsed(&[("speed", "slow")])
            .unwrap()
            .over(parsed(&[("speed", "fast"), ("shared", "true")]).unwrap());
        assert_eq!(options, parsed(&[("speed", "slow"), ("shared", "true")]).unwrap());
    }
}
