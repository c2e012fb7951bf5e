//! The command line of `sort`: options, and keys with options of their own.

use super::choices::choose;
use super::listed_files::refuse_operands;
use super::options::{OptionWord, Words, complete, unknown};
use super::quoting::{curly, quoted};
use super::run::Ending;
use super::sort_keys::{KeyEnd, KeyOrder, KeyStart, SortKey, SortKind};

const LONG: &[&str] = &[
    "batch-size",
    "buffer-size",
    "check",
    "compress-program",
    "debug",
    "dictionary-order",
    "field-separator",
    "files0-from",
    "general-numeric-sort",
    "human-numeric-sort",
    "ignore-case",
    "ignore-leading-blanks",
    "ignore-nonprinting",
    "key",
    "merge",
    "month-sort",
    "numeric-sort",
    "output",
    "parallel",
    "random-sort",
    "random-source",
    "reverse",
    "sort",
    "stable",
    "temporary-directory",
    "unique",
    "version-sort",
    "zero-terminated",
];

const KINDS: &[(&str, char)] = &[
    ("general-numeric", 'g'),
    ("human-numeric", 'h'),
    ("month", 'M'),
    ("numeric", 'n'),
    ("random", 'R'),
    ("version", 'V'),
];

/// The values of `--check`. The last one reports the first unsorted line.
const CHECKS: &[(&str, bool)] = &[("quiet", true), ("silent", true), ("diagnose-first", false)];

/// The letters of orders, which may also follow a key.
pub(super) const ORDERS: &str = "bdfghiMnRrV";

#[derive(Debug, Default)]
pub(super) struct SortOptions {
    pub keys: Vec<SortKey>,
    pub order: KeyOrder,
    pub separator: Option<u8>,
    /// Set if files are only checked; `true`: without messages.
    pub check: Option<bool>,
    pub is_unique: bool,
    pub is_stable: bool,
    /// Set if the files are already sorted.
    pub is_merge: bool,
    pub end: u8,
    pub output: Option<String>,
    pub list: Option<String>,
    pub files: Vec<String>,
}

impl SortOptions {
    /// Completes the keys: each inherits the global order, and without keys the whole line is the key.
    fn set_defaults(&mut self) {
        let order = self.order;
        if self.keys.is_empty() {
            self.keys.push(SortKey::whole_line(order));
        }
        for key in &mut self.keys {
            key.inherit(order);
        }
        if self.files.is_empty() && self.list.is_none() {
            self.files.push("-".to_owned());
        }
    }
}

pub(super) fn parse(args: &[String]) -> Result<SortOptions, Ending> {
    let mut options = SortOptions { end: b'\n', ..SortOptions::default() };
    let args = new_forms(args);
    let mut words = Words::new(&args);
    while let Some(word) = words.next()? {
        match &word {
            OptionWord::Operand(operand) => options.files.push(operand.clone()),
            OptionWord::Short(letter) => short(*letter, &word, &mut words, &mut options)?,
            OptionWord::Long(name) => long(complete(name, LONG)?, &mut words, &mut options)?,
        }
    }
    if options.check.is_some() && options.files.len() > 1 {
        let extra = quoted(&options.files[1]);
        let letter = if options.check == Some(true) { 'C' } else { 'c' };
        return Err(Ending::refused(format!("extra operand {extra} not allowed with -{letter}")));
    }
    refuse_operands(options.list.as_deref(), &options.files)?;
    options.set_defaults();
    options.keys.iter().try_for_each(|key| key.order.check())?;
    Ok(options)
}

fn short(
    letter: char,
    word: &OptionWord,
    words: &mut Words,
    options: &mut SortOptions,
) -> Result<(), Ending> {
    match letter {
        'c' => set_check(options, false)?,
        'C' => set_check(options, true)?,
        'k' => options.keys.push(key(&words.value()?)?),
        'm' => options.is_merge = true,
        'o' => set_output(options, words.value()?)?,
        's' => options.is_stable = true,
        'S' | 'T' => drop(words.value()?),
        't' => set_separator(options, &words.value()?)?,
        'u' => options.is_unique = true,
        'y' => drop(words.attached()?),
        'z' => options.end = 0,
        letter if ORDERS.contains(letter) => options.order.add(letter),
        _ => return Err(unknown(word)),
    }
    Ok(())
}

fn long(name: &'static str, words: &mut Words, options: &mut SortOptions) -> Result<(), Ending> {
    match name {
        "check" => {
            let form = words.attached()?;
            let is_quiet = form.map(|form| choose(CHECKS, &form, "--check")).transpose()?;
            set_check(options, is_quiet.unwrap_or(false))?;
        }
        "files0-from" => options.list = Some(words.value()?),
        "key" => options.keys.push(key(&words.value()?)?),
        "output" => set_output(options, words.value()?)?,
        "field-separator" => set_separator(options, &words.value()?)?,
        "sort" => options.order.add(choose(KINDS, &words.value()?, "--sort")?),
        "stable" => options.is_stable = true,
        "unique" => options.is_unique = true,
        "zero-terminated" => options.end = 0,
        "merge" => options.is_merge = true,
        // These options affect only the speed, not the output.
        "batch-size" | "buffer-size" | "compress-program" | "parallel" | "temporary-directory" => {
            words.value()?;
        }
        "debug" | "random-source" => return Err(unknown(&OptionWord::Long(name.to_owned()))),
        "dictionary-order" => options.order.add('d'),
        "general-numeric-sort" => options.order.add('g'),
        "human-numeric-sort" => options.order.add('h'),
        "ignore-case" => options.order.add('f'),
        "ignore-leading-blanks" => options.order.add('b'),
        "ignore-nonprinting" => options.order.add('i'),
        "month-sort" => options.order.add('M'),
        "numeric-sort" => options.order.add('n'),
        "random-sort" => options.order.add('R'),
        "reverse" => options.order.add('r'),
        _ => options.order.add('V'),
    }
    Ok(())
}

fn set_check(options: &mut SortOptions, is_quiet: bool) -> Result<(), Ending> {
    if options.check.replace(is_quiet).is_some_and(|before| before != is_quiet) {
        return Err(Ending::refused("options '-cC' are incompatible"));
    }
    Ok(())
}

fn set_output(options: &mut SortOptions, name: String) -> Result<(), Ending> {
    if options.output.as_ref().is_some_and(|before| *before != name) {
        return Err(Ending::refused("multiple output files specified"));
    }
    options.output = Some(name);
    Ok(())
}

fn set_separator(options: &mut SortOptions, value: &str) -> Result<(), Ending> {
    let separator = match value.as_bytes() {
        [] => return Err(Ending::refused("empty tab")),
        [one] => *one,
        b"\\0" => 0,
        _ => return Err(Ending::refused(format!("multi-character tab {}", curly(value)))),
    };
    if options.separator.is_some_and(|before| before != separator) {
        return Err(Ending::refused("incompatible tabs"));
    }
    options.separator = Some(separator);
    Ok(())
}

/// Converts keys in the old form, `+1 -2`, to the new form.
fn new_forms(args: &[String]) -> Vec<String> {
    let is_old = |arg: &str, sign: char| {
        arg.strip_prefix(sign).is_some_and(|rest| rest.starts_with(|digit: char| digit.is_ascii_digit()))
    };
    let mut all = Vec::new();
    let mut rest = args.iter().peekable();
    while let Some(arg) = rest.next() {
        if arg == "--" {
            all.push(arg.clone());
            all.extend(rest.cloned());
            return all;
        }
        let start = arg.strip_prefix('+').filter(|_| is_old(arg, '+')).and_then(old_place);
        let Some((field, char, orders)) = start else {
            all.push(arg.clone());
            continue;
        };
        let mut form = format!("-k{}.{}{orders}", field.saturating_add(1), char.saturating_add(1));
        let end = rest.next_if(|next| is_old(next, '-')).and_then(|next| old_place(&next[1..]));
        if let Some((field, char, orders)) = end {
            let place =
                if char == 0 { format!("{field}") } else { format!("{}.{char}", field.saturating_add(1)) };
            form += &format!(",{place}{orders}");
        }
        all.push(form);
    }
    all
}

fn old_place(text: &str) -> Option<(usize, usize, &str)> {
    let (field, rest) = digits(text);
    let (char, rest) = rest.strip_prefix('.').map_or(("0", rest), digits);
    Some((field.parse().ok()?, char.parse().ok()?, rest))
}

fn digits(text: &str) -> (&str, &str) {
    text.split_at(text.bytes().take_while(u8::is_ascii_digit).count())
}

/// Reads a key: `FIELD[.CHAR][ORDERS][,FIELD[.CHAR][ORDERS]]`.
fn key(text: &str) -> Result<SortKey, Ending> {
    let refused =
        |reason: &str| Ending::refused(format!("{reason}: invalid field specification {}", curly(text)));
    let number = |rest: &mut &str, where_: &str| {
        let (found, behind) = digits(rest);
        if found.is_empty() {
            return Err(Ending::refused(format!("{where_}: invalid count at start of {}", curly(rest))));
        }
        *rest = behind;
        Ok(found.parse().unwrap_or(usize::MAX))
    };
    let mut order = KeyOrder::default();
    let mut rest = text;
    let field = number(&mut rest, "invalid number at field start")?;
    if field == 0 {
        return Err(refused("field number is zero"));
    }
    let mut char = 1;
    if let Some(behind) = rest.strip_prefix('.') {
        rest = behind;
        char = number(&mut rest, "invalid number after '.'")?;
        if char == 0 {
            return Err(refused("character offset is zero"));
        }
    }
    let mut skips_blanks = orders(&mut rest, &mut order);
    let start = KeyStart { field: field - 1, char: char - 1, skips_blanks };
    let mut end = None;
    if let Some(behind) = rest.strip_prefix(',') {
        rest = behind;
        let field = number(&mut rest, "invalid number after ','")?;
        if field == 0 {
            return Err(refused("field number is zero"));
        }
        let mut char = 0;
        if let Some(behind) = rest.strip_prefix('.') {
            rest = behind;
            char = number(&mut rest, "invalid number after '.'")?;
        }
        skips_blanks = orders(&mut rest, &mut order);
        end = Some(KeyEnd { field: field - 1, char, skips_blanks });
    }
    if !rest.is_empty() {
        return Err(refused("stray character in field spec"));
    }
    Ok(SortKey { start, end, order })
}

/// Reads the orders of a key. Returns whether leading blanks of the field are ignored.
fn orders(rest: &mut &str, order: &mut KeyOrder) -> bool {
    let mut skips_blanks = false;
    while let Some(letter) = rest.chars().next().filter(|letter| ORDERS.contains(*letter)) {
        *rest = &rest[1..];
        if letter == 'b' {
            skips_blanks = true;
        } else {
            order.add(letter);
        }
    }
    skips_blanks
}

impl KeyOrder {
    fn add(&mut self, letter: char) {
        match letter {
            'b' => self.skips_blanks = true,
            'd' => self.is_dictionary = true,
            'f' => self.folds_case = true,
            'i' => self.is_printable = true,
            'r' => self.is_reverse = true,
            'g' => self.add_kind(SortKind::General),
            'h' => self.add_kind(SortKind::Human),
            'M' => self.add_kind(SortKind::Month),
            'n' => self.add_kind(SortKind::Number),
            'R' => self.add_kind(SortKind::Random),
            _ => self.add_kind(SortKind::Version),
        }
    }
}
