//! The limits on the arguments of a program, which are Linux's. The builtins of a shell have none.

/// The most bytes of one argument, with the zero byte behind it.
const MAX_ARGUMENT_BYTES: usize = 128 << 10;
/// The most bytes of all arguments, with their addresses.
const MAX_BYTES: usize = 2 << 20;
const ADDRESS_BYTES: usize = 8;

/// The status of a program that can't be started.
pub(super) const STATUS: i32 = 126;

/// Tells whether a program may be started with these arguments.
pub(super) fn fit(args: &[String]) -> bool {
    let mut left = MAX_BYTES;
    args.iter().all(|arg| {
        let needed = arg.len() + 1 + ADDRESS_BYTES;
        left = left.saturating_sub(needed);
        left > 0 && arg.len() < MAX_ARGUMENT_BYTES
    })
}
