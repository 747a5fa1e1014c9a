//! `mark`: adds a marker to every active recording.

use whyslow_base::args::TalkArgs;
use whyslow_base::failure::Failure;
use whyslow_base::talk;
use whyslow_record::MARK_BYTES_MAX;

use crate::cli::MarkArgs;

pub(super) fn run(args: &MarkArgs, talk: &TalkArgs) -> Result<(), Failure> {
    let text = args.text.join(" ");
    if text.trim().is_empty() {
        return Err(Failure::usage("cannot add the marker: it has no text")
            .hint("write what happens: sudo whyslow mark deployed 2.4.1"));
    }
    if text.len() > MARK_BYTES_MAX {
        let message = format!(
            "the marker has {} bytes, the maximum is {MARK_BYTES_MAX}",
            text.len()
        );
        return Err(Failure::usage(message));
    }
    let marked = whyslow_record::mark(&text)
        .map_err(|error| Failure::new("cannot list active recordings").caused_by(&error))?;
    match marked {
        0 => Err(
            Failure::new("cannot add the marker: no active recording of this user")
                .hint("run it as the user that records: sudo whyslow mark TEXT"),
        ),
        _ if talk.quiet => Ok(()),
        1 => {
            talk::line("marker added to 1 recording");
            Ok(())
        }
        marked => {
            talk::line(&format!("marker added to {marked} recordings"));
            Ok(())
        }
    }
}
