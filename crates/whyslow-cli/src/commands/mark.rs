//! `mark`: says what happens now in every recording under way.

use whyslow_base::args::TalkArgs;
use whyslow_base::failure::Failure;
use whyslow_base::talk;
use whyslow_record::MARK_BYTES_MAX;

use crate::cli::MarkArgs;

pub(super) fn run(args: &MarkArgs, talk: &TalkArgs) -> Result<(), Failure> {
    let text = args.text.join(" ");
    if text.trim().is_empty() {
        return Err(Failure::usage("the mark has no text"));
    }
    if text.len() > MARK_BYTES_MAX {
        let message = format!(
            "the mark has {} bytes: {MARK_BYTES_MAX} are the most",
            text.len()
        );
        return Err(Failure::usage(message));
    }
    let marked = whyslow_record::mark(&text)
        .map_err(|error| Failure::new("failed to find recordings under way").caused_by(&error))?;
    match marked {
        0 => Err(Failure::new("nothing is being recorded by this user").hint(
            "start a recording first (sudo whyslow record), and mark it as the same user: sudo whyslow mark TEXT",
        )),
        _ if talk.quiet => Ok(()),
        1 => {
            talk::line("marked in one recording");
            Ok(())
        }
        marked => {
            talk::line(&format!("marked in {marked} recordings"));
            Ok(())
        }
    }
}
