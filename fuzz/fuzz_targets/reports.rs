//! Output of sysstat, vmstat and top: any text becomes lines of the text format that can all be parsed.
#![no_main]

use libfuzzer_sys::fuzz_target;
use whyslow_fuzz::assert_read_again;
use whyslow_ingest::importers::sysstat::{self, Form};

fuzz_target!(|bytes: &[u8]| {
    let report = String::from_utf8_lossy(bytes);
    let _ = sysstat::form_of(&report);
    for form in [Form::Table, Form::Top, Form::Csv, Form::Json, Form::Jmx] {
        let done = sysstat::translate(form, &report, Some(1_700_000_000_000_000_000), 4);
        assert!(done.bad.len() <= 4);
        assert_read_again(&done.text);
    }
});
