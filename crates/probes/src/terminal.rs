//! K6: typing into a terminal in the name of its user.

use eyot::{ExecOptions, PtySize};

use crate::check::{Check, cases, ensure};
use crate::facts::{note, tried};
use crate::sys;
use crate::world::Stage;

cases! {
    k06_nothing_can_be_typed_into_a_terminal(stage);
}

const PUSHES: [(&str, u64); 3] = [("sti", 0x5412), ("linux", 0x541C), ("cons", 0x541D)];

/// Tries to push a character into its own terminal.
pub fn probe(_arguments: &[String]) {
    note("terminal", std::io::IsTerminal::is_terminal(&std::io::stdin()));
    for (name, command) in PUSHES {
        // The kernel drops the upper half of the command.
        for (width, high) in [("plain", 0), ("high", 1 << 32), ("sign", 0xffff_ffff_0000_0000)] {
            let mut letter = *b"\x02x      ";
            let arguments = [0, command | high, sys::buffer(&mut letter)];
            tried(format_args!("push_{name}_{width}"), sys::call(libc::SYS_ioctl, &arguments));
        }
    }
}

async fn k06_nothing_can_be_typed_into_a_terminal(stage: Stage) -> Check {
    for who in stage.everybody() {
        let options = ExecOptions { pty: Some(PtySize::default()), ..stage.options_of(who) };
        let facts = stage.probe_with(options, &["terminal"]).await?;
        facts.is("terminal", "true")?;
        // Where no filter comes first, the kernel: EIO (it has no TIOCSTI), ENOTTY (it is no
        // console).
        facts.each(
            "push_",
            if stage.is_native() { &["EPERM"] } else { &["EPERM", "EIO", "errno5", "errno25"] },
        )?;
    }
    let typed = stage.output("cat < /dev/null").await?;
    ensure!(typed.is_empty(), "something was typed: {typed}");
    Ok(())
}
