//! The rules of what a secret is: which names have one, and in which forms it may be said again.

use percent_encoding::percent_decode_str;
use reqwest::Url;

/// Stands in the place of a secret.
pub(crate) const REDACTED: &str = "<redacted>";
/// A shorter secret is not looked for: it would stand in half of all texts.
pub(crate) const MIN_SECRET_BYTES: usize = 8;
/// Parts of the names of headers and of parts of a query whose values are credentials.
const CREDENTIAL_NAMES: [&str; 6] = ["auth", "cookie", "key", "token", "secret", "password"];

/// Returns whether a header, or a part of a query, of this name has a credential.
pub(crate) fn names_credential(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    CREDENTIAL_NAMES.iter().any(|part| name.contains(part))
}

/// The forms in which a value may be said again: as a whole, without its scheme (`Bearer KEY`), each of its cookies, and as JSON
/// writes them. Forms that are too short to be looked for are left out.
pub(crate) fn secret_forms(value: &str) -> Vec<String> {
    let value = value.trim();
    let without_scheme = value.split_once(' ').map(|(_, key)| key);
    let cookies = value.split(';').filter_map(|cookie| cookie.split_once('=')).map(|(_, value)| value);
    let mut forms = Vec::new();
    for form in [value].into_iter().chain(without_scheme).chain(cookies).map(str::trim) {
        let json = serde_json::to_string(form).map(|json| json[1..json.len() - 1].to_owned());
        forms.extend([form.to_owned()].into_iter().chain(json));
    }
    forms.retain(|form| form.len() >= MIN_SECRET_BYTES);
    forms.sort();
    forms.dedup();
    forms
}

/// The secrets of an address: its password, and the parts of its query, with their names.
pub(crate) fn url_secrets(url: &Url) -> Vec<(String, String)> {
    let query = url.query_pairs().map(|(name, value)| (name.into_owned(), value.into_owned()));
    let mut secrets: Vec<(String, String)> = query.collect();
    // The same as they stand in the address, where some letters are written as `%20`.
    for pair in url.query().unwrap_or_default().split('&') {
        let (name, value) = pair.split_once('=').unwrap_or(("", pair));
        secrets.push((name.to_owned(), value.to_owned()));
    }
    if let Some(password) = url.password() {
        let plain = percent_decode_str(password).decode_utf8_lossy().into_owned();
        secrets.extend([plain, password.to_owned()].map(|password| ("password".to_owned(), password)));
    }
    secrets
}

/// The text without these secrets, of which the longest come first.
pub(crate) fn hidden(text: String, secrets: &[String]) -> String {
    secrets.iter().fold(text, |text, secret| {
        if text.contains(secret.as_str()) { text.replace(secret.as_str(), REDACTED) } else { text }
    })
}
