//! Changes to scripts for the interpreter's `sed`. Its text of `a`, `c` and `i` has no escapes, and it takes the escaped bytes
//! of a UTF-8 character for several characters. Scripts in files
//! (`-f`) are left as they are: nothing here can read a file.

/// Changes the scripts on a command line.
pub(super) fn adjust(args: &mut [String]) {
    let mut has_script = false;
    let mut first_operand = None;
    let mut at = 0;
    while at < args.len() {
        let arg = args[at].clone();
        if arg == "--" {
            first_operand = first_operand.or(Some(at + 1));
            break;
        } else if let Some(script) = arg.strip_prefix("--expression=") {
            has_script = true;
            args[at] = format!("--expression={}", adjusted(script));
        } else if arg.starts_with("--") {
            has_script |= arg.starts_with("--expression") || arg.starts_with("--file");
            if arg == "--expression" && at + 1 < args.len() {
                args[at + 1] = adjusted(&args[at + 1]);
            }
            at += usize::from(matches!(arg.as_str(), "--expression" | "--file" | "--line-length"));
        } else if arg.len() > 1 && arg.starts_with('-') {
            // The first option letter with a value. The value follows the letter.
            let letter = arg.find(['e', 'f', 'i', 'l']);
            let kind = letter.map(|letter| arg.as_bytes()[letter]);
            has_script |= matches!(kind, Some(b'e' | b'f'));
            let is_attached = letter.is_some_and(|letter| letter + 1 < arg.len());
            match (letter, kind) {
                (Some(letter), Some(b'e')) if is_attached => {
                    args[at] = format!("{}{}", &arg[..=letter], adjusted(&arg[letter + 1..]));
                }
                (_, Some(b'e')) if at + 1 < args.len() => args[at + 1] = adjusted(&args[at + 1]),
                _ => {}
            }
            at += usize::from(!is_attached && matches!(kind, Some(b'e' | b'f' | b'l')));
        } else {
            first_operand = first_operand.or(Some(at));
        }
        at += 1;
    }
    if let Some(script) = first_operand.filter(|_| !has_script).and_then(|at| args.get_mut(at)) {
        *script = adjusted(script);
    }
}

/// Changes one script. A script that can't be parsed stays unchanged.
fn adjusted(script: &str) -> String {
    if !script.contains('\\') {
        return script.to_owned();
    }
    let mut reader = ScriptReader { rest: script, out: String::new() };
    match reader.script() {
        Some(()) => reader.out,
        None => script.to_owned(),
    }
}

/// A parser that copies a script.
struct ScriptReader<'a> {
    rest: &'a str,
    out: String,
}

impl ScriptReader<'_> {
    /// Reads all commands. `None`: this is not a valid script.
    fn script(&mut self) -> Option<()> {
        loop {
            self.copy_while(|letter| letter.is_whitespace() || matches!(letter, ';' | '{' | '}'));
            if self.rest.is_empty() {
                return Some(());
            }
            self.addresses()?;
            match self.copy()? {
                'a' | 'c' | 'i' => self.text(),
                's' => {
                    let end = self.copy()?;
                    self.part(end)?;
                    self.part(end)?;
                    self.flags();
                }
                'y' => {
                    let end = self.copy()?;
                    self.part(end)?;
                    self.part(end)?;
                }
                ':' | 'r' | 'R' | 'w' | 'W' | 'e' | '#' => self.copy_while(|letter| letter != '\n'),
                'b' | 't' | 'T' | 'q' | 'Q' | 'l' | 'L' | 'v' => {
                    self.copy_while(|letter| !matches!(letter, '\n' | ';' | '}'));
                }
                letter if letter.is_ascii_alphabetic() || matches!(letter, '{' | '}' | '=') => {}
                _ => return None,
            }
        }
    }

    /// Copies a character.
    fn copy(&mut self) -> Option<char> {
        let letter = self.rest.chars().next()?;
        self.rest = &self.rest[letter.len_utf8()..];
        self.out.push(letter);
        Some(letter)
    }

    fn copy_while(&mut self, is_one: impl Fn(char) -> bool) {
        let end = self.rest.find(|letter| !is_one(letter)).unwrap_or(self.rest.len());
        self.out += &self.rest[..end];
        self.rest = &self.rest[end..];
    }

    fn addresses(&mut self) -> Option<()> {
        loop {
            self.copy_while(|letter| {
                letter.is_whitespace()
                    || letter.is_ascii_digit()
                    || matches!(letter, '$' | ',' | '~' | '+' | '!')
            });
            let end = match self.rest.chars().next() {
                Some('/') => self.copy()?,
                Some('\\') => {
                    self.copy()?;
                    self.copy()?
                }
                _ => return Some(()),
            };
            self.part(end)?;
            self.copy_while(|letter| matches!(letter, 'I' | 'M'));
        }
    }

    /// Copies a pattern or a replacement, up to its delimiter.
    fn part(&mut self, end: char) -> Option<()> {
        loop {
            if let Some((letter, rest)) = letter_of_bytes(self.rest) {
                self.out.push(letter);
                self.rest = rest;
                continue;
            }
            match self.copy()? {
                letter if letter == end => return Some(()),
                '\\' => drop(self.copy()?),
                _ => {}
            }
        }
    }

    /// Copies the flags of `s`. After `w` comes the name of a file.
    fn flags(&mut self) {
        self.copy_while(|letter| {
            letter.is_ascii_digit() || matches!(letter, 'g' | 'p' | 'i' | 'I' | 'm' | 'M' | 'e')
        });
        if self.rest.starts_with('w') {
            self.copy_while(|letter| letter != '\n');
        }
    }

    /// Copies the text of a command, up to a line break without a backslash before it.
    fn text(&mut self) {
        self.copy_while(|letter| letter == ' ' || letter == '\t');
        // The first backslash keeps the spaces after it.
        if self.rest.starts_with('\\') {
            self.copy();
            if self.rest.starts_with('\n') {
                self.copy();
            }
        }
        while let Some(letter) = self.rest.chars().next() {
            if letter != '\\' {
                self.copy();
                if letter == '\n' {
                    return;
                }
                continue;
            }
            let escape = &self.rest[1..];
            let (meant, taken) = match meaning(self.rest) {
                Some(('\n' | '\\', taken)) if escape.starts_with('\n') || escape.starts_with('\\') => {
                    (None, taken)
                }
                Some((letter, taken)) => (Some(letter), taken),
                None => (None, escape.chars().next().map_or(0, char::len_utf8)),
            };
            match meant {
                Some(letter @ ('\n' | '\\')) => self.out.extend(['\\', letter]),
                Some(letter) => self.out.push(letter),
                None => self.out += &self.rest[..=taken],
            }
            self.rest = &self.rest[1 + taken..];
        }
    }
}

/// The letter that an escape stands for, and the bytes behind its backslash that it takes.
fn meaning(text: &str) -> Option<(char, usize)> {
    let escape = &text[1..];
    let number = |radix: u32, digits: usize| {
        let end = escape.bytes().skip(1).take(digits).take_while(|digit| char::from(*digit).is_digit(radix));
        let end = 1 + end.count();
        let value = u8::from_str_radix(&escape[1..end], radix).ok().filter(u8::is_ascii)?;
        Some((char::from(value), end))
    };
    let plain = |letter| Some((letter, 1));
    match escape.chars().next()? {
        'n' => plain('\n'),
        't' => plain('\t'),
        'r' => plain('\r'),
        'a' => plain('\x07'),
        'f' => plain('\x0c'),
        'v' => plain('\x0b'),
        'x' => letter_of_bytes(text)
            .map(|(letter, rest)| (letter, escape.len() - rest.len()))
            .or_else(|| number(16, 2)),
        'd' => number(10, 3),
        'o' => number(8, 3),
        letter @ ('\n' | '\\') => plain(letter),
        _ => None,
    }
}

/// The letter beyond ASCII that the text begins with as `\x..` for each byte, and what is behind it.
fn letter_of_bytes(text: &str) -> Option<(char, &str)> {
    let mut bytes = [0; 4];
    let mut rest = text;
    for len in 1..=bytes.len() {
        let digits = rest.strip_prefix("\\x")?.get(..2)?;
        bytes[len - 1] = u8::from_str_radix(digits, 16).ok().filter(|byte| !byte.is_ascii())?;
        rest = &rest[4..];
        if let Ok(letter) = std::str::from_utf8(&bytes[..len]) {
            return letter.chars().next().map(|letter| (letter, rest));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_a_command_has_escapes() {
        assert_eq!(adjusted(r"1,5c\    a(\n  b\t)"), "1,5c\\    a(\\\n  b\t)");
        assert_eq!(adjusted(r"/x\/y/!i a\\b\x41\d066"), r"/x\/y/!i a\\bAB");
        assert_eq!(adjusted(r"$a\ttab\q"), r"$a\ttab\q");
        assert_eq!(adjusted("2a\\\nfoo\\nbar\\\nbaz\np"), "2a\\\nfoo\\\nbar\\\nbaz\np");
        assert_eq!(adjusted(r"a -\xc3\xa9"), "a -é");
    }

    #[test]
    fn bytes_of_a_letter_are_that_letter() {
        assert_eq!(adjusted(r"1s/^\xef\xbb\xbf//"), "1s/^\u{feff}//");
        assert_eq!(adjusted(r"s/\xff\n/\x41/;s,\\xc3\xa9,\xc3\xa9,g"), r"s/\xff\n/\x41/;s,\\xc3\xa9,é,g");
        assert_eq!(adjusted(r"s/a\n/"), r"s/a\n/");
    }

    #[test]
    fn scripts_stand_behind_options_or_first() {
        let changed = |line: &str| {
            let mut args: Vec<String> = line.split(' ').map(str::to_owned).collect();
            adjust(&mut args);
            args.join(" ")
        };
        assert_eq!(changed(r"-i.c -n 1ax\ty ax\ty"), "-i.c -n 1ax\ty ax\\ty");
        assert_eq!(changed(r"-ne 1ax\ty ax\ty"), "-ne 1ax\ty ax\\ty");
        assert_eq!(changed(r"--expression=ax\ty -f ax\ty ax\ty"), "--expression=ax\ty -f ax\\ty ax\\ty");
        assert_eq!(changed(r"-E -- ax\ty ax\ty"), "-E -- ax\ty ax\\ty");
    }
}
