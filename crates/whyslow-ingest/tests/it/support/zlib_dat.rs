//! Compresses an uncompressed trace-cmd file of version 7 with zlib: not every trace-cmd can do
//! that.

use std::io::Write;

use flate2::Compression;
use flate2::write::ZlibEncoder;

const SECTION_HEADER_BYTES: usize = 16;
const DONE: u16 = 0;
const BUFFER: u16 = 3;
/// Options that contain the offset of a section.
const SECTIONS: std::ops::RangeInclusive<u16> = 16..=21;
/// Pages per chunk.
const CHUNK_BYTES: usize = 2 * 4096;

fn number<const N: usize>(bytes: &[u8], at: usize) -> usize {
    let mut wide = [0; 8];
    wide[..N].copy_from_slice(&bytes[at..at + N]);
    u64::from_le_bytes(wide) as usize
}

fn packed(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).expect("room");
    let packed = encoder.finish().expect("room");
    let mut out = (packed.len() as u32).to_le_bytes().to_vec();
    out.extend((bytes.len() as u32).to_le_bytes());
    out.extend(packed);
    out
}

fn section(out: &mut Vec<u8>, id: u16, content: &[u8]) -> usize {
    let at = out.len();
    out.extend(id.to_le_bytes());
    out.extend(1_u16.to_le_bytes());
    out.extend(0_u32.to_le_bytes());
    out.extend((content.len() as u64).to_le_bytes());
    out.extend(content);
    at
}

pub(crate) fn made(whole: &[u8]) -> Vec<u8> {
    let names = b"\x17\x08\x44tracing7\0".len() + 6;
    assert_eq!(
        &whole[names..names + 5],
        b"none\0",
        "a file that is not compressed"
    );
    let version = whole[names + 5..]
        .iter()
        .position(|byte| *byte == 0)
        .expect("an end");
    let mut next = number::<8>(whole, names + 5 + version + 1);
    let mut out = whole[..names].to_vec();
    out.extend(b"zlib\x001\0");
    let link = out.len();
    out.extend([0; 8]);
    let mut options = Vec::new();
    while next != 0 {
        let mut at = next + SECTION_HEADER_BYTES;
        loop {
            let (id, size) = (number::<2>(whole, at) as u16, number::<4>(whole, at + 2));
            let data = &whole[at + 6..at + 6 + size];
            at += 6 + size;
            if id == DONE {
                next = number::<8>(data, 0);
                break;
            }
            let mut data = data.to_vec();
            if id == BUFFER {
                buffer(whole, &mut data, &mut out);
            } else if SECTIONS.contains(&id) {
                let from = number::<8>(&data, 0);
                let begin = from + SECTION_HEADER_BYTES;
                let content = packed(&whole[begin..begin + number::<8>(whole, from + 8)]);
                let to = section(&mut out, id, &content);
                data[..8].copy_from_slice(&(to as u64).to_le_bytes());
            }
            options.extend(id.to_le_bytes());
            options.extend((data.len() as u32).to_le_bytes());
            options.extend(data);
        }
    }
    options.extend(DONE.to_le_bytes());
    options.extend(8_u32.to_le_bytes());
    options.extend([0; 8]);
    let at = section(&mut out, DONE, &packed(&options));
    out[link..link + 8].copy_from_slice(&(at as u64).to_le_bytes());
    out
}

/// Compresses the pages of all CPUs, and updates their offsets in the option.
fn buffer(whole: &[u8], option: &mut [u8], out: &mut Vec<u8>) {
    let to = section(out, BUFFER, &[]);
    option[..8].copy_from_slice(&(to as u64).to_le_bytes());
    let mut at = 8;
    for _ in ["name", "clock"] {
        at += option[at..]
            .iter()
            .position(|byte| *byte == 0)
            .expect("an end")
            + 1;
    }
    let count = number::<4>(option, at + 4);
    at += 8;
    for _ in 0..count {
        let (from, size) = (number::<8>(option, at + 4), number::<8>(option, at + 12));
        let begin = out.len();
        if size > 0 {
            let chunks: Vec<&[u8]> = whole[from..from + size].chunks(CHUNK_BYTES).collect();
            out.extend((chunks.len() as u32).to_le_bytes());
            for chunk in chunks {
                out.extend(packed(chunk));
            }
        }
        // The size excludes the field with the number of chunks.
        let size = (out.len() - begin).saturating_sub(4);
        option[at + 4..at + 12].copy_from_slice(&(begin as u64).to_le_bytes());
        option[at + 12..at + 20].copy_from_slice(&(size as u64).to_le_bytes());
        at += 20;
    }
}
