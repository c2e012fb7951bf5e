//! Takes the one-time token out of an address's query, whether or not it is valid.

use percent_encoding::percent_decode_str;

/// The name of the query parameter.
pub(crate) const TICKET: &str = "eyot_token";

/// A query, split into the token and the rest.
pub(super) struct Split<'a> {
    /// The query without the token; `None`: it is empty, or there was none.
    pub rest: Option<String>,
    /// The token; the first, if there are several.
    pub ticket: Option<&'a str>,
}

/// Splits a query into the token and the rest.
pub(super) fn split(query: Option<&str>) -> Split<'_> {
    let Some(query) = query else { return Split { rest: None, ticket: None } };
    let is_ticket = |part: &&str| {
        let name = part.split_once('=').map_or(*part, |(name, _)| name);
        percent_decode_str(name).eq(TICKET.bytes())
    };
    let (tickets, rest): (Vec<&str>, Vec<&str>) = query.split('&').partition(is_ticket);
    let ticket = tickets.first().map(|part| part.split_once('=').map_or("", |(_, value)| value));
    let rest = (ticket.is_none() || !rest.is_empty()).then(|| rest.join("&"));
    Split { rest, ticket }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_token_is_taken_out_in_every_spelling_and_the_rest_stays_as_it_is() {
        for (query, rest, ticket) in [
            (None, None, None),
            (Some(""), Some(""), None),
            (Some("a=1&b=%20&&c"), Some("a=1&b=%20&&c"), None),
            (Some("eyot_token=x"), None, Some("x")),
            (Some("a=1&eyot_token=x&b"), Some("a=1&b"), Some("x")),
            (Some("eyot%5Ftoken=x&eyot_token=y&a"), Some("a"), Some("x")),
            (Some("eyot_token"), None, Some("")),
            (Some("eyot_tokens=x"), Some("eyot_tokens=x"), None),
        ] {
            let split = split(query);
            assert_eq!((split.rest.as_deref(), split.ticket), (rest, ticket), "{query:?}");
        }
    }
}
