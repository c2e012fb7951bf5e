//! `expr`: an expression is worked out. Numbers have at most 127 bits, and patterns no references
//! back.

use async_trait::async_trait;

use super::basic_regex;
use super::run::{Ending, ProgramRun, ShellProgram};

/// The most parentheses and words such as `match` within one another.
const MAX_DEPTH: usize = 200;

/// The binary operators, those that bind least first.
const LEVELS: &[&[&str]] =
    &[&["|"], &["&"], &["<", "<=", "=", "==", "!=", ">=", ">"], &["+", "-"], &["*", "/", "%"], &[":"]];

pub(super) struct Expr;

#[async_trait]
impl ShellProgram for Expr {
    async fn run(&self, run: &ProgramRun<'_>) -> Result<i32, Ending> {
        let args = match run.args {
            [first, rest @ ..] if first == "--" => rest,
            args => args,
        };
        if args.is_empty() {
            return Err(Ending::usage("missing operand"));
        }
        let mut expression = Expression { args, at: 0, depth: 0 };
        let whole = expression.level(0, true).and_then(|value| match expression.args.get(expression.at) {
            None => Ok(value),
            Some(extra) => Err(format!("syntax error: unexpected argument ‘{extra}’")),
        });
        let value = whole.map_err(Ending::refused)?;
        run.print(format!("{value}\n")).await?;
        Ok(i32::from(is_null(&value)))
    }

    fn usage_status(&self) -> i32 {
        2
    }
}

/// The words of an expression, and how far they are read.
struct Expression<'a> {
    args: &'a [String],
    at: usize,
    depth: usize,
}

/// Tells whether a value counts as false: it is empty or nought.
fn is_null(value: &str) -> bool {
    let digits = value.strip_prefix('-').unwrap_or(value);
    value.is_empty() || !digits.is_empty() && digits.bytes().all(|byte| byte == b'0')
}

fn number(value: &str) -> Result<i128, String> {
    let digits = value.strip_prefix('-').unwrap_or(value);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err("non-integer argument".to_owned());
    }
    value.parse().map_err(|_| too_large(value))
}

fn too_large(value: &str) -> String {
    format!("{value}: Numerical result out of range")
}

impl Expression<'_> {
    fn peek(&self) -> Option<&str> {
        self.args.get(self.at).map(String::as_str)
    }

    /// Reads the next word, which must be there.
    fn next(&mut self) -> Result<&str, String> {
        let Some(word) = self.args.get(self.at) else {
            let before = &self.args[self.at - 1];
            return Err(format!("syntax error: missing argument after ‘{before}’"));
        };
        self.at += 1;
        Ok(word)
    }

    /// Works out the operators of a level and above. Without `counts` it is only read.
    fn level(&mut self, level: usize, counts: bool) -> Result<String, String> {
        let Some(operators) = LEVELS.get(level) else { return self.operand(counts) };
        let mut left = self.level(level + 1, counts)?;
        while let Some(operator) = self.peek().filter(|word| operators.contains(word)).map(str::to_owned) {
            self.at += 1;
            let right_counts = counts
                && match operator.as_str() {
                    "|" => is_null(&left),
                    "&" => !is_null(&left),
                    _ => true,
                };
            let right = self.level(level + 1, right_counts)?;
            if counts {
                left = apply(&operator, left, right)?;
            }
        }
        Ok(left)
    }

    fn operand(&mut self, counts: bool) -> Result<String, String> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err("syntax error: too many parentheses".to_owned());
        }
        let value = self.word_or_call(counts)?;
        self.depth -= 1;
        Ok(value)
    }

    fn word_or_call(&mut self, counts: bool) -> Result<String, String> {
        let word = self.next()?.to_owned();
        match word.as_str() {
            "(" => {
                let value = self.level(0, counts)?;
                match self.peek() {
                    Some(")") => self.at += 1,
                    _ => {
                        let before = &self.args[self.at - 1];
                        return Err(format!("syntax error: expecting ')' after ‘{before}’"));
                    }
                }
                Ok(value)
            }
            ")" => Err("syntax error: unexpected ')'".to_owned()),
            "+" => Ok(self.next()?.to_owned()),
            "length" => Ok(self.operand(counts)?.chars().count().to_string()),
            "match" => {
                let (text, pattern) = (self.operand(counts)?, self.operand(counts)?);
                if counts { matched(&text, &pattern) } else { Ok(String::new()) }
            }
            "index" => {
                let (text, letters) = (self.operand(counts)?, self.operand(counts)?);
                let found = text.chars().position(|letter| letters.contains(letter));
                Ok(found.map_or(0, |at| at + 1).to_string())
            }
            "substr" => {
                let (text, from, len) = (self.operand(counts)?, self.operand(counts)?, self.operand(counts)?);
                Ok(part(&text, &from, &len))
            }
            _ => Ok(word),
        }
    }
}

/// The part of a text that begins at a letter, counted from one.
fn part(text: &str, from: &str, len: &str) -> String {
    match (number(from), number(len)) {
        (Ok(from), Ok(len)) if from > 0 && len > 0 => {
            let [skipped, taken] = [from - 1, len].map(|count| usize::try_from(count).unwrap_or(usize::MAX));
            text.chars().skip(skipped).take(taken).collect()
        }
        _ => String::new(),
    }
}

/// Returns what a pattern matches at the beginning: its first group, or the number of letters.
fn matched(text: &str, pattern: &str) -> Result<String, String> {
    let regex = basic_regex::compile(pattern, true)?;
    let found = regex.captures(text.as_bytes());
    if regex.captures_len() > 1 {
        let group = found.and_then(|found| found.get(1).map(|group| group.as_bytes().to_vec()));
        return Ok(String::from_utf8_lossy(&group.unwrap_or_default()).into_owned());
    }
    let len = found.and_then(|found| found.get(0).map(|whole| whole.end())).unwrap_or(0);
    Ok(String::from_utf8_lossy(&text.as_bytes()[..len]).chars().count().to_string())
}

fn apply(operator: &str, left: String, right: String) -> Result<String, String> {
    let truth = |is_true: bool| Ok(i32::from(is_true).to_string());
    match operator {
        "|" if !is_null(&left) => return Ok(left),
        "|" => return Ok(if is_null(&right) { "0".to_owned() } else { right }),
        "&" => return Ok(if is_null(&left) || is_null(&right) { "0".to_owned() } else { left }),
        ":" => return matched(&left, &right),
        _ => {}
    }
    if LEVELS[2].contains(&operator) {
        let order = match (number(&left), number(&right)) {
            (Ok(left), Ok(right)) => left.cmp(&right),
            _ => left.cmp(&right),
        };
        return truth(match operator {
            "<" => order.is_lt(),
            "<=" => order.is_le(),
            "=" | "==" => order.is_eq(),
            "!=" => order.is_ne(),
            ">=" => order.is_ge(),
            _ => order.is_gt(),
        });
    }
    let (left, right) = (number(&left)?, number(&right)?);
    if matches!(operator, "/" | "%") && right == 0 {
        return Err("division by zero".to_owned());
    }
    let result = match operator {
        "+" => left.checked_add(right),
        "-" => left.checked_sub(right),
        "*" => left.checked_mul(right),
        "/" => left.checked_div(right),
        _ => left.checked_rem(right),
    };
    result.map(|result| result.to_string()).ok_or_else(|| too_large(operator))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(line: &str) -> Result<String, String> {
        let args: Vec<String> = line.split(' ').map(str::to_owned).collect();
        Expression { args: &args, at: 0, depth: 0 }.level(0, true)
    }

    #[test]
    fn operators_bind_as_they_should() {
        for (line, result) in [
            ("1 + 2 * 3", "7"),
            ("( 1 + 2 ) * 3", "9"),
            ("10 - 3 - 2", "5"),
            ("1 | 1 / 0", "1"),
            ("0 & 1 / 0", "0"),
            ("2 + 3 : 3", "3"),
            ("10 < 9a", "1"),
            ("abc : a\\(.\\)", "b"),
            ("match ünï .*", "3"),
            ("+ length", "length"),
        ] {
            assert_eq!(value(line).as_deref(), Ok(result), "{line}");
        }
    }

    #[test]
    fn a_wrong_expression_is_refused_in_the_words_of_gnu() {
        for (line, reason) in [
            ("1 +", "syntax error: missing argument after ‘+’"),
            ("( 1", "syntax error: expecting ')' after ‘1’"),
            ("1 / 0", "division by zero"),
            ("a + 1", "non-integer argument"),
            (&"( ".repeat(300), "syntax error: too many parentheses"),
        ] {
            assert_eq!(value(line), Err(reason.to_owned()), "{line}");
        }
    }
}
