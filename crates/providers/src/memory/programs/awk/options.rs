//! The command line of `awk`, as mawk reads it.

use super::lexer::is_name;
use crate::memory::programs::run::Ending;

/// The exit status of a run that fails.
pub(super) const FAILURE: i32 = 2;

/// The options of a command line.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct AwkOptions {
    pub field_separator: Option<String>,
    pub assignments: Vec<String>,
    pub files: Vec<String>,
    /// The text of the program, unless it is in files.
    pub program: Option<String>,
    pub operands: Vec<String>,
    pub shows_version: bool,
}

fn refused(reason: String) -> Ending {
    Ending::with_status(reason, FAILURE)
}

impl AwkOptions {
    /// Reads a command line.
    pub(super) fn read(args: &[String]) -> Result<Self, Ending> {
        let mut options = Self::default();
        let mut rest = args.iter();
        let mut operands = Vec::new();
        while let Some(arg) = rest.next() {
            let letter = arg.strip_prefix('-').and_then(|option| option.chars().next());
            match letter {
                None => {
                    operands.push(arg.clone());
                    break;
                }
                Some('-') if arg == "--" => break,
                Some(letter @ ('F' | 'f' | 'v' | 'W')) => {
                    let lacking = || refused(format!("option -{letter} lacks argument"));
                    let value = match &arg[2..] {
                        "" => rest.next().ok_or_else(lacking)?.clone(),
                        attached => attached.to_owned(),
                    };
                    options.take(letter, value)?;
                }
                Some(_) => return Err(refused(format!("not an option: {arg}"))),
            }
        }
        operands.extend(rest.cloned());
        if options.files.is_empty() && !operands.is_empty() {
            options.program = Some(operands.remove(0));
        }
        options.operands = operands;
        Ok(options)
    }

    fn take(&mut self, letter: char, value: String) -> Result<(), Ending> {
        match letter {
            'F' => self.field_separator = Some(value),
            'f' => self.files.push(value),
            'v' => {
                let name = value.split_once('=').map(|(name, _)| name);
                if !name.is_some_and(|name| is_name(name.as_bytes())) {
                    return Err(refused(format!("improper assignment: -v {value}")));
                }
                self.assignments.push(value);
            }
            _ => match value.split('=').next().unwrap_or_default() {
                "version" | "v" => self.shows_version = true,
                "interactive" | "posix_space" | "random" | "sprintf" => {}
                _ => return Err(refused(format!("vacuous option: -W {value}"))),
            },
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<AwkOptions, String> {
        let args: Vec<String> = line.split(' ').map(str::to_owned).collect();
        AwkOptions::read(&args).map_err(|ending| match ending {
            Ending::Refused { reason, .. } => reason,
            other => format!("{other:?}"),
        })
    }

    #[test]
    fn options_stand_before_the_program() {
        let options = read("-F: -v a=1 -vb=2 {print} f -x").unwrap();
        assert_eq!(options.field_separator.as_deref(), Some(":"));
        assert_eq!(options.assignments, ["a=1", "b=2"]);
        assert_eq!(
            (options.program.as_deref(), options.operands.join(" ").as_str()),
            (Some("{print}"), "f -x")
        );
        let options = read("-f p -- f").unwrap();
        assert_eq!((options.files.join(" ").as_str(), options.operands.join(" ").as_str()), ("p", "f"));
        assert_eq!(read("-x").unwrap_err(), "not an option: -x");
        assert_eq!(read("-v 1=2 1").unwrap_err(), "improper assignment: -v 1=2");
        assert_eq!(read("-f").unwrap_err(), "option -f lacks argument");
    }
}
