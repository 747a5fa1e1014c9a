//! Programs with as much data as possible: endless names and tables.

use super::budget::{PROCESS_BYTES_MAX, WALK_BYTES_MAX};
use super::memory::Memory;
use super::process::{Process, Runtime};
use super::{FRAMES_MAX, Thread, python, ruby};

const THREAD: u64 = 1 << 40;
const FRAME: u64 = 2 << 40;
const CODE: u64 = 3 << 40;
const TEXT: u64 = 4 << 40;
const TABLE: u64 = 5 << 40;
/// Distance between objects of a kind.
const STEP: u64 = 1 << 22;
const FRAMES: u64 = FRAMES_MAX as u64 / 2;
/// Maximum length of a string.
const LETTERS: u64 = 512;

/// Each thread has its own frames, each frame its own code, and each code its own names and lines.
struct Endless {
    word: fn(u64, u64, u64) -> u64,
}

/// Layout of CPython 3.8.
fn python_word(kind: u64, number: u64, place: u64) -> u64 {
    match (kind, place) {
        (THREAD, 24) => FRAME + number * FRAMES * STEP,
        (FRAME, 24) if number % FRAMES != FRAMES - 1 => FRAME + (number + 1) * STEP,
        (FRAME, 32) => CODE + number * STEP,
        (CODE, 112) => TEXT + number * STEP,
        (CODE, 104) => TEXT + (number + (1 << 17)) * STEP,
        (CODE, 120) => TABLE + number * STEP,
        (TEXT, 16) => LETTERS,
        // One byte per character, compact, ASCII.
        (TEXT, 32) => (1 | 1 << 3 | 1 << 4) << 2,
        (TEXT, 48) => number | 0x4040_4040_4040_4040,
        (TABLE, 16) => WALK_BYTES_MAX as u64 / 4,
        _ => 0,
    }
}

/// Layout of Ruby 3.1, whose frames are consecutive.
fn ruby_word(kind: u64, number: u64, place: u64) -> u64 {
    const FRAME_BYTES: u64 = 64;
    const BODY: u64 = 1024;
    match (kind, place) {
        (THREAD, 40) => THREAD + number * STEP + 512,
        (THREAD, 512 | 528) => FRAME + number * STEP,
        (THREAD, 520) => FRAMES * FRAME_BYTES / 8,
        (FRAME, _) if place < FRAMES * FRAME_BYTES => match place % FRAME_BYTES {
            0 => 8,
            16 => CODE + (number * FRAMES + place / FRAME_BYTES) * STEP,
            _ => 0,
        },
        (CODE, 16) => CODE + number * STEP + BODY,
        // Positions, path, label; entries, their number, and their index.
        (CODE, BODY) => (1 << 20) << 32,
        (CODE, 1088) => TEXT + (number + (1 << 17)) * STEP,
        (CODE, 1104) => TEXT + number * STEP,
        // The first line, as a Ruby integer.
        (CODE, 1112) => 3,
        (CODE, 1144 | 1168) => TABLE + number * STEP,
        (CODE, 1160) => 1 << 14,
        // Not embedded.
        (TEXT, 0) => 5 | 1 << 13,
        (TEXT, 16) => LETTERS,
        (TEXT, 24) => TEXT + number * STEP + 48,
        (TEXT, 48) => number | 0x4040_4040_4040_4040,
        _ => 0,
    }
}

impl Memory for Endless {
    fn read(&self, places: &[(u64, usize)], into: &mut [u8]) -> bool {
        let mut rest = into;
        for (address, count) in places {
            let Some((now, later)) = rest.split_at_mut_checked(*count) else {
                return false;
            };
            now.fill(0);
            // Tables are zeros.
            let is_words = *count < 64 << 10;
            for (at, byte) in (*address..).zip(now).filter(|_| is_words) {
                let (kind, number) = (at >> 40 << 40, at % (1 << 40) / STEP);
                let word = (self.word)(kind, number, at % STEP / 8 * 8);
                *byte = word.to_le_bytes()[(at % 8) as usize];
            }
            rest = later;
        }
        true
    }
}

fn check(runtime: Runtime, word: fn(u64, u64, u64) -> u64) {
    // Names and the log of a walk are bounded by its frames.
    const REST_BYTES: usize = 1 << 20;
    let mut process = Process::with(Some(runtime));
    let memory = Endless { word };
    let (mut most, mut bytes) = (0, 0);
    for number in 0..60 {
        let thread = Thread {
            address: THREAD + number * STEP,
            tid: None,
            handle: 0,
            is_holder: false,
        };
        let before = process.kept();
        let read = process.read(&memory, thread);
        let address = read.ok().expect("it stands still");
        let stack = &process.threads[&address].stack;
        assert_eq!(stack.frames.len() as u64, FRAMES);
        // Every returned frame has a name, even after others were dropped.
        let frames = stack.frames.iter();
        assert!(
            frames
                .clone()
                .all(|frame| process.names.get(frame.function).is_some())
        );
        bytes += process.kept().saturating_sub(before);
        most = most.max(process.kept());
        assert!(
            most <= PROCESS_BYTES_MAX + WALK_BYTES_MAX + REST_BYTES,
            "{most}"
        );
    }
    // Otherwise the test would show little.
    assert!(
        bytes > 4 * PROCESS_BYTES_MAX && most > PROCESS_BYTES_MAX,
        "{bytes} {most}"
    );
    process.forget();
    assert_eq!(process.kept(), 0);
}

#[test]
fn what_is_kept_of_python_is_bounded() {
    let python = python::Python::of_version(0, 8).expect("it is known");
    check(Runtime::Python(python), python_word);
}

#[test]
fn what_is_kept_of_ruby_is_bounded() {
    let ruby = ruby::Ruby::of_version(0, "3.1.2").expect("it is known");
    check(Runtime::Ruby(ruby), ruby_word);
}
