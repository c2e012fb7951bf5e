//! `tee`.

use async_trait::async_trait;
use bashkit::{Command, CommandContext, CommandStatus};

/// Copies its input to files and to its output as it comes.
pub(super) struct Tee;

#[async_trait]
impl Command for Tee {
    async fn execute(&self, context: CommandContext<'_>) -> bashkit::Result<CommandStatus> {
        let is_added = context.args.iter().any(|arg| arg == "-a" || arg == "--append");
        let names =
            context.args.iter().filter(|arg| !matches!(arg.as_str(), "-a" | "--append" | "-i" | "--"));
        let mut status = 0;
        let mut files = Vec::new();
        for name in names {
            let path = context.cwd.join(name);
            let opened = if is_added {
                context.fs.append_file(&path, b"").await
            } else {
                context.fs.write_file(&path, b"").await
            };
            match opened {
                Ok(()) => files.push(path),
                Err(error) => {
                    status = 1;
                    let reason = error.to_string();
                    let reason = reason.strip_prefix("io error: ").unwrap_or(&reason);
                    context.stderr.write_all(format!("tee: {name}: {reason}\n").as_bytes()).await?;
                }
            }
        }
        while let Some(bytes) = context.stdin.read_chunk().await? {
            for file in &files {
                context.fs.append_file(file, &bytes).await?;
            }
            context.stdout.write_all(&bytes).await?;
        }
        Ok(CommandStatus::with_code(status))
    }
}
