//! Feeds arbitrary bytes in arbitrary pieces to the decoder: `cargo +nightly fuzz run decode_frames`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| eyot_guest_fuzz::decode_frames(data));
