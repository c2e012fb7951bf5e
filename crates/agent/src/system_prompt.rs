//! The system prompt: the agent's instructions, and a description of its workspace.

use eyot::{ErrorKind, Result, Sandbox};

use crate::sandbox_access::SandboxAccess;
use crate::skill::{KnownSkill, PackagedSkill, discover};

/// The files of a workspace that hold instructions for agents.
const INSTRUCTION_FILES: [&str; 2] = ["AGENTS.md", "CLAUDE.md"];

/// The text that tells the model that no human will answer it.
const PREAMBLE: &str = "You are running in headless mode with no human operator. Work autonomously — never ask questions, \
                        never wait for user input. Make your best judgment and proceed independently.";

/// The context of a session: its system prompt and its skills.
#[derive(Debug, Clone, Default)]
pub(crate) struct SessionContext {
    pub(crate) system_prompt: String,
    pub(crate) skills: Vec<KnownSkill>,
}

impl SessionContext {
    /// Reads the instructions, the skills and the listing of the working directory. `conflict`: a skill of the workspace has
    /// the same name as one of the agent's.
    pub(crate) async fn discover(
        source: &SandboxAccess,
        instructions: Option<&str>,
        packaged: &[PackagedSkill],
    ) -> Result<Self> {
        let sandbox = source.sandbox().await?;
        let mut skills: Vec<KnownSkill> = packaged.iter().cloned().map(KnownSkill::Packaged).collect();
        let (mut workspace_instructions, mut place) = (Vec::new(), None);
        if let Some(sandbox) = &sandbox {
            workspace_instructions = read_instructions(sandbox).await?;
            for skill in discover(sandbox).await? {
                refuse_duplicate(&skills, &skill)?;
                skills.push(skill);
            }
            place = Some(WorkspaceListing::look(sandbox).await?);
        }
        let system_prompt = compose(instructions, &workspace_instructions, &skills, place.as_ref());
        Ok(Self { system_prompt, skills })
    }
}

/// A working directory and its listing.
#[derive(Debug)]
struct WorkspaceListing {
    cwd: String,
    names: Vec<String>,
}

impl WorkspaceListing {
    async fn look(sandbox: &Sandbox) -> Result<Self> {
        let listed = match sandbox.list(".").await {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(error),
        };
        let names = listed.into_iter().map(|entry| entry.name).collect();
        Ok(Self { cwd: sandbox.cwd().to_string(), names })
    }
}

async fn read_instructions(sandbox: &Sandbox) -> Result<Vec<String>> {
    let mut texts = Vec::new();
    for file in INSTRUCTION_FILES {
        if sandbox.exists(file).await? {
            texts.push(sandbox.read_text(file).await?.trim().to_owned());
        }
    }
    Ok(texts)
}

fn refuse_duplicate(skills: &[KnownSkill], skill: &KnownSkill) -> Result<()> {
    match skills.iter().find(|known| known.name() == skill.name()) {
        None => Ok(()),
        Some(_) => {
            let message = format!("skill `{}` exists twice: in the agent and in the workspace", skill.name());
            Err(eyot::Error::new(ErrorKind::Conflict, message).with_hint("give one of them another name"))
        }
    }
}

fn compose(
    instructions: Option<&str>,
    workspace_instructions: &[String],
    skills: &[KnownSkill],
    place: Option<&WorkspaceListing>,
) -> String {
    let mut lines = vec![PREAMBLE.to_owned()];
    let joined = workspace_instructions.join("\n\n");
    for text in [instructions.unwrap_or_default(), &joined] {
        if !text.is_empty() {
            lines.extend([String::new(), text.to_owned()]);
        }
    }
    if !skills.is_empty() {
        lines.extend([
            String::new(),
            "## Available Skills".to_owned(),
            String::new(),
            SKILLS.to_owned(),
            String::new(),
        ]);
        lines.extend(skills.iter().map(|skill| format!("- **{}** — {}", skill.name(), skill.description())));
    }
    lines.extend([String::new(), format!("Date: {}", date(eyot::internal::now_ms()))]);
    if let Some(place) = place {
        lines.push(format!("Working directory: {}", place.cwd));
        if !place.names.is_empty() {
            lines.extend([String::new(), "Directory structure:".to_owned(), place.names.join("\n")]);
        }
    }
    lines.join("\n")
}

const SKILLS: &str = "The following skills provide specialized instructions for specific tasks. When a task matches a skill \
    description, call the `activate_skill` tool with that skill name before proceeding so its full instructions are loaded. \
    Skill instructions and supporting resources stay lazy until activation or explicit file reads.";

/// Formats a day as `Wed, Nov 25, 2026`, in UTC.
fn date(now_ms: i64) -> String {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let seconds = u64::try_from(now_ms / 1_000).unwrap_or_default();
    let time = std::time::UNIX_EPOCH + std::time::Duration::from_secs(seconds);
    // The text begins like `2026-11-25T`.
    let text = humantime::format_rfc3339_seconds(time).to_string();
    let number = |from: usize, to: usize| text[from..to].parse::<usize>().unwrap_or_default();
    let (month, day) = (number(5, 7).clamp(1, 12), number(8, 10));
    let weekday = DAYS[usize::try_from(seconds / 86_400 % 7).unwrap_or_default()];
    format!("{weekday}, {} {day}, {}", MONTHS[month - 1], &text[..4])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_is_written_as_the_reference_writes_it() {
        assert_eq!(date(1_795_593_600_000), "Wed, Nov 25, 2026");
        assert_eq!(date(0), "Thu, Jan 1, 1970");
    }

    #[test]
    fn without_a_sandbox_the_prompt_has_instructions_and_the_date() {
        let prompt = compose(Some("Be kind."), &[], &[], None);
        assert!(prompt.starts_with(&format!("{PREAMBLE}\n\nBe kind.\n\nDate: ")), "{prompt}");
        assert!(!prompt.contains("Working directory"));
    }

    #[test]
    fn a_workspace_is_described_by_its_instructions_and_its_listing() {
        let place = WorkspaceListing { cwd: "/workspace".into(), names: vec!["a".into(), "b".into()] };
        let prompt = compose(None, &["Use tabs.".into(), "Use spaces.".into()], &[], Some(&place));
        assert!(prompt.contains("\n\nUse tabs.\n\nUse spaces.\n\nDate: "), "{prompt}");
        assert!(prompt.ends_with("Working directory: /workspace\n\nDirectory structure:\na\nb"), "{prompt}");
    }
}
