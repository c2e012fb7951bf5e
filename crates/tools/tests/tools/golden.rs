//! The declarations of every toolset, held against files: a change of a schema is seen in a review.
//! `EYOT_REWRITE_GOLDEN=1 cargo test -p eyot-tools --test tools` writes them anew.

use std::path::Path;

use eyot_tools::{ToolFormat, toolset, toolset_names};

fn compare(file: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(file);
    if std::env::var_os("EYOT_REWRITE_GOLDEN").is_some() {
        return std::fs::write(&path, text).unwrap();
    }
    let golden = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(text, golden, "{file} differs; EYOT_REWRITE_GOLDEN=1 writes it anew");
}

#[test]
fn every_toolset_is_shown_in_every_format_as_its_golden_file_has_it() {
    for name in toolset_names() {
        let tools = toolset(name).unwrap();
        for format in ToolFormat::ALL {
            let text = serde_json::to_string_pretty(&tools.schemas(format)).unwrap() + "\n";
            compare(&format!("{name}.{}.json", format.as_str()), &text);
        }
        compare(&format!("{name}.prompt.txt"), &tools.prompt());
    }
}

#[test]
fn no_schema_costs_a_model_attention_for_nothing() {
    for name in toolset_names() {
        let text = toolset(name).unwrap().schemas(ToolFormat::Mcp).to_string();
        for noise in ["\"$schema\"", "\"title\"", "\"$ref\"", "\"$defs\"", "\"format\"", "null"] {
            assert!(!text.contains(noise), "{noise} in {name}");
        }
    }
}

#[test]
fn every_tool_of_the_toolset_pool_stands_in_the_documentation() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/tools.md");
    let page = std::fs::read_to_string(page).unwrap();
    for name in toolset("pool").unwrap().names() {
        assert!(page.contains(&format!("| `{name}` |")), "{name}");
    }
}
