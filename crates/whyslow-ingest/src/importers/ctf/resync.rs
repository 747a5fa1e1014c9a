//! Finds the next packet in a damaged file.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use memchr::memmem;

const BLOCK_BYTES: usize = 64 << 10;

/// Offset of the first complete signature in `from..to`.
pub(super) fn find_signature(
    path: &Path,
    signature: &[u8],
    from: u64,
    to: u64,
) -> io::Result<Option<u64>> {
    if signature.is_empty() || from >= to {
        return Ok(None);
    }
    let file = File::open(path)?;
    let finder = memmem::Finder::new(signature);
    let mut block = vec![0; BLOCK_BYTES];
    let mut begin = from;
    while begin < to {
        let len = read_block(&file, &mut block, begin, to)?;
        if let Some(place) = finder.find(&block[..len]) {
            return Ok(Some(begin + place as u64));
        }
        if len < BLOCK_BYTES {
            return Ok(None);
        }
        begin += (len - (signature.len() - 1)) as u64;
    }
    Ok(None)
}

/// Whether `from..to` is all zeros: space that the tracer reserved but did not use.
pub(super) fn is_all_zeros(path: &Path, from: u64, to: u64) -> io::Result<bool> {
    let file = File::open(path)?;
    let mut block = vec![0; BLOCK_BYTES];
    let mut begin = from;
    while begin < to {
        let len = read_block(&file, &mut block, begin, to)?;
        if block[..len].iter().any(|&byte| byte != 0) {
            return Ok(false);
        }
        if len == 0 {
            break;
        }
        begin += len as u64;
    }
    Ok(true)
}

fn read_block(file: &File, block: &mut [u8], begin: u64, to: u64) -> io::Result<usize> {
    let wanted = block.len().min((to - begin) as usize);
    let mut len = 0;
    while len < wanted {
        match file.read_at(&mut block[len..wanted], begin + len as u64) {
            Ok(0) => break,
            Ok(read) => len += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(len)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn file(bytes: &[u8]) -> tempfile::NamedTempFile {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(bytes).unwrap();
        file
    }

    #[test]
    fn signature_across_two_blocks() {
        let mut bytes = vec![1; BLOCK_BYTES * 2];
        bytes[BLOCK_BYTES - 2..BLOCK_BYTES + 2].copy_from_slice(b"abcd");
        let file = file(&bytes);
        let to = bytes.len() as u64;
        let found = |from| find_signature(file.path(), b"abcd", from, to).unwrap();
        assert_eq!(found(0), Some(BLOCK_BYTES as u64 - 2));
        assert_eq!(found(BLOCK_BYTES as u64 - 2), Some(BLOCK_BYTES as u64 - 2));
        assert_eq!(found(BLOCK_BYTES as u64 - 1), None);
        assert_eq!(find_signature(file.path(), b"", 0, to).unwrap(), None);
    }

    #[test]
    fn zeros_up_to_the_end_only() {
        let mut bytes = vec![0; BLOCK_BYTES + 10];
        bytes[3] = 1;
        let file = file(&bytes);
        assert!(is_all_zeros(file.path(), 4, bytes.len() as u64).unwrap());
        assert!(!is_all_zeros(file.path(), 3, bytes.len() as u64).unwrap());
    }
}
