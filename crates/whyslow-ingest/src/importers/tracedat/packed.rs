//! Compressed parts of files.

use std::io::Read;

use flate2::read::ZlibDecoder;

use super::meta::Compression;

/// Decompresses `packed`, unless the result exceeds `limit`; allocates no more than needed.
pub(super) fn unpack(compression: Compression, packed: &[u8], limit: usize) -> Option<Vec<u8>> {
    let mut content = Vec::new();
    let wanted = limit as u64 + 1;
    match compression {
        Compression::None => return None,
        Compression::Zlib => {
            let from = ZlibDecoder::new(packed);
            from.take(wanted).read_to_end(&mut content).ok()?;
        }
        Compression::Zstd => {
            let from = zstd::stream::read::Decoder::new(packed).ok()?;
            from.take(wanted).read_to_end(&mut content).ok()?;
        }
    }
    (content.len() <= limit).then_some(content)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_is_unpacked_than_a_file_says() {
        let packed = zstd::bulk::compress(&vec![7; 100_000], 1).expect("compression works");
        let size = |limit| unpack(Compression::Zstd, &packed, limit).map(|content| content.len());
        assert_eq!(size(100_000), Some(100_000));
        assert_eq!(size(99_999), None);
        assert_eq!(unpack(Compression::Zlib, &packed, 100_000), None);
        for end in 0..packed.len() {
            assert_eq!(unpack(Compression::Zstd, &packed[..end], 100_000), None);
        }
    }
}
