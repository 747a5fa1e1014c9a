//! Programs of this machine against `nm`, and corrupt programs.

use std::io::Write as _;
use std::process::Command;

use whyslow_testkit::{Need, skip};

use super::*;

const NAMES: [&str; 2] = ["getaddrinfo", "main"];

fn file_of(bytes: &[u8]) -> File {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    file
}

/// A library with one function at 0x1100, at file offset 0x100, and the name of an imported one.
fn library() -> Vec<u8> {
    let mut bytes = vec![0; 0x400];
    let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
    put(0, b"\x7fELF\x02\x01\x01");
    put(16, &3u16.to_le_bytes());
    put(18, &MACHINE.to_le_bytes());
    put(32, &0x40u64.to_le_bytes());
    put(40, &0x200u64.to_le_bytes());
    put(56, &1u16.to_le_bytes());
    put(60, &3u16.to_le_bytes());
    // A loadable, executable segment.
    put(0x40, &1u32.to_le_bytes());
    put(0x44, &5u32.to_le_bytes());
    put(0x48, &0u64.to_le_bytes());
    put(0x50, &0x1000u64.to_le_bytes());
    put(0x60, &0x400u64.to_le_bytes());
    // Section 1: symbols, 2: their names.
    put(0x244, &11u32.to_le_bytes());
    put(0x258, &0x300u64.to_le_bytes());
    put(0x260, &72u64.to_le_bytes());
    put(0x268, &2u32.to_le_bytes());
    put(0x284, &3u32.to_le_bytes());
    put(0x298, &0x380u64.to_le_bytes());
    put(0x2a0, &64u64.to_le_bytes());
    let names = b"\0__getaddrinfo\0main\0";
    put(0x380, names);
    let mut symbol = |number: usize, name: u32, section: u16, address: u64| {
        let at = 0x300 + 24 * number;
        put(at, &name.to_le_bytes());
        put(at + 4, &[0x12]);
        put(at + 6, &section.to_le_bytes());
        put(at + 8, &address.to_le_bytes());
    };
    symbol(1, 3, 7, 0x1100);
    symbol(2, 15, 0, 0x1200);
    bytes
}

#[test]
fn a_function_is_where_its_segment_is_in_the_file() {
    let found = functions(&file_of(&library()), &NAMES).unwrap();
    assert_eq!(found, Elf::Functions(vec![(0, 0x100)]));
}

#[test]
fn other_files_are_told_apart() {
    let check = |bytes: &[u8], expected: Elf| {
        assert_eq!(functions(&file_of(bytes), &NAMES).unwrap(), expected);
    };
    check(b"#!/bin/sh\n", Elf::Foreign);
    check(&[], Elf::Foreign);
    let mut narrow = library();
    narrow[4] = 1;
    check(&narrow, Elf::Narrow);
    let mut foreign = library();
    foreign[18] = 8;
    check(&foreign, Elf::Foreign);
    // Big-endian.
    let mut foreign = library();
    foreign[5] = 2;
    check(&foreign, Elf::Foreign);
}

#[test]
fn lies_end_in_nothing_and_soon() {
    let good = library();
    for end in 0..good.len() {
        let _ = functions(&file_of(&good[..end]), &NAMES);
    }
    for at in 0..0x2c0 {
        for value in [0, 1, 0x7f, 0xff] {
            let mut bytes = good.clone();
            bytes[at] = value;
            let _ = functions(&file_of(&bytes), &NAMES);
            let end = (at + 8).min(bytes.len());
            bytes[at..end].fill(value);
            let _ = functions(&file_of(&bytes), &NAMES);
        }
    }
    // A string table full of the same name.
    let mut bytes = good;
    bytes[0x2a0..0x2a8].copy_from_slice(&(1u64 << 40).to_le_bytes());
    for _ in 0..100_000 {
        bytes.extend(b"getaddrinfo\0");
    }
    let found = functions(&file_of(&bytes), &NAMES).unwrap();
    assert_eq!(found, Elf::Functions(vec![(0, 0x100)]));
}

#[test]
fn names_at_the_seams_of_chunks_are_found() {
    for shift in 0..16 {
        let mut bytes = library();
        let texts = bytes.len() as u64;
        bytes[0x298..0x2a0].copy_from_slice(&texts.to_le_bytes());
        let at = (CHUNK - shift) as u32;
        bytes[0x2a0..0x2a8].copy_from_slice(&(u64::from(at) + 100).to_le_bytes());
        bytes.resize(bytes.len() + at as usize, b'x');
        bytes.extend(b"getaddrinfo\0");
        bytes[0x318..0x31c].copy_from_slice(&at.to_le_bytes());
        let found = functions(&file_of(&bytes), &NAMES).unwrap();
        assert_eq!(found, Elf::Functions(vec![(0, 0x100)]), "{shift}");
    }
}

#[test]
fn the_libc_of_this_process_is_as_nm_says() {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let libc = maps
        .lines()
        .filter_map(|line| line.split_whitespace().nth(5))
        .find(|path| path.contains("/libc.so") || path.contains("/libc-2"));
    let Some(libc) = libc else {
        return skip(Need::Machine, "this process has no libc of its own");
    };
    let output = Command::new("nm")
        .args(["-D", "--defined-only", libc])
        .output();
    let Some(output) = output.ok().filter(|output| output.status.success()) else {
        return skip(Need::Tools, "no nm");
    };
    let text = String::from_utf8(output.stdout).unwrap();
    let line = text.lines().find(|line| {
        line.split(' ')
            .nth(2)
            .is_some_and(|name| name.split('@').next() == Some("getaddrinfo"))
    });
    let address = line.and_then(|line| u64::from_str_radix(line.split(' ').next()?, 16).ok());
    let found = functions(&File::open(libc).unwrap(), &["getaddrinfo"]).unwrap();
    let Elf::Functions(found) = found else {
        panic!("{found:?}");
    };
    let [(0, offset)] = found.as_slice() else {
        panic!("{found:?}");
    };
    // Libraries are loaded at their file offset, or some pages after it.
    let address = address.expect("every libc has it");
    assert_eq!(address % 4096, offset % 4096, "{address:x} {offset:x}");
}

#[test]
fn symbols_are_counted_without_being_read() {
    assert_eq!(symbols(&file_of(&library())).unwrap(), 3);
    let mut lies = library();
    lies[0x260..0x268].fill(0xff);
    assert_eq!(symbols(&file_of(&lies)).unwrap(), u64::MAX / 24);
    for length in 0..0x300 {
        assert!(symbols(&file_of(&library()[..length])).unwrap() <= 3);
    }
    let own = std::env::current_exe().unwrap();
    assert!(symbols(&File::open(own).unwrap()).unwrap() > 1000);
}
