//! Measures the costs of an image of 300 MB. It asserts nothing about times, only that it measures.

use eyot_image::testing::{TestImage, TestLayer};

use crate::Case;
use crate::machine::Machine;
use crate::pulling::image;
use crate::registry::Registry;

pub fn trials() -> Vec<Case> {
    vec![("pull_of_300_mb_and_creates_from_it", measure)]
}

/// Returns the tests that run with all others.
pub fn small_trials() -> Vec<Case> {
    vec![("the_benchmark_measures_an_image_beside_the_host", small)]
}

fn small() {
    let (registry, machine) = (Registry::new(), Machine::new());
    registry.push(&image(), "app:1");
    let report =
        machine.run(&["--json", "bench", "--rounds", "1", "--image", &registry.name("app:1")]).json();
    let named = |part: &str| {
        let rows = report["rows"].as_array().unwrap().iter();
        rows.filter(|row| row["name"].as_str().unwrap().contains(part)).collect::<Vec<_>>()
    };
    assert_eq!((named("image:").len(), named("of `host`").len()), (3, 1), "{report}");
    assert!(
        named("later")[0]["ratio"].as_f64().unwrap() > 0.0 && named("later")[0]["to_reach"] == 1.3,
        "{report}"
    );
    assert!(machine.run(&["image", "ls", "-q"]).success().is_empty());
}

const LAYERS: u32 = 6;
const FILES: u32 = 2_000;
const FILE_BYTES: usize = 25_000;

/// Makes six layers of 2,000 files of 25 kB each, which no compression makes smaller.
fn large() -> TestImage {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut noise = || -> Vec<u8> {
        let mut bytes = Vec::with_capacity(FILE_BYTES + 8);
        while bytes.len() < FILE_BYTES {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            bytes.extend_from_slice(&state.to_le_bytes());
        }
        bytes.truncate(FILE_BYTES);
        bytes
    };
    let layers: Vec<TestLayer> = (0..LAYERS)
        .map(|layer| {
            let system = TestLayer::default().file(&format!("bin/{layer}"), "#!").directory("usr", 0o755);
            (0..FILES).fold(system, |filled, file| {
                filled.file(&format!("usr/{layer}/{}/{file}", file % 40), noise())
            })
        })
        .collect();
    TestImage::new(&layers)
}

fn measure() {
    let (registry, machine) = (Registry::new(), Machine::new());
    registry.push(&large(), "large:1");
    let name = registry.name("large:1");
    let table = machine.run(&["bench", "--rounds", "60", "--image", &name]).success();
    let shown = |line: &&str| {
        line.starts_with("| operation") || line.contains("image:") || line.contains("of `host`")
    };
    println!("{}", table.lines().filter(shown).collect::<Vec<_>>().join("\n"));
}
