//! libFuzzer around one target of `eyot-fuzz`, which `EYOT_FUZZ_TARGET` names: one program for all
//! of them, so that a change is built once.
#![no_main]

use std::sync::LazyLock;

use eyot_fuzz::FuzzTarget;

static TARGET: LazyLock<FuzzTarget> = LazyLock::new(|| {
    let name = std::env::var("EYOT_FUZZ_TARGET").unwrap_or_default();
    eyot_fuzz::target(&name).unwrap_or_else(|| panic!("EYOT_FUZZ_TARGET names no target: `{name}`"))
});

libfuzzer_sys::fuzz_target!(|data: &[u8]| (TARGET.run)(data));
