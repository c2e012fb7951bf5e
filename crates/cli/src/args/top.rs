//! The arguments of `eyot top`.

use clap::{Args, ValueEnum};

use crate::durations::parse_ms;

const EXAMPLES: &str = "\
Examples:
  eyot top                                     every sandbox, until q or Ctrl-C
  eyot top --sort memory --interval 500ms
  eyot top --once                              one table; also `eyot top | cat`
  eyot top builder                             what runs in one sandbox
  eyot top --once --json | jq -r 'select(.cpu_percent > 50).name'

CPU% is of one processor: 200 is two processors. MEMORY is what the processes use, or all that \
counts towards the limit where one is held; PEAK is the most there was at once. A `-` is not known: with more than 32 sandboxes, idle ones are \
not woken to be asked for IDLE. \
Viewing doesn't reset the idle timer. With --json: one object a line for each row.";

/// `eyot top`
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct TopArgs {
    /// Show only this sandbox and its processes
    pub name: Option<String>,
    /// Refresh this often [default: 2s on a terminal; elsewhere one table is printed]
    #[arg(long, short, value_name = "TIME", value_parser = parse_interval)]
    pub interval: Option<u64>,
    /// Print one table and exit; this is the default where the output is not a terminal
    #[arg(long)]
    pub once: bool,
    /// Sort by this column
    #[arg(long, value_enum, value_name = "BY", default_value_t = TopSort::Cpu)]
    pub sort: TopSort,
}

/// The column that rows are sorted by: the largest first, and names in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TopSort {
    /// Processor use
    Cpu,
    /// Memory
    Memory,
    /// Name, or process number
    Name,
    /// Age, or processor time so far
    Age,
}

fn parse_interval(text: &str) -> Result<u64, String> {
    match parse_ms(text)? {
        interval @ 100..=3_600_000 => Ok(interval),
        _ => Err("must be from 100ms to 1h".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_is_neither_a_spin_nor_for_ever() {
        assert_eq!((parse_interval("100ms"), parse_interval("1m")), (Ok(100), Ok(60_000)));
        assert!(
            parse_interval("99ms").is_err() && parse_interval("2h").is_err() && parse_interval("2").is_err()
        );
    }
}
