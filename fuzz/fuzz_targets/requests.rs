//! Lists of requests and of markers: any bytes are read or rejected, durations are not negative, and markers become
//! lines that can all be parsed.
#![no_main]

use libfuzzer_sys::fuzz_target;
use whyslow_fuzz::assert_read_again;
use whyslow_ingest::importers::markers;
use whyslow_ingest::importers::requests::{ReadOptions, Form, form_of, read_bytes};

const FORMS: [Form; 14] = [
    Form::Load,
    Form::Access,
    Form::Kafka,
    Form::K6Json,
    Form::K6Csv,
    Form::VegetaJson,
    Form::VegetaCsv,
    Form::Hey,
    Form::Ab,
    Form::Har,
    Form::Otlp,
    Form::Jaeger,
    Form::Zipkin,
    Form::Oha,
];

fuzz_target!(|bytes: &[u8]| {
    let Some((first, rest)) = bytes.split_first() else {
        return;
    };
    let text = String::from_utf8_lossy(rest);
    let _ = form_of(&text);
    let _ = markers::is_list(&text);
    assert_read_again(&markers::translate(&text, 4).text);
    // A log format is untrusted text, too.
    let (format, log) = text.split_once('\n').unwrap_or_default();
    let written = Some(1_700_000_000_000_000_000);
    let by_format = ReadOptions { written, format: Some(format) };
    let _ = read_bytes(Form::Access, log.as_bytes(), by_format);
    let form = FORMS[usize::from(*first) % FORMS.len()];
    let options = ReadOptions { written, format: None };
    let Ok((requests, summary)) = read_bytes(form, rest, options) else {
        return;
    };
    assert!(summary.skipped <= summary.records);
    for request in &requests {
        assert!(request.dur.is_none_or(|dur| dur >= 0));
        assert!(request.phases.iter().all(|phase| phase.dur >= 0));
    }
});
