//! Builds the program static where the feature `embedded` asks for it.

fn main() {
    #[cfg(feature = "embedded")]
    eyot_embed::build_static_program("eyot-egress", "program");
}
