//! Builds the guest as a static program where the feature `embedded` asks for it, so that whoever
//! adds the library needs no second file.

fn main() {
    #[cfg(feature = "embedded")]
    eyot_embed::build_static_program("eyot-guest", "program");
}
