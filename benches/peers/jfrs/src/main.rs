//! `jfrs-loop FILE`: reads time, thread and stack depth of each sample with the crate jfrs.

use std::fs::File;
use std::io::BufReader;

use jfrs::reader::JfrReader;

fn main() {
    let path = std::env::args().nth(1).expect("usage: jfrs-loop FILE");
    let file = BufReader::new(File::open(path).expect("the file can be opened"));
    let (mut samples, mut frames, mut threads, mut last) = (0_u64, 0_usize, 0_u64, 0_i64);
    for chunk in JfrReader::new(file).chunks() {
        let (mut reader, chunk) = chunk.expect("the chunk can be read");
        for event in reader.events(&chunk) {
            let event = event.expect("the event can be read");
            if event.class.name() != "jdk.ExecutionSample" {
                continue;
            }
            let value = event.value();
            let number = |field| value.get_field(field).and_then(|of| i64::try_from(of.value).ok());
            last = last.max(number("startTime").unwrap_or(0));
            let thread = value.get_field("sampledThread");
            threads += u64::from(thread.and_then(|of| of.get_field("osThreadId")).is_some());
            let stack = value.get_field("stackTrace").and_then(|of| of.get_field("frames"));
            frames += stack.and_then(|of| of.as_iter()).map_or(0, Iterator::count);
            samples += 1;
        }
    }
    println!("{samples} samples, {threads} with threads, {frames} frames, last at {last}");
}
