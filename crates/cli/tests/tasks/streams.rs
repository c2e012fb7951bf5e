//! Input and output of commands: large, piece by piece, and on a terminal.

use eyot::{Bytes, ExecEvent, ExecOptions, ExecStream, PtySize, Stdin};
use eyot_image::Digest;
use futures_util::{StreamExt, TryStreamExt, stream};

use crate::transcript::{Agent, Check};

/// Nothing, a little, more than a pipe holds, and piece by piece.
pub async fn read_standard_input(agent: &mut Agent<'_>) -> Check {
    agent.run("cat; echo end").await?;
    agent.run_reading("sort -r | tr a-z A-Z", "b\na\nc\n").await?;
    let print = "python3 -c 'import sys, json; print(json.load(sys.stdin)[\"ü\"])'";
    agent.run_reading(print, "{\"ü\": [1, 2]}").await?;
    let many: Vec<u8> = (0..16 << 20).map(|n: u32| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    agent.note(Digest::of(&many));
    agent.run_reading("tee >(wc -c >&2) | sha256sum", many.clone()).await?;
    agent.run_reading("head -c 5 | wc -c; exit 4", many).await?;
    let pieces = stream::iter(["one\n", "two\n", "thr", "ee"]).map(|piece| Ok(Bytes::from(piece)));
    let options = ExecOptions { stdin: Stdin::Stream(pieces.boxed()), ..ExecOptions::default() };
    agent.run_with("while read -r line; do echo \"<$line>\"; done; echo \"<$line>\"", options).await?;
    agent.run_reading("bash -s -- x", "echo from a script: $1\nexit 6\n").await
}

fn terminal(stdin: Stdin) -> ExecOptions {
    ExecOptions { pty: Some(PtySize { rows: 30, cols: 100 }), stdin, ..ExecOptions::default() }
}

/// A size, a prompt that is answered, and keys that interrupt and end.
pub async fn use_a_terminal(agent: &mut Agent<'_>) -> Check {
    for line in [
        "stty size; tput cols; echo $TERM; test -t 0 && test -t 1 && test -t 2 && echo a terminal",
        "python3 -c 'import os; print(os.get_terminal_size(), os.isatty(0))'",
        "node -p 'process.stdout.isTTY + \" \" + process.stdout.columns'",
    ] {
        agent.run_with(line, terminal(Stdin::Closed)).await?;
    }
    let ask = "read -p 'colour? ' it; echo \"it is $it\"; exit 8";
    converse(agent, ask, &[("colour? ", "blue\r")]).await?;
    let silent = "read -s -p 'secret? ' it; echo; echo ${#it}";
    converse(agent, silent, &[("secret? ", "ünknown\r")]).await?;
    // Whoever says `ready` is whom Ctrl-C ends.
    let wait = "trap 'echo interrupted' INT; sh -c 'echo ready; exec sleep 1000'; echo over; cat; exit 9";
    converse(agent, wait, &[("ready\r\n", "\x03"), ("over\r\n", "\x04")]).await?;
    agent.run("test -t 0 || echo no terminal; tty").await
}

/// Presses keys each time that a text is on the screen.
async fn converse(agent: &mut Agent<'_>, line: &str, script: &[(&str, &'static str)]) -> Check {
    let (keys, typed) = tokio::sync::mpsc::unbounded_channel();
    let input =
        stream::unfold(typed, async |mut typed| typed.recv().await.map(|bytes| (Ok(bytes), typed))).boxed();
    let mut running = agent.sandbox.exec_stream(line, terminal(Stdin::Stream(input))).await?;
    let mut screen = String::new();
    for (shown, pressed) in script {
        while !screen.contains(shown) {
            let Some(text) = next_text(&mut running).await? else {
                return Err(format!("no {shown:?} on the screen: {screen:?}").into());
            };
            screen += &text;
        }
        keys.send(Bytes::from_static(pressed.as_bytes()))?;
    }
    while let Some(event) = running.try_next().await? {
        match event {
            ExecEvent::Stdout(bytes) | ExecEvent::Stderr(bytes) => screen += &String::from_utf8_lossy(&bytes),
            ExecEvent::End(result) => agent.note(format_args!("{screen:?} {:?}", result.outcome)),
        }
    }
    Ok(())
}

/// Returns the next output of a command; nothing once it has ended.
pub async fn next_text(running: &mut ExecStream) -> Check<Option<String>> {
    match running.try_next().await? {
        Some(ExecEvent::Stdout(bytes) | ExecEvent::Stderr(bytes)) => {
            Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
        }
        Some(ExecEvent::End(_)) | None => Ok(None),
    }
}

/// Returns the outcome of a command, and drops its remaining output.
pub async fn end_of(mut running: ExecStream) -> Check<String> {
    while let Some(event) = running.try_next().await? {
        if let ExecEvent::End(result) = event {
            return Ok(format!("{:?}", result.outcome));
        }
    }
    Err("a command has no end".into())
}

/// The beginning is kept, and the number of dropped bytes is reported.
pub async fn print_more_than_is_kept(agent: &mut Agent<'_>) -> Check {
    for (line, cap) in [
        ("python3 -c \"print('日本語🦀' * 200000)\"", None),
        ("python3 -c \"print('ü' * 1000, end='')\"", Some(999)),
        ("seq 1000000; seq 300000 >&2", Some(100_000)),
        ("printf 'a\\377\\376b\\000c'", None),
        ("head -c 50000000 /dev/zero | tr '\\0' x", None),
    ] {
        let options = ExecOptions { max_output_bytes: cap, ..ExecOptions::default() };
        let result = agent.sandbox.exec(line, options).await?;
        agent.note(format_args!("$ {line}"));
        for (kept, total, truncated) in [
            (&result.stdout, result.stdout_bytes, result.stdout_truncated()),
            (&result.stderr, result.stderr_bytes, result.stderr_truncated()),
        ] {
            agent.note(format_args!("{} of {total}, truncated: {truncated}", kept.len()));
            agent.note(Digest::of(kept));
        }
        agent.note(format_args!("{:?} {:?}", result.outcome, result.stdout_text().chars().last()));
    }
    Ok(())
}
