//! The provider and the options of providers in a configuration file: checked against the table.

use std::collections::BTreeMap;

use eyot_providers::registry::find;
use eyot_providers::row::{ProviderOptions, ProviderRow};
use serde::{Deserialize, Deserializer, de};

/// The configured options of each provider.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(try_from = "BTreeMap<String, BTreeMap<String, WrittenValue>>")]
pub struct ConfiguredOptions(BTreeMap<&'static str, ProviderOptions>);

/// A value as it is written in a file.
#[derive(Deserialize)]
#[serde(untagged)]
enum WrittenValue {
    Flag(bool),
    Number(i64),
    Text(String),
}

impl WrittenValue {
    fn into_text(self) -> String {
        match self {
            Self::Flag(flag) => flag.to_string(),
            Self::Number(number) => number.to_string(),
            Self::Text(text) => text,
        }
    }
}

impl TryFrom<BTreeMap<String, BTreeMap<String, WrittenValue>>> for ConfiguredOptions {
    type Error = String;
    fn try_from(written: BTreeMap<String, BTreeMap<String, WrittenValue>>) -> Result<Self, String> {
        let options = written.into_iter().map(|(name, values)| {
            let row = find(&name).map_err(in_one_line)?;
            let values: Vec<(String, String)> =
                values.into_iter().map(|(name, value)| (name, value.into_text())).collect();
            let pairs = values.iter().map(|(name, value)| (name.as_str(), value.as_str()));
            let options = ProviderOptions::parse(row, pairs).map_err(in_one_line)?;
            Ok((row.name, options))
        });
        options.collect::<Result<_, _>>().map(Self)
    }
}

impl ConfiguredOptions {
    /// Returns the options of a provider.
    pub fn of(&self, row: &ProviderRow) -> ProviderOptions {
        self.0.get(row.name).cloned().unwrap_or_default()
    }

    /// Takes the options that are not set here from others.
    pub fn over(self, below: Self) -> Self {
        let mut all = below.0;
        for (name, options) in self.0 {
            let below = all.remove(name).unwrap_or_default();
            all.insert(name, options.over(below));
        }
        Self(all)
    }
}

/// Reads the name of a provider.
pub fn provider<'de, D: Deserializer<'de>>(file: D) -> Result<Option<&'static ProviderRow>, D::Error> {
    let name = String::deserialize(file)?;
    find(&name).map(Some).map_err(|error| de::Error::custom(in_one_line(error)))
}

fn in_one_line(error: eyot::Error) -> String {
    match error.hint() {
        Some(hint) => format!("{error}: {hint}"),
        None => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Config;

    #[test]
    fn options_are_checked_against_the_table_and_a_wrong_one_is_refused_with_the_nearest() {
        let refused = |text: &str| Config::parse(text).unwrap_err();
        for (text, said) in [
            ("provider = \"dokcer\"\n", "there is no provider `dokcer`: there is docker"),
            ("[providers.nativ]\nslots = 1\n", "there is no provider `nativ`: there is native"),
            ("[providers.native]\nslot = 1\n", "the provider native has no option `slot`: it has `slots`"),
            ("[providers.native]\nslots = 65\n", "must be a number of slots from 0 to 64, not `65`"),
            ("[providers.docker]\nimage = \"\"\n", "must be a text"),
        ] {
            assert!(refused(text).starts_with("line ") && refused(text).contains(said), "{}", refused(text));
        }
    }

    #[test]
    fn options_of_the_users_file_win_over_those_of_the_machines() {
        let parse = |text: &str| Config::parse(text).unwrap().providers;
        let machines = parse(
            "[providers.docker]\nimage = \"a:1\"\naddress = \"unix:///a\"\n[providers.native]\nslots = 1\n",
        );
        let users = parse("[providers.docker]\nimage = \"b:1\"\n");
        let both =
            "[providers.docker]\nimage = \"b:1\"\naddress = \"unix:///a\"\n[providers.native]\nslots = 1\n";
        assert_eq!(users.over(machines), parse(both));
    }
}
