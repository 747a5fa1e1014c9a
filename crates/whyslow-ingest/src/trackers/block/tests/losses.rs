//! Lost events, and I/Os in progress at the start or end of the recording.

use super::check;

#[test]
fn what_the_recording_cuts_is_kept() {
    check(
        "0 7 queue 8:0 8+8 R
         3 - complete 8:0 900+8 W
         5 36 issue 8:0 8+8 R",
        &[
            "0-? 8:0 8+8 read R request bio_queue:7 queue 5 device ? completions 0 cut end",
            "3-3 8:0 900+8 write W request ? queue ? device ? cut begin",
        ],
    );
}

#[test]
fn a_lost_completion_does_not_make_a_long_request() {
    let expected = [
        "1-? 8:0 100+8 read R request issue:7 queue ? device ? completions 0 cut end",
        "8-9 8:0 100+8 read R request issue:8 queue ? device 1",
    ];
    let machine = check(
        "1 7 issue 8:0 100+8 R
         8 8 issue 8:0 100+8 R
         9 - complete 8:0 100+8 R",
        &expected,
    );
    let reused = &whyslow_model::stat::BLOCK_KEY_REUSED;
    assert_eq!(machine.anomalies.get(reused), 1);
    check(
        "0 7 getrq 8:0 100+8 R
         1 7 issue 8:0 100+8 R
         5 lost 2
         7 8 getrq 8:0 100+8 R
         8 8 issue 8:0 100+8 R
         9 - complete 8:0 100+8 R",
        &[
            "0-? 8:0 100+8 read R request getrq:7 queue 1 device ? completions 0 cut end",
            "7-9 8:0 100+8 read R request getrq:8 queue 1 device 1",
        ],
    );
}

#[test]
fn an_end_across_a_loss_has_a_duration_only_if_a_certain_one_was_as_long() {
    let certain = "0 7 issue 8:0 8+8 R
         4 - complete 8:0 8+8 R";
    let across = "10 7 issue 8:0 100+8 R
         12 lost 2
         13 - complete 8:0 100+8 R
         20 7 issue 8:0 100+8 R
         22 lost 2
         29 - complete 8:0 100+8 R";
    check(
        &format!("{certain}\n{across}"),
        &[
            "0-4 8:0 8+8 read R request issue:7 queue ? device 4",
            "10-13 8:0 100+8 read R request issue:7 queue ? device 3 cut lost",
            "20-29 8:0 100+8 read R request issue:7 queue ? device ? cut lost",
        ],
    );
    // One event cannot be both the completion and the issue of the next one.
    check(
        "20 7 issue 8:0 100+8 R
         22 lost 1
         29 - complete 8:0 100+8 R",
        &["20-29 8:0 100+8 read R request issue:7 queue ? device 9"],
    );
}

#[test]
fn a_lost_completion_does_not_shift_all_later_ones() {
    // The journal writes the same block each time. Issue and completion of the first were lost.
    check(
        "0 7 queue 8:0 100+8 W
         1 lost 2
         10 7 queue 8:0 100+8 W
         11 7 issue 8:0 100+8 W
         12 - complete 8:0 100+8 W
         20 7 queue 8:0 100+8 W
         21 7 issue 8:0 100+8 W
         22 - complete 8:0 100+8 W",
        &[
            "0-? 8:0 100+8 write W bio bio_queue:7 queue ? device ? completions 0 cut end",
            "10-12 8:0 100+8 write W request bio_queue:7 queue 1 device 1",
            "20-22 8:0 100+8 write W request bio_queue:7 queue 1 device 1",
        ],
    );
    check(
        "1 7 issue 8:0 -1+0 FF
         2 lost 1
         11 7 issue 8:0 -1+0 FF
         12 - complete 8:0 -1+0 FF
         21 7 issue 8:0 -1+0 FF
         22 - complete 8:0 -1+0 FF",
        &[
            "1-? 8:0 0+0 flush FF request issue:7 queue ? device ? completions 0 cut end",
            "11-12 8:0 0+0 flush FF request issue:7 queue ? device 1",
            "21-22 8:0 0+0 flush FF request issue:7 queue ? device 1",
        ],
    );
}
