//! A filter: its text, made ready to run, or what is wrong with it.

use jaq_core::load::lex::Expect;
use jaq_core::load::{self, Arena, File, Loader};
use jaq_core::{Compiler, Filter};

use super::data::Kind;
use super::functions;

/// Makes a filter ready to run.
///
/// # Errors
/// Everything that is wrong with its text, in lines to print.
pub(super) fn compile(text: &str, variables: &[String]) -> Result<Filter<Kind>, String> {
    let ours = load::parse(include_str!("definitions.jq"), |parser| parser.defs()).unwrap_or_default();
    let definitions = jaq_core::defs().chain(jaq_std::defs()).chain(ours);
    let arena = Arena::default();
    let modules = Loader::new(definitions)
        .load(&arena, File { code: text, path: () })
        .map_err(|errors| told(errors.into_iter().flat_map(|(file, error)| load_errors(file.code, error))))?;
    Compiler::default()
        .with_funs(functions::all())
        .with_global_vars(variables.iter().map(String::as_str))
        .compile(modules)
        .map_err(|errors| {
            told(errors.into_iter().flat_map(|(file, errors)| {
                let undefined = |(name, kind): (&str, jaq_core::compile::Undefined)| JqProblem {
                    text: undefined(name, &kind),
                    line: line_at(file.code, offset(file.code, name)),
                };
                errors.into_iter().map(undefined).collect::<Vec<_>>()
            }))
        })
}

/// Something that is wrong, and the line of it.
struct JqProblem {
    text: String,
    line: String,
}

fn told(problems: impl Iterator<Item = JqProblem>) -> String {
    let mut count = 0;
    let mut all = String::new();
    for problem in problems {
        count += 1;
        all += &format!("jq: error: {} at <top-level>, {}\n", problem.text, problem.line);
    }
    let many = if count == 1 { "" } else { "s" };
    all + &format!("jq: {count} compile error{many}\n")
}

fn offset(code: &str, part: &str) -> usize {
    let start = code.as_ptr().addr();
    part.as_ptr().addr().checked_sub(start).filter(|at| *at <= code.len()).unwrap_or(0)
}

/// The number of the line at a place and the line itself, filled up to the place.
fn line_at(code: &str, at: usize) -> String {
    let start = code[..at].rfind('\n').map_or(0, |before| before + 1);
    let end = code[at..].find('\n').map_or(code.len(), |after| at + after);
    let number = code[..at].matches('\n').count() + 1;
    format!("line {number}:\n{}{}", &code[start..end], " ".repeat(at - start))
}

fn undefined(name: &str, kind: &jaq_core::compile::Undefined) -> String {
    use jaq_core::compile::Undefined;
    match kind {
        Undefined::Filter(_) if name.starts_with('@') => format!("{} is not a valid format", &name[1..]),
        Undefined::Filter(arity) => format!("{name}/{arity} is not defined"),
        Undefined::Label => format!("$*label-{} is not defined", name.trim_start_matches('$')),
        _ => format!("{name} is not defined"),
    }
}

fn syntax(code: &str, unexpected: &str, at: usize) -> JqProblem {
    let text = format!("syntax error, unexpected {unexpected} (Unix shell quoting issues?)");
    JqProblem { text, line: line_at(code, at) }
}

fn load_errors(code: &str, error: load::Error<&str>) -> Vec<JqProblem> {
    match error {
        load::Error::Io(missing) => missing
            .into_iter()
            .map(|(path, _)| JqProblem {
                text: format!("module not found: {path}"),
                line: line_at(code, offset(code, path)),
            })
            .take(1)
            .collect(),
        // One thing that is wrong leads to others.
        load::Error::Lex(errors) => errors
            .into_iter()
            .take(1)
            .map(|(expected, found)| match expected {
                Expect::Delim("\"") => syntax(
                    code,
                    "$end, expecting QQSTRING_TEXT or QQSTRING_INTERP_START or QQSTRING_END",
                    last_token(code),
                ),
                Expect::Delim(_) if is_at_end(code, found) => syntax(code, "$end", last_token(code)),
                Expect::Digit | Expect::Ident if is_at_end(code, found) => {
                    syntax(code, "$end", last_token(code))
                }
                _ => syntax(code, "INVALID_CHARACTER", offset(code, found)),
            })
            .collect(),
        load::Error::Parse(errors) => errors
            .into_iter()
            .take(1)
            .map(|(_, found)| match found {
                "" => syntax(code, "$end", last_token(code)),
                found => syntax(code, &token(found), offset(code, found)),
            })
            .collect(),
    }
}

/// Tells whether nothing but what is open stands at the end of a filter.
fn is_at_end(code: &str, found: &str) -> bool {
    let rest = &code[offset(code, found)..];
    let closing = |open: char| match open {
        '(' => ')',
        '[' => ']',
        _ => '}',
    };
    !rest.chars().next().is_some_and(|open| rest[1..].contains(closing(open)) && !rest.is_empty())
        || rest.len() <= 1
}

/// A token in the words of jq's grammar.
fn token(found: &str) -> String {
    let first = found.chars().next().unwrap_or(' ');
    match found {
        "then" | "else" | "elif" | "end" | "as" | "def" | "if" | "and" | "or" | "try" | "catch"
        | "reduce" | "foreach" | "label" | "import" | "include" | ".." | "//" | "==" | "!=" | "<=" | ">="
        | "?//" | "|=" | "+=" | "-=" | "*=" | "/=" | "%=" | "//=" => found.to_owned(),
        _ if first.is_alphabetic() || first == '_' => "IDENT".to_owned(),
        _ if first.is_ascii_digit() => "LITERAL".to_owned(),
        _ if first == '"' => "QQSTRING_START".to_owned(),
        _ if first == '@' => "FORMAT".to_owned(),
        _ if first == '$' => "'$'".to_owned(),
        _ if first == '.' && found.len() > 1 => "FIELD".to_owned(),
        _ => format!("'{first}'"),
    }
}

/// The place of the last token.
fn last_token(code: &str) -> usize {
    let code = code.trim_end();
    let is_word = |letter: char| letter.is_alphanumeric() || letter == '_';
    let word = code.trim_end_matches(is_word);
    if word.len() == code.len() {
        return code.char_indices().next_back().map_or(0, |(at, _)| at);
    }
    if word.ends_with('.') { word.len() - 1 } else { word.len() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(text: &str) -> String {
        compile(text, &[]).err().unwrap_or_else(|| "nothing".to_owned())
    }

    #[test]
    fn all_definitions_are_known() {
        assert_eq!(wrong("."), "nothing");
        assert_eq!(wrong("getpath([1]) | todate | @base32d | sub(\"a\"; \"b\") | INDEX(.a)"), "nothing");
    }

    #[test]
    fn what_is_wrong_has_the_words_and_place_of_jq() {
        let syntax = |token: &str, line: &str| {
            format!(
                "jq: error: syntax error, unexpected {token} (Unix shell quoting issues?) at <top-level>, line 1:\n\
                 {line}\njq: 1 compile error\n"
            )
        };
        assert_eq!(wrong(".["), syntax("$end", ".[ "));
        assert_eq!(wrong("{"), syntax("$end", "{"));
        assert_eq!(wrong("1 +"), syntax("$end", "1 +  "));
        assert_eq!(wrong(".a | | .b"), syntax("'|'", ".a | | .b     "));
        assert_eq!(wrong("map(.a"), syntax("$end", "map(.a    "));
        assert_eq!(
            wrong(".a-b"),
            "jq: error: b/0 is not defined at <top-level>, line 1:\n.a-b   \njq: 1 compile error\n"
        );
    }
}
