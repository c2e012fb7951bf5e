//! The record of a sandbox, in Modal's tags. Everybody in the workspace reads these, so they have no values of variables:
//! Modal keeps those as the sandbox's own variables.
//!
//! Modal's client allows a tag of an app "alphanumeric characters, dashes, periods, or underscores" and 63 of them, and says
//! nothing of a sandbox's. So the record is written in such characters, and over as many tags as it takes.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use eyot::{
    Error, ErrorKind, Isolation, NetworkMode, Result, SandboxId, SandboxInfo, SandboxSpec, SandboxStatus,
};

use super::NAME;
use super::wire::SandboxTag;
use crate::e2b::record::SandboxNote;

const ID: &str = "eyot-id";
const SANDBOX_NAME: &str = "eyot-name";
const CREATE: &str = "eyot-create";
const RECORD: &str = "eyot-record-";
/// The characters of a value.
const VALUE_CHARS: usize = 63;
/// The most tags that a record takes.
const MAX_RECORD_TAGS: usize = 256;

fn tag(name: impl Into<String>, value: impl Into<String>) -> SandboxTag {
    SandboxTag { tag_name: name.into(), tag_value: value.into() }
}

/// Returns the tag of one create, by which what a create without an answer has made is found.
pub(super) fn create_tag(key: &str) -> SandboxTag {
    tag(CREATE, key)
}

/// Returns the tag to ask for the sandbox of an id or a name.
pub(super) fn key_tag(key: &str) -> SandboxTag {
    tag(if SandboxId::parse(key).is_ok() { ID } else { SANDBOX_NAME }, key)
}

/// Returns the tags of a new sandbox.
pub(super) fn tags(note: &SandboxNote) -> Result<Vec<SandboxTag>> {
    let json = serde_json::to_vec(note)
        .map_err(|error| Error::new(ErrorKind::Internal, "write a sandbox's record").with_source(error))?;
    let text = URL_SAFE_NO_PAD.encode(json);
    let pieces = text.as_bytes().chunks(VALUE_CHARS).map(String::from_utf8_lossy);
    let pieces = pieces.enumerate().map(|(number, piece)| tag(format!("{RECORD}{number}"), piece));
    let keys = [tag(ID, note.id.as_str()), tag(SANDBOX_NAME, note.name.as_str())];
    let all: Vec<_> = keys.into_iter().chain(pieces).collect();
    if all.len() - 2 > MAX_RECORD_TAGS {
        return Err(Error::new(
            ErrorKind::TooLarge,
            format!("the spec takes more than {MAX_RECORD_TAGS} tags of {VALUE_CHARS} characters at Modal"),
        ));
    }
    Ok(all)
}

/// Reads the record in tags; `None`: none was made here.
pub(super) fn read(tags: &[SandboxTag]) -> Option<SandboxNote> {
    let value = |name: &str| tags.iter().find(|tag| tag.tag_name == name).map(|tag| tag.tag_value.as_str());
    let text: String = (0..MAX_RECORD_TAGS).map_while(|number| value(&format!("{RECORD}{number}"))).collect();
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(text).ok()?).ok()
}

/// Returns the facts about a sandbox, which runs.
pub(super) fn info(note: &SandboxNote) -> SandboxInfo {
    SandboxInfo {
        id: note.id.clone(),
        name: note.name.clone(),
        pool: None,
        provider: NAME.to_owned(),
        status: SandboxStatus::Running,
        workdir: note.spec.workdir.clone().unwrap_or_else(eyot::SandboxPath::root),
        created_ms: note.created_ms,
        spec: note.spec.clone(),
        isolation: isolation(&note.spec),
        life: String::new(),
    }
}

/// Returns what Modal promises of a sandbox. It runs under "gVisor, Modal's container runtime", on a kernel that others use,
/// too. Its limits are not set.
pub(super) fn isolation(spec: &SandboxSpec) -> Isolation {
    let network = if spec.network == NetworkMode::None { NetworkMode::None } else { NetworkMode::Bridge };
    Isolation { network, ..Isolation::none(NAME) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(json: &str) -> SandboxNote {
        let spec: SandboxSpec = serde_json::from_str(json).unwrap();
        SandboxNote::new(&spec.validate().unwrap(), 7)
    }

    #[test]
    fn tags_have_the_record_in_modals_characters_and_no_values_of_variables() {
        let note = note(r#"{"name":"a","env":{"TOKEN":"secret-1"},"labels":{"what":"ü & ö"}}"#);
        let tags = tags(&note).unwrap();
        let plain = |text: &str| {
            (1..=VALUE_CHARS).contains(&text.len())
                && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
        };
        assert!(tags.iter().all(|tag| plain(&tag.tag_name) && plain(&tag.tag_value)), "{tags:?}");
        assert_eq!(read(&tags).as_ref(), Some(&note));
        assert!(!format!("{note:?}").contains("secret-1"));
        assert_eq!(read(&tags[..tags.len() - 1]), None);
        assert_eq!(read(&[]), None);
    }

    #[test]
    fn a_record_past_the_limit_is_refused() {
        let of = |length: usize| {
            let metadata: Vec<_> =
                (0..4).map(|key| format!(r#""{key}":"{}""#, "y".repeat(length / 4))).collect();
            tags(&note(&format!(r#"{{"name":"a","metadata":{{{}}}}}"#, metadata.join(","))))
        };
        assert!(of(1000).is_ok());
        assert_eq!(of(MAX_RECORD_TAGS * VALUE_CHARS).unwrap_err().kind(), ErrorKind::TooLarge);
    }
}
