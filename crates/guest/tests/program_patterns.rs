//! Unicode in patterns of grep and glob, in the program as it is built, with the tables it was
//! given.
#![cfg(feature = "program")]
#![allow(clippy::unwrap_used)]

mod program_client;

use eyot_guest::protocol::*;
use program_client::*;

fn grep(guest: &mut Guest, pattern: &str, ignore_case: bool) -> Result<Vec<String>, Failure> {
    let request = Request::Grep {
        root: Location { path: guest.directory.path().to_str().unwrap().to_owned(), beneath: None },
        pattern: pattern.to_owned(),
        literal: false,
        ignore_case,
        include: Some("*ä.txt".to_owned()),
        max_matches: 100,
        max_line_bytes: 1000,
    };
    match guest.client.call(&request)? {
        Reply::Grep(found) => Ok(found.matches.into_iter().map(|found| found.line).collect()),
        other => panic!("{other:?} to a grep"),
    }
}

#[test]
fn patterns_know_the_classes_categories_scripts_and_cases_of_unicode() {
    let mut guest = Guest::start();
    std::fs::write(guest.path("ä.txt"), "größe\n٣\nΣίσυφος\na\u{2003}b\n").unwrap();
    let cases = [
        (r"^gr\w+$", false, "größe"),
        (r"^\d$", false, "٣"),
        (r"^a\sb$", false, "a\u{2003}b"),
        (r"\bσίΣΥΦΟΣ\b", true, "Σίσυφος"),
        (r"^GRÖSSE|GRÖßE$", true, "größe"),
        (r"^\p{Nd}$", false, "٣"),
        (r"^\p{Lu}\p{Ll}+$", false, "Σίσυφος"),
        (r"^\p{Greek}+$", false, "Σίσυφος"),
        (r"^\p{Alphabetic}\P{Alphabetic}b$", false, "a\u{2003}b"),
    ];
    for (pattern, ignore_case, line) in cases {
        assert_eq!(grep(&mut guest, pattern, ignore_case), Ok(vec![line.to_owned()]), "{pattern}");
    }
    // Of tables that it was not given nothing can be said here: in one build with others it has
    // theirs.
    assert_eq!(grep(&mut guest, r"\p{Nonsense}", false).unwrap_err().kind, "invalid");
}
