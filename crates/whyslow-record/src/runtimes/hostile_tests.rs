//! Malicious memory: walks terminate, never panic, and read no more than they may.

use std::cell::Cell;

use super::memory::{Log, Memory};
use super::texts::Names;
use super::{FRAMES_MAX, python, ruby};

const BASE: u64 = 0x10_0000;

/// An image whose words point anywhere, often into itself.
struct Image {
    bytes: Vec<u8>,
    reads: Cell<u64>,
    /// Whether the bytes change while they are read.
    moves: bool,
}

impl Memory for Image {
    fn read(&self, places: &[(u64, usize)], into: &mut [u8]) -> bool {
        let mut rest = into;
        for (address, count) in places {
            self.reads.set(self.reads.get() + 1);
            let begin = address.wrapping_sub(BASE) as usize;
            let there = begin
                .checked_add(*count)
                .and_then(|end| self.bytes.get(begin..end));
            let (Some(there), Some((now, later))) = (there, rest.split_at_mut_checked(*count))
            else {
                return false;
            };
            now.copy_from_slice(there);
            if self.moves && self.reads.get().is_multiple_of(7) && *count > 0 {
                now[0] ^= 0x40;
            }
            rest = later;
        }
        true
    }
}

/// Deterministic pseudo-random numbers.
struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

fn image(seed: u64) -> Image {
    const WORDS: u64 = 4096;
    let mut dice = Dice(seed | 1);
    let word = |_| match dice.roll() % 8 {
        0..=4 => BASE + dice.roll() % WORDS * 8,
        5 => dice.roll() % 64,
        6 => u64::MAX - dice.roll() % 64,
        _ => dice.roll(),
    };
    Image {
        bytes: (0..WORDS).map(word).flat_map(u64::to_le_bytes).collect(),
        reads: Cell::new(0),
        moves: seed.is_multiple_of(3),
    }
}

/// Number of stacks found.
fn check(seed: u64) -> usize {
    const READS_MAX: u64 = 40_000_000;
    let memory = image(seed);
    let mut found = 0;
    let mut names = Names::default();
    for minor in 8..=12 {
        let mut python = python::Python::of_version(BASE, minor).expect("it is known");
        let threads = python.threads(&memory).unwrap_or_default();
        let addresses = threads.iter().map(|thread| thread.address);
        for address in addresses.take(8).chain([BASE, BASE + 64, seed]) {
            let mut log = Log::default();
            let stack = python.stack(&memory, address, (&mut log, &mut names));
            found += usize::from(stack.is_some());
            assert!(stack.is_none_or(|stack| stack.frames.len() <= FRAMES_MAX));
        }
    }
    for version in [
        "2.7.8", "3.0.1", "3.1.2", "3.2.0", "3.3.0", "4.0.0", "4.0.9",
    ] {
        let mut ruby = ruby::Ruby::of_version(BASE, version).expect("it is known");
        let threads = ruby.threads(&memory).unwrap_or_default();
        let addresses = threads.iter().map(|thread| thread.address);
        for address in addresses.take(8).chain([BASE, BASE + 64, seed]) {
            let mut log = Log::default();
            let stack = ruby.stack(&memory, address, (&mut log, &mut names));
            found += usize::from(stack.is_some());
            assert!(stack.is_none_or(|stack| stack.frames.len() <= FRAMES_MAX));
        }
    }
    assert!(
        memory.reads.get() < READS_MAX,
        "{} reads",
        memory.reads.get()
    );
    found
}

#[test]
fn any_memory_is_read_to_an_end() {
    let found: usize = (1..600).map(check).sum();
    // Otherwise the test would show little.
    assert!(found > 10, "{found}");
}

#[test]
fn a_table_of_offsets_that_lies_is_read_to_an_end() {
    for seed in 1..300 {
        let mut memory = image(seed);
        memory.bytes[..8].copy_from_slice(b"xdebugpy");
        let version = if seed % 2 == 0 {
            0x030d_00f0u64
        } else {
            0x030e_00f0
        };
        memory.bytes[8..16].copy_from_slice(&version.to_le_bytes());
        let mut dice = Dice(seed);
        for word in memory.bytes[16..800].chunks_exact_mut(8) {
            let offset = dice.roll() % 512;
            word.copy_from_slice(&offset.to_le_bytes());
        }
        let Some(mut python) = python::Python::from_runtime(&memory, BASE) else {
            continue;
        };
        let threads = python.threads(&memory).unwrap_or_default();
        for thread in threads.iter().take(8) {
            let (mut log, mut names) = (Log::default(), Names::default());
            python.stack(&memory, thread.address, (&mut log, &mut names));
        }
    }
}

#[test]
fn what_moves_while_it_is_read_does_not_hold() {
    let mut memory = image(4);
    let mut log = Log::default();
    for word in 0..14 {
        log.word(&memory, BASE + word * 8).expect("it is there");
    }
    assert!(log.holds(&memory, &mut Vec::new()));
    memory.moves = true;
    assert!(!log.holds(&memory, &mut Vec::new()));
}

#[test]
fn images_of_any_bytes_are_walked_to_an_end() {
    let mut dice = Dice(7);
    let mut read = 0;
    for length in 0..400usize {
        let bytes: Vec<u8> = (0..length * 8).map(|_| dice.roll() as u8 & 0x1f).collect();
        for which in 0..13 {
            let mut image = vec![which];
            image.extend(&bytes);
            read += super::walk_image(&image);
        }
    }
    assert!(read > 10_000, "{read}");
}
