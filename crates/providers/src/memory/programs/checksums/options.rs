//! The options of the programs for checksums.

use super::digests::{ALGORITHMS, Algorithm, MAX_BLAKE2B_BITS};
use crate::memory::programs::options::{OptionWord, complete, unknown};
use crate::memory::programs::run::{Ending, ProgramRun};

/// The kind of a program for checksums.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChecksumFamily {
    /// `md5sum` and its kin.
    One(Algorithm),
    Cksum,
    Sum,
}

#[derive(Debug)]
pub(super) struct Options {
    pub algorithm: Algorithm,
    /// The algorithm was asked for, or is the program's only one.
    pub is_chosen: bool,
    /// The bits of a BLAKE2b checksum.
    pub bits: usize,
    pub is_check: bool,
    pub is_tagged: bool,
    pub is_binary: bool,
    pub is_quiet: bool,
    pub is_silent: bool,
    pub is_strict: bool,
    pub warns: bool,
    pub ignores_missing: bool,
    pub end: char,
    pub files: Vec<String>,
}

const LONG_OF_ONE: &[&str] =
    &["binary", "check", "ignore-missing", "quiet", "status", "strict", "tag", "text", "warn", "zero"];
const LONG_OF_BLAKE2B: &[&str] = &[
    "binary",
    "check",
    "ignore-missing",
    "length",
    "quiet",
    "status",
    "strict",
    "tag",
    "text",
    "warn",
    "zero",
];
const LONG_OF_CKSUM: &[&str] = &[
    "algorithm",
    "check",
    "ignore-missing",
    "length",
    "quiet",
    "status",
    "strict",
    "tag",
    "untagged",
    "warn",
    "zero",
];
const LONG_OF_SUM: &[&str] = &["sysv"];

impl ChecksumFamily {
    fn long_names(self) -> &'static [&'static str] {
        match self {
            Self::One(Algorithm::Blake2b) => LONG_OF_BLAKE2B,
            Self::One(_) => LONG_OF_ONE,
            Self::Cksum => LONG_OF_CKSUM,
            Self::Sum => LONG_OF_SUM,
        }
    }

    fn long_name(self, letter: char) -> Option<&'static str> {
        let name = match letter {
            'a' => "algorithm",
            'b' => "binary",
            'c' => "check",
            'l' => "length",
            's' => "sysv",
            't' => "text",
            'w' => "warn",
            'z' => "zero",
            _ => return None,
        };
        self.long_names().contains(&name).then_some(name)
    }
}

/// The options while they are read.
struct ChecksumOptionReader<'a> {
    program: &'a str,
    options: Options,
    length: Option<String>,
    /// The options about binary files and tags, if they were given.
    has_binary: bool,
    has_tag: bool,
}

pub(super) fn parse(run: &ProgramRun<'_>, family: ChecksumFamily) -> Result<Options, Ending> {
    let algorithm = match family {
        ChecksumFamily::One(algorithm) => algorithm,
        ChecksumFamily::Cksum => Algorithm::Crc,
        ChecksumFamily::Sum => Algorithm::Bsd,
    };
    let options = Options {
        algorithm,
        is_chosen: family != ChecksumFamily::Cksum,
        bits: MAX_BLAKE2B_BITS,
        is_check: false,
        is_tagged: family == ChecksumFamily::Cksum,
        is_binary: false,
        is_quiet: false,
        is_silent: false,
        is_strict: false,
        warns: false,
        ignores_missing: false,
        end: '\n',
        files: Vec::new(),
    };
    let mut reading =
        ChecksumOptionReader { program: run.name, options, length: None, has_binary: false, has_tag: false };
    let mut words = run.words();
    while let Some(word) = words.next()? {
        let name = match word {
            OptionWord::Operand(operand) => {
                reading.options.files.push(operand);
                continue;
            }
            OptionWord::Short('r') if family == ChecksumFamily::Sum => {
                reading.options.algorithm = Algorithm::Bsd;
                continue;
            }
            OptionWord::Short(letter) => family.long_name(letter).ok_or_else(|| unknown(&word))?,
            OptionWord::Long(name) => complete(&name, family.long_names())?,
        };
        match name {
            "algorithm" => reading.choose(&words.value()?)?,
            "length" => reading.length = Some(words.value()?),
            name => reading.set(name),
        }
    }
    reading.finish()
}

impl ChecksumOptionReader<'_> {
    fn choose(&mut self, name: &str) -> Result<(), Ending> {
        let found = ALGORITHMS.iter().find(|(known, ..)| *known == name);
        let Some((_, _, algorithm)) = found else {
            let valid: String = ALGORITHMS.iter().map(|(known, ..)| format!("\n  - ‘{known}’")).collect();
            let reason = format!("invalid argument ‘{name}’ for ‘--algorithm’\nValid arguments are:{valid}");
            return Err(Ending::usage(reason));
        };
        self.options.algorithm = *algorithm;
        self.options.is_chosen = true;
        Ok(())
    }

    fn set(&mut self, name: &str) {
        let options = &mut self.options;
        match name {
            "binary" => (options.is_binary, self.has_binary) = (true, true),
            "text" => (options.is_binary, self.has_binary) = (false, true),
            "check" => options.is_check = true,
            "quiet" => options.is_quiet = true,
            "status" => options.is_silent = true,
            "strict" => options.is_strict = true,
            "warn" => options.warns = true,
            "ignore-missing" => options.ignores_missing = true,
            "sysv" => options.algorithm = Algorithm::SysV,
            "tag" => (options.is_tagged, self.has_tag) = (true, true),
            "untagged" => options.is_tagged = false,
            _ => options.end = '\0',
        }
    }

    fn finish(mut self) -> Result<Options, Ending> {
        self.take_length()?;
        let options = &self.options;
        if options.is_check && self.has_tag {
            return Err(Ending::usage("the --tag option is meaningless when verifying checksums"));
        }
        if options.is_check && options.end == '\0' {
            return Err(Ending::usage("the --zero option is not supported when verifying checksums"));
        }
        if options.is_check && self.has_binary {
            return Err(Ending::usage(
                "the --binary and --text options are meaningless when verifying checksums",
            ));
        }
        if options.is_check && options.is_chosen && options.algorithm.is_plain_sum() {
            return Err(Ending::refused("--check is not supported with --algorithm={bsd,sysv,crc}"));
        }
        let about_check = [
            (options.ignores_missing, "ignore-missing"),
            (options.is_silent, "status"),
            (options.warns, "warn"),
            (options.is_quiet, "quiet"),
            (options.is_strict, "strict"),
        ];
        for (is_given, name) in about_check {
            if is_given && !options.is_check {
                let reason = format!("the --{name} option is meaningful only when verifying checksums");
                return Err(Ending::usage(reason));
            }
        }
        Ok(self.options)
    }

    fn take_length(&mut self) -> Result<(), Ending> {
        let Some(text) = &self.length else { return Ok(()) };
        let Ok(bits) = text.parse::<usize>() else {
            return Err(Ending::refused(format!("invalid length: ‘{text}’")));
        };
        if self.options.algorithm != Algorithm::Blake2b {
            return Err(Ending::refused("--length is only supported with --algorithm=blake2b"));
        }
        let reason = if bits > MAX_BLAKE2B_BITS {
            "maximum digest length for ‘BLAKE2b’ is 512 bits"
        } else if bits % 8 != 0 {
            "length is not a multiple of 8"
        } else {
            self.options.bits = if bits == 0 { MAX_BLAKE2B_BITS } else { bits };
            return Ok(());
        };
        Err(Ending::refused(format!("invalid length: ‘{text}’\n{}: {reason}", self.program)))
    }
}
