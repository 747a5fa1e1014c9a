//! Counters of one process: its memory, and the bytes that it read and wrote.

use std::fs;
use std::path::Path;

use whyslow_model::counter as c;

use super::machine::Value;

/// The readable values; none of an exited process or a kernel thread.
pub(super) fn all(folder: &Path) -> Vec<Value> {
    let mut values = Vec::new();
    let page = rustix::param::page_size() as i64;
    let sizes = fs::read_to_string(folder.join("statm")).unwrap_or_default();
    memory(&sizes, page, &mut values);
    if values.is_empty() {
        return values;
    }
    io(
        &fs::read_to_string(folder.join("io")).unwrap_or_default(),
        &mut values,
    );
    values
}

/// `765 432 404 5 0 123 0`, pages.
fn memory(text: &str, page: i64, values: &mut Vec<Value>) {
    let mut words = text
        .split_whitespace()
        .map_while(|word| word.parse::<i64>().ok());
    let (size, rss, shared) = (words.next(), words.next(), words.next());
    let (Some(size), Some(rss), Some(shared)) = (size, rss, shared) else {
        return;
    };
    if size == 0 {
        return;
    }
    for (place, pages) in [(c::RSS, rss), (c::SIZE, size), (c::SHARED, shared)] {
        values.push((place, pages.saturating_mul(page)));
    }
}

/// `read_bytes: 0`
fn io(text: &str, values: &mut Vec<Value>) {
    for line in text.lines() {
        let Some((name, count)) = line.split_once(':') else {
            continue;
        };
        let place = match name {
            "read_bytes" => c::IO_READ,
            "write_bytes" => c::IO_WRITTEN,
            "cancelled_write_bytes" => c::IO_CANCELLED,
            _ => continue,
        };
        values.extend(count.trim().parse().ok().map(|count| (place, count)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_and_io_of_a_process_are_read() {
        let mut values = Vec::new();
        memory("0 0 0 0 0 0 0", 4096, &mut values);
        memory("5 x 4", 4096, &mut values);
        memory("", 4096, &mut values);
        io("read_bytes\nread_bytes: x\nrchar: 5\n", &mut values);
        assert_eq!(values, []);
        memory("5 4 3 1 0 2 0\n", 4096, &mut values);
        io(
            "rchar: 1\nread_bytes: 512\nwrite_bytes: 7\ncancelled_write_bytes: 3\n",
            &mut values,
        );
        let expected = [
            (c::RSS, 16_384),
            (c::SIZE, 20_480),
            (c::SHARED, 12_288),
            (c::IO_READ, 512),
            (c::IO_WRITTEN, 7),
            (c::IO_CANCELLED, 3),
        ];
        assert_eq!(values, expected);
    }

    #[test]
    fn this_process_has_memory() {
        let values = all(Path::new("/proc/self"));
        assert!(
            values
                .iter()
                .any(|(place, bytes)| *place == c::RSS && *bytes > 100_000)
        );
        assert_eq!(all(Path::new("/proc/self/no")), []);
    }
}
