//! The table of providers that a program may name. To add one: a folder with its row, and the row here.
//!
//! A server of another machine ([`crate::remote`]) is not in the table: it is named by its address,
//! and it has a provider of its own.

use eyot::internal::nearest;
use eyot::{Error, ErrorKind, Result};

use crate::row::ProviderRow;

static ROWS: &[ProviderRow] = &[
    #[cfg(feature = "native")]
    crate::native::ROW,
    #[cfg(feature = "docker")]
    crate::docker::ROW,
    #[cfg(feature = "memory")]
    crate::memory::ROW,
    #[cfg(feature = "e2b")]
    crate::e2b::ROW,
    #[cfg(feature = "cloudflare")]
    crate::cloudflare::ROW,
    #[cfg(feature = "modal")]
    crate::modal::ROW,
    #[cfg(feature = "daytona")]
    crate::daytona::ROW,
    #[cfg(feature = "kubernetes")]
    crate::kubernetes::ROW,
];

/// Returns every provider of this build. The first is the default.
pub fn rows() -> &'static [ProviderRow] {
    ROWS
}

/// Returns the provider that is used where none is named.
///
/// # Panics
/// In a build without any provider.
pub fn default_row() -> &'static ProviderRow {
    &ROWS[0]
}

/// Returns the names of the providers.
pub fn names() -> Vec<&'static str> {
    ROWS.iter().map(|row| row.name).collect()
}

/// Returns names as a sentence has them: `native, docker or memory`.
pub fn in_words(names: &[&str]) -> String {
    match names.split_last() {
        Some((last, others)) if !others.is_empty() => format!("{} or {last}", others.join(", ")),
        _ => names.concat(),
    }
}

/// Finds the provider of this name.
///
/// # Errors
/// `invalid`, with the nearest name or all of them as the hint.
pub fn find(name: &str) -> Result<&'static ProviderRow> {
    ROWS.iter().find(|row| row.name == name).ok_or_else(|| {
        let hint = match nearest(name, &names()).first() {
            Some(near) => format!("there is {near}"),
            None => format!("there is {}", names().join(", ")),
        };
        Error::new(ErrorKind::Invalid, format!("there is no provider `{name}`")).with_hint(hint)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_and_every_option_is_there_once_and_every_default_is_a_value() {
        let names = names();
        assert!(names.iter().all(|name| names.iter().filter(|other| *other == name).count() == 1));
        for row in rows() {
            assert_eq!(find(row.name).unwrap(), row);
            for option in row.options {
                assert_eq!(row.options.iter().filter(|other| other.name == option.name).count(), 1);
                let default = option.default.map(|default| option.parse(default));
                assert!(default.is_none_or(|parsed| parsed.is_ok()), "{} of {}", option.name, row.name);
            }
        }
    }

    #[cfg(feature = "docker")]
    #[test]
    fn an_unknown_name_is_refused_with_the_nearest_or_all_of_them() {
        assert_eq!(find("dokcer").unwrap_err().hint(), Some("there is docker"));
        assert!(find("cloud").unwrap_err().hint().unwrap_or_default().contains("docker"));
    }

    #[cfg(any(feature = "native", feature = "docker", feature = "memory"))]
    #[test]
    fn a_provider_has_the_name_and_the_capabilities_of_its_row() {
        use crate::row::{Makes, ProviderSettings};
        for row in rows() {
            let provider = ProviderSettings::new(row, "/nowhere").open(Makes::Many).unwrap();
            assert_eq!((provider.name(), provider.capabilities()), (row.name, &(row.capabilities)()));
            assert_eq!(provider.lives_with_its_process(), row.lives_with_its_process, "{}", row.name);
        }
    }
}
