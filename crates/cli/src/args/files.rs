//! The arguments of `cp`, `read`, `write`, `glob`, `grep` and `watch`: files.

use clap::Args;

use super::side::Side;
use super::values::parse_mode;
use crate::sizes::parse_bytes;

const CP_EXAMPLES: &str = "\
Examples:
  eyot cp notes.txt builder:                   into the working directory
  eyot cp ./src builder:/workspace/            a tree, to /workspace/src
  eyot cp ./src/. builder:/workspace           what is in it
  eyot cp builder:/workspace/out ./results     a tree, out
  eyot cp builder:app.log - | tail             a file to stdout
  date | eyot cp - builder:/tmp/now            a file from stdin
  eyot cp builder:/workspace tester:/tmp/      from sandbox to sandbox

NAME:PATH is inside a sandbox; write ./a:b for a file of the host with a colon in its name. \
Symbolic links in a tree are copied as links. Coming out of a sandbox, what could leave DST is \
not copied: links that lead out of the tree, devices, FIFOs are named and left out, and the \
exit code is 125. setuid bits are dropped. What is copied is data: nothing of it is run.";

/// `eyot cp`
#[derive(Debug, Args)]
#[command(after_help = CP_EXAMPLES)]
pub struct CpArgs {
    /// Refuse to copy more than this
    #[arg(long, value_name = "SIZE", default_value = "4g", value_parser = parse_bytes)]
    pub max_bytes: u64,
    /// The source: a file or a directory, NAME:PATH, or `-` for stdin
    #[arg(value_name = "SRC", value_parser = Side::parse)]
    pub source: Side,
    /// The target: a path, an existing directory, NAME:PATH, or `-` for stdout
    #[arg(value_name = "DST", value_parser = Side::parse)]
    pub destination: Side,
}

const READ_EXAMPLES: &str = "\
Examples:
  eyot read builder notes.txt
  eyot read builder /var/log/big.log --offset 1000000 --limit 4k
  eyot read --json builder notes.txt

With --json: {\"path\",\"offset\",\"bytes\",\"content\"}, or \"content_base64\" where it is not UTF-8.";

/// `eyot read`
#[derive(Debug, Args)]
#[command(after_help = READ_EXAMPLES)]
pub struct ReadArgs {
    /// The sandbox's name or id
    pub name: String,
    /// The file, relative to the sandbox's working directory
    pub path: String,
    /// The first byte, counted from 0
    #[arg(long, value_name = "SIZE", default_value = "0", value_parser = parse_bytes)]
    pub offset: u64,
    /// The most bytes to print, such as 4k
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    pub limit: Option<u64>,
}

const WRITE_EXAMPLES: &str = "\
Examples:
  echo hello | eyot write builder notes.txt
  eyot write builder notes.txt --content 'hello'
  eyot write builder run.sh --mode 755 < run.sh
  date | eyot write builder log.txt --append

The file is replaced as a whole or not at all; missing parent directories are made.";

/// `eyot write`
#[derive(Debug, Args)]
#[command(after_help = WRITE_EXAMPLES)]
pub struct WriteArgs {
    /// The sandbox's name or id
    pub name: String,
    /// The file, relative to the sandbox's working directory
    pub path: String,
    /// The content; without this option, stdin
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub content: Option<String>,
    /// Append to the file
    #[arg(long, conflicts_with = "create_new")]
    pub append: bool,
    /// Fail if the file exists
    #[arg(long)]
    pub create_new: bool,
    /// Permission bits, in octal
    #[arg(long, value_name = "MODE", value_parser = parse_mode)]
    pub mode: Option<u32>,
}

const GLOB_EXAMPLES: &str = "\
Examples:
  eyot glob builder '*.md'
  eyot glob builder 'src/**/*.{rs,toml}'
  eyot glob builder '*.so*' --root /usr/lib --max 50

`*` and `?` stay within a name, `**` crosses directories. Quote the pattern.";

/// `eyot glob`
#[derive(Debug, Args)]
#[command(after_help = GLOB_EXAMPLES)]
pub struct GlobArgs {
    /// The sandbox's name or id
    pub name: String,
    /// The pattern, matched against paths relative to the root
    pub pattern: String,
    /// Where to look, relative to the sandbox's working directory
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub root: String,
    /// Also match names that begin with a dot
    #[arg(long)]
    pub hidden: bool,
    /// The most paths to print
    #[arg(long, value_name = "N", default_value_t = 1000)]
    pub max: u32,
}

const GREP_EXAMPLES: &str = "\
Examples:
  eyot grep builder 'fn \\w+_test' src
  eyot grep builder -F 'a[0]' --include '*.c'
  eyot grep builder -i todo

Prints path:line:text. Exits with 1 when nothing matches, as grep does.";

/// `eyot grep`
#[derive(Debug, Args)]
#[command(after_help = GREP_EXAMPLES)]
pub struct GrepArgs {
    /// The sandbox's name or id
    pub name: String,
    /// A regular expression (Rust's syntax)
    #[arg(allow_hyphen_values = true)]
    pub pattern: String,
    /// A file or a directory to search, relative to the sandbox's working directory
    #[arg(default_value = ".")]
    pub path: String,
    /// Treat the pattern as plain text
    #[arg(long, short = 'F')]
    pub fixed_strings: bool,
    /// Ignore case
    #[arg(long, short)]
    pub ignore_case: bool,
    /// Only files whose name matches this glob
    #[arg(long, value_name = "GLOB")]
    pub include: Option<String>,
    /// The most matches to print
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub max: u32,
    /// Cut lines to this many bytes
    #[arg(long, value_name = "N", default_value_t = 500)]
    pub max_line_bytes: u32,
}

const WATCH_EXAMPLES: &str = "\
Examples:
  eyot watch builder                           all below the working directory
  eyot watch builder src --no-recursive        only the names in src itself
  eyot watch builder app.log                   one file, until it is gone
  eyot watch --json builder | jq -r 'select(.kind == \"created\").path'

One line for each event, until Ctrl-C or until the place itself is removed:
  created PATH     it was made or moved in; directories end with a slash
  modified PATH    its content, permissions, owner or times changed
  removed PATH     it was removed or moved out
  renamed OLD -> NEW
  overflow PATH    events were lost: look again; what follows is complete
A file that `eyot write` replaces shows as a file `.eyot-…` that is created and renamed. \
Symbolic links below the place are not followed.";

/// `eyot watch`
#[derive(Debug, Args)]
#[command(after_help = WATCH_EXAMPLES)]
pub struct WatchArgs {
    /// The sandbox's name or id
    pub name: String,
    /// A file or a directory, relative to the sandbox's working directory
    #[arg(default_value = ".")]
    pub path: String,
    /// Watch all directories below it too; this is the default
    #[arg(long, short, overrides_with = "no_recursive")]
    pub recursive: bool,
    /// Only the names in the directory itself
    #[arg(long, overrides_with = "recursive")]
    pub no_recursive: bool,
    /// The most directories to watch
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    pub max_directories: u32,
}
