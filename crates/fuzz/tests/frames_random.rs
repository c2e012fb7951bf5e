//! The target `frames` on random input, the same on every run: for those who have no fuzzer at
//! hand.

use eyot_fuzz::frames;

/// A small deterministic generator, so that a failure can be repeated.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end
    }

    fn byte(&mut self) -> u8 {
        self.below(256) as u8
    }
}

#[test]
fn n6_random_bytes_are_decoded_or_refused_whatever_they_are() {
    let mut random = Random(1);
    for _ in 0..20_000 {
        let length = random.below(200);
        let bytes: Vec<u8> = (0..length).map(|_| random.byte()).collect();
        frames::run(&bytes);
    }
}

#[test]
fn n6_frames_with_random_bytes_changed_are_decoded_or_refused() {
    let seeds = frames::seeds();
    let mut random = Random(2);
    for _ in 0..40_000 {
        let mut bytes = seeds[random.below(seeds.len())].1.clone();
        for _ in 0..1 + random.below(4) {
            let index = random.below(bytes.len());
            match random.below(3) {
                0 => bytes[index] = random.byte(),
                1 => bytes.insert(index, random.byte()),
                _ => bytes.truncate(index + 1),
            }
        }
        frames::run(&bytes);
    }
}
