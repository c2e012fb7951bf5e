//! Builds the launcher as a static program and leaves it where the provider embeds it.

fn main() {
    #[cfg(feature = "provider")]
    eyot_embed::build_static_program("eyot-launcher", "launcher");
}
