//! What a recording cannot show.

use whyslow_store::Tables;

use crate::report::Report;

/// What an excerpt of a recording cannot show.
pub(super) fn add_excerpt(tables: &dyn Tables, report: &mut Report) {
    let info = tables.info();
    if info.cut.is_none() {
        return;
    }
    report
        .caveats
        .push("this is an excerpt of a longer recording: baselines cover the excerpt only".into());
    let (whole, begin) = (info.whole().begin, info.begin_ns);
    for finding in &mut report.findings {
        if finding.target.begin_ns < begin && begin > whole {
            let missing = begin - finding.target.begin_ns;
            finding.caveats.push(format!(
                "its first {:.3} s are not part of this excerpt",
                missing as f64 / 1e9
            ));
        }
    }
}
