//! The code of a filter, without its comments and texts.

/// The text with blanks in place of comments and of what is in strings.
pub(super) fn code_of(text: &str) -> String {
    let mut code = String::with_capacity(text.len());
    // One for each string that is open: the brackets that are open in what it has spliced in.
    let mut strings: Vec<Option<u32>> = Vec::new();
    let mut letters = text.chars().peekable();
    let blank = |letter: char| if letter == '\n' { "\n".to_owned() } else { " ".repeat(letter.len_utf8()) };
    while let Some(letter) = letters.next() {
        if let Some(None) = strings.last() {
            match letter {
                '"' => {
                    strings.pop();
                    code.push('"');
                }
                '\\' => {
                    code.push(' ');
                    match letters.next() {
                        Some('(') => {
                            code.push('(');
                            if let Some(open) = strings.last_mut() {
                                *open = Some(0);
                            }
                        }
                        Some(letter) => code += &blank(letter),
                        None => {}
                    }
                }
                letter => code += &blank(letter),
            }
            continue;
        }
        code.push(if letter == '#' { ' ' } else { letter });
        match (letter, strings.last_mut()) {
            ('#', _) => {
                while letters.peek().is_some_and(|letter| *letter != '\n') {
                    code += &letters.next().map(blank).unwrap_or_default();
                }
            }
            ('"', _) => strings.push(None),
            ('(', Some(Some(open))) => *open += 1,
            (')', Some(open @ Some(0))) => *open = None,
            (')', Some(Some(open))) => *open -= 1,
            _ => {}
        }
    }
    code
}
