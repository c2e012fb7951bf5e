//! Skills: instructions for one kind of work, in a folder with a `SKILL.md`.
//!
//! A skill is in the workspace (`.agents/skills/NAME/SKILL.md`) or packaged with the program. The model sees its name and
//! description, and loads the rest when needed.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use eyot::{Error, ErrorKind, Result, Sandbox};
use serde::Deserialize;
use serde_json::Value;

use crate::front_matter::{self, split};

/// The folder of a workspace's skills.
const SKILLS_FOLDER: &str = ".agents/skills";
/// The virtual folder of packaged skills. The model reads their files by paths in it, but it does not exist in the sandbox.
pub(crate) const PACKAGED_FOLDER: &str = "/.flue/packaged-skills/";
/// The longest name, in characters.
const MAX_NAME_CHARS: usize = 64;
/// The longest description, in characters.
const MAX_DESCRIPTION_CHARS: usize = 1_024;
/// The longest `compatibility`, in characters.
const MAX_COMPATIBILITY_CHARS: usize = 500;
/// The length of the base64 lines of a binary file.
const BASE64_LINE: usize = 76;

/// A skill that comes with the program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackagedSkill {
    head: SkillMetadata,
    body: String,
    files: BTreeMap<String, Bytes>,
}

/// The front matter of a `SKILL.md`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillMetadata {
    /// The name: at most 64 lowercase letters, digits and single hyphens.
    pub name: String,
    /// The description, at most 1,024 characters.
    pub description: String,
    /// The license.
    pub license: Option<String>,
    /// The environment that the skill needs, at most 500 characters.
    pub compatibility: Option<String>,
    /// Further data.
    pub metadata: BTreeMap<String, String>,
    /// The tools that the skill may use, as declared.
    pub allowed_tools: Vec<String>,
}

/// A skill that a session knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum KnownSkill {
    /// A skill in this directory of the workspace.
    Workspace {
        name: String,
        description: String,
        directory: String,
    },
    Packaged(PackagedSkill),
}

/// The front matter of a `SKILL.md` before it is checked.
#[derive(Debug, Deserialize)]
struct FrontMatter {
    name: Option<Value>,
    description: Option<Value>,
    license: Option<Value>,
    compatibility: Option<Value>,
    metadata: Option<Value>,
    #[serde(rename = "allowed-tools")]
    allowed_tools: Option<Value>,
}

impl PackagedSkill {
    /// Creates a skill from its files, with paths relative to its folder. `invalid`: `SKILL.md` is missing, or its front
    /// matter is wrong.
    pub fn new(name: &str, files: impl IntoIterator<Item = (String, Bytes)>) -> Result<Self> {
        let mut files: BTreeMap<String, Bytes> = files.into_iter().collect();
        let Some(main) = files.remove("SKILL.md") else {
            return Err(invalid(&format!("{name}/SKILL.md"), "is missing"));
        };
        let place = format!("{name}/SKILL.md");
        let text = std::str::from_utf8(&main).map_err(|_| invalid(&place, "is not UTF-8 text"))?;
        let (head, body) = parse(text, &place, name)?;
        Ok(Self { head, body, files })
    }

    /// Returns the front matter of its `SKILL.md`.
    pub fn head(&self) -> &SkillMetadata {
        &self.head
    }

    fn path_of(&self, file: &str) -> String {
        format!("{PACKAGED_FOLDER}{}/{file}", self.head.name)
    }

    /// Returns the text of a file, by the path that the model sees. A binary file is returned as base64.
    pub(crate) fn read(&self, path: &str) -> Option<String> {
        let file = path.strip_prefix(PACKAGED_FOLDER)?.strip_prefix(&self.head.name)?.strip_prefix('/')?;
        let content = self.files.get(file)?;
        Some(match std::str::from_utf8(content) {
            Ok(text) => text.to_owned(),
            Err(_) => wrapped(&STANDARD.encode(content)),
        })
    }

    fn instructions(&self) -> String {
        let mut lines = opened(&self.head.name, &self.body);
        if !self.files.is_empty() {
            lines.push(String::new());
            lines.push(
                "Supporting skill resources are available but are not loaded into context unless needed:"
                    .to_owned(),
            );
            lines.push("<skill_resources>".to_owned());
            lines.extend(
                self.files
                    .keys()
                    .map(|file| format!("- {file} → read_skill_resource {}", self.path_of(file))),
            );
            lines.push("</skill_resources>".to_owned());
        }
        lines.join("\n")
    }
}

impl KnownSkill {
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Workspace { name, .. } => name,
            Self::Packaged(skill) => &skill.head.name,
        }
    }

    pub(crate) fn description(&self) -> &str {
        match self {
            Self::Workspace { description, .. } => description,
            Self::Packaged(skill) => &skill.head.description,
        }
    }

    /// Returns the full instructions. Those of a workspace's skill are read now, so that edits take effect.
    pub(crate) async fn instructions(&self, sandbox: Option<&Sandbox>) -> Result<String> {
        let (name, directory) = match self {
            Self::Packaged(skill) => return Ok(skill.instructions()),
            Self::Workspace { name, directory, .. } => (name, directory),
        };
        let Some(sandbox) = sandbox else {
            return Err(Error::new(ErrorKind::NotFound, format!("skill `{name}`: the agent has no sandbox")));
        };
        let place = format!("{directory}/SKILL.md");
        let (_, body) = parse(&sandbox.read_text(&place).await?, &place, name)?;
        let mut lines = opened(name, &body);
        lines.extend([
            String::new(),
            "Supporting skill resources are available relative to this workspace skill directory but are not loaded into \
             context unless needed:"
                .to_owned(),
            "<skill_resources>".to_owned(),
            format!("- Base directory: {directory}"),
            "- Resolve relative resource paths from this directory and read only the files you need.".to_owned(),
            "</skill_resources>".to_owned(),
        ]);
        Ok(lines.join("\n"))
    }
}

fn opened(name: &str, body: &str) -> Vec<String> {
    vec![
        format!("Run the skill named \"{name}\"."),
        String::new(),
        "<skill_instructions>".to_owned(),
        body.to_owned(),
        "</skill_instructions>".to_owned(),
    ]
}

/// Returns the skills of the workspace. A folder without a `SKILL.md` is ignored, and a wrong `SKILL.md` is an error.
pub(crate) async fn discover(sandbox: &Sandbox) -> Result<Vec<KnownSkill>> {
    let folder = sandbox.resolve_path(SKILLS_FOLDER)?;
    if !sandbox.exists(folder.as_str()).await? {
        return Ok(Vec::new());
    }
    let mut skills = Vec::new();
    for entry in sandbox.list(folder.as_str()).await? {
        let name = entry.name.as_str();
        let directory = format!("{folder}/{name}");
        let place = format!("{directory}/SKILL.md");
        let is_skill = sandbox.stat(&directory).await.is_ok_and(|stat| stat.is_directory);
        if !is_skill || !sandbox.exists(&place).await? {
            continue;
        }
        let (head, _) = parse(&sandbox.read_text(&place).await?, &place, name)?;
        skills.push(KnownSkill::Workspace { name: head.name, description: head.description, directory });
    }
    Ok(skills)
}

/// Parses the `SKILL.md` of the folder `directory` into its front matter and its instructions. An `invalid` error says what
/// is wrong and what to write instead.
pub(crate) fn parse(text: &str, place: &str, directory: &str) -> Result<(SkillMetadata, String)> {
    let Some((yaml, body)) = split(text) else {
        let why = "has no front matter: start it with `---`, give `name` and `description`, and close it with `---`";
        return Err(invalid(place, why));
    };
    let front: FrontMatter = front_matter::read(yaml).map_err(|mistake| invalid(place, &mistake))?;
    let head = SkillMetadata {
        name: required(front.name, place, "name")?,
        description: required(front.description, place, "description")?,
        license: optional(front.license, place, "license")?,
        compatibility: optional(front.compatibility, place, "compatibility")?,
        metadata: metadata(front.metadata, place)?,
        allowed_tools: allowed_tools(front.allowed_tools, place)?,
    };
    check_name(&head.name, place, directory)?;
    check_length(Some(&head.description), MAX_DESCRIPTION_CHARS, place, "description")?;
    check_length(head.compatibility.as_ref(), MAX_COMPATIBILITY_CHARS, place, "compatibility")?;
    Ok((head, body.trim().to_owned()))
}

fn check_name(name: &str, place: &str, directory: &str) -> Result<()> {
    if name.chars().count() > MAX_NAME_CHARS {
        return Err(invalid(place, &format!("has a name of more than {MAX_NAME_CHARS} characters")));
    }
    let is_part = |part: &str| {
        !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
    };
    if !name.split('-').all(is_part) {
        let why = format!(
            "has the name `{name}`: use lowercase letters, digits and single hyphens, such as `review-pr`"
        );
        return Err(invalid(place, &why));
    }
    if name != directory {
        let why = format!("has the name `{name}`, but its folder is `{directory}`: make them the same");
        return Err(invalid(place, &why));
    }
    Ok(())
}

fn check_length(value: Option<&String>, limit: usize, place: &str, field: &str) -> Result<()> {
    match value.filter(|value| value.chars().count() > limit) {
        Some(_) => Err(invalid(place, &format!("has a `{field}` of more than {limit} characters"))),
        None => Ok(()),
    }
}

fn required(value: Option<Value>, place: &str, field: &str) -> Result<String> {
    optional(value, place, field)?.ok_or_else(|| invalid(place, &format!("needs `{field}`")))
}

fn optional(value: Option<Value>, place: &str, field: &str) -> Result<Option<String>> {
    match value {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) if !text.trim().is_empty() => Ok(Some(text.trim().to_owned())),
        Some(_) => Err(invalid(place, &format!("needs a non-empty text as `{field}`"))),
    }
}

fn metadata(value: Option<Value>, place: &str) -> Result<BTreeMap<String, String>> {
    match value {
        None | Some(Value::Null) => Ok(BTreeMap::new()),
        Some(value) => serde_json::from_value(value).map_err(|_| {
            invalid(
                place,
                "needs texts as values in `metadata`: put them into quotes, such as version: \"1.0\"",
            )
        }),
    }
}

fn allowed_tools(value: Option<Value>, place: &str) -> Result<Vec<String>> {
    let tools = match value {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(tools)) => tools,
        Some(_) => {
            return Err(invalid(place, "needs one text as `allowed-tools`, with spaces between the names"));
        }
    };
    Ok(tools.split_whitespace().map(str::to_owned).collect())
}

fn invalid(place: &str, why: &str) -> Error {
    Error::new(ErrorKind::Invalid, format!("skill {place} {why}"))
}

fn wrapped(base64: &str) -> String {
    let lines = base64.as_bytes().chunks(BASE64_LINE).map(|line| String::from_utf8_lossy(line).into_owned());
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "---\nname: review-pr\ndescription: Reviews. \nallowed-tools: read grep\nmetadata:\n  version: \"1\"\n---\n\nDo it.\n";

    fn error(text: &str) -> String {
        parse(text, "x/SKILL.md", "review-pr").unwrap_err().to_string()
    }

    #[test]
    fn a_skill_has_a_head_and_instructions() {
        let (head, body) = parse(GOOD, "x", "review-pr").unwrap();
        assert_eq!(
            (head.name.as_str(), head.description.as_str(), body.as_str()),
            ("review-pr", "Reviews.", "Do it.")
        );
        assert_eq!((head.allowed_tools.len(), head.metadata["version"].as_str()), (2, "1"));
        let windows = GOOD.replace('\n', "\r\n");
        assert_eq!(parse(&windows, "x", "review-pr").unwrap().0.name, "review-pr");
    }

    #[test]
    fn what_is_wrong_with_a_skill_is_said_with_what_to_write_instead() {
        assert!(error("no front matter").contains("start it with `---`"));
        assert!(error("---\nname: review-pr\n---\n").contains("needs `description`"));
        assert!(error("---\nname: Review\ndescription: d\n---\n").contains("such as `review-pr`"));
        assert!(error("---\nname: other\ndescription: d\n---\n").contains("its folder is `review-pr`"));
        assert!(error("---\nname: [\n---\n").contains("can't be read"));
        assert!(
            error("---\nname: review-pr\ndescription: d\nmetadata:\n  v: 1\n---\n").contains("into quotes")
        );
        let long = format!("---\nname: review-pr\ndescription: {}\n---\n", "d".repeat(1_025));
        assert!(error(&long).contains("more than 1024 characters"));
    }

    #[test]
    fn the_files_of_a_packaged_skill_are_read_by_the_paths_that_its_instructions_name() {
        let files = [
            ("SKILL.md".to_owned(), Bytes::from(GOOD)),
            ("notes.txt".to_owned(), Bytes::from("text")),
            ("icon.png".to_owned(), Bytes::from(vec![0xff; 60])),
        ];
        let skill = PackagedSkill::new("review-pr", files).unwrap();
        let path = "/.flue/packaged-skills/review-pr/notes.txt";
        assert!(skill.instructions().contains(&format!("- notes.txt → read_skill_resource {path}")));
        assert_eq!(skill.read(path).as_deref(), Some("text"));
        let icon = skill.read("/.flue/packaged-skills/review-pr/icon.png").unwrap();
        assert_eq!(icon.lines().map(str::len).collect::<Vec<_>>(), [76, 4]);
        assert_eq!(skill.read("/.flue/packaged-skills/other/notes.txt"), None);
        assert!(PackagedSkill::new("x", []).unwrap_err().to_string().contains("is missing"));
    }
}
