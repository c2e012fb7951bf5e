//! Signed addresses of files: they let a browser read or write one file without a token.

use std::time::{SystemTime, UNIX_EPOCH};

use axum::http::{Method, StatusCode, Uri};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use percent_encoding::percent_decode_str;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use super::records::SandboxRecord;
use super::refusal::E2bRefusal;

/// Refuses a request for a file whose signature is missing, wrong or out of date.
pub(super) fn check(record: &SandboxRecord, method: &Method, uri: &Uri) -> Result<(), E2bRefusal> {
    let refused = |message: &str| E2bRefusal::new(StatusCode::UNAUTHORIZED, message);
    let signature =
        parameter(uri, "signature").ok_or_else(|| refused("missing signature query parameter"))?;
    let expiration = parameter(uri, "signature_expiration");
    let operation = if [Method::GET, Method::HEAD].contains(method) { "read" } else { "write" };
    let path = parameter(uri, "path").unwrap_or_default();
    let user = parameter(uri, "username").unwrap_or_default();
    let mut signed = format!("{path}:{operation}:{user}:{}", record.access_token);
    if let Some(expiration) = &expiration {
        signed = format!("{signed}:{expiration}");
    }
    let expected = format!("v1_{}", STANDARD_NO_PAD.encode(Sha256::digest(signed.as_bytes())));
    if !bool::from(signature.as_bytes().ct_eq(expected.as_bytes())) {
        return Err(refused("invalid signature"));
    }
    let now_s = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    match expiration.map(|text| text.parse::<u64>()) {
        None => Ok(()),
        Some(Ok(ends_s)) if now_s <= ends_s => Ok(()),
        Some(_) => Err(refused("signature is already expired")),
    }
}

/// Returns a parameter of the query.
pub(super) fn parameter(uri: &Uri, name: &str) -> Option<String> {
    let pairs = uri.query()?.split('&').filter_map(|pair| pair.split_once('='));
    let value = pairs.into_iter().find(|(key, _)| *key == name)?.1.replace('+', " ");
    percent_decode_str(&value).decode_utf8().ok().map(|text| text.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parameter_is_decoded() {
        let uri = Uri::from_static("/files?path=%2Fa%20b+c&username=user");
        assert_eq!(parameter(&uri, "path").as_deref(), Some("/a b c"));
        assert_eq!(parameter(&uri, "missing"), None);
    }
}
