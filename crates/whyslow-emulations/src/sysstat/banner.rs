use whyslow_base::failure::Failure;

use crate::front::{Front, shown};

/// First line of sysstat's reports: kernel, host, date, architecture, CPUs. Unrecorded values are
/// `-`.
pub(super) fn banner(front: &Front<'_>) -> Result<String, Failure> {
    let fact =
        |key: &str| Ok::<_, Failure>(front.fact(key)?.map_or_else(dash, |value| shown(&value)));
    let info = front.opened.tables.info();
    let host = info.host.as_deref().map_or_else(dash, shown);
    let release = fact("kernel_release")?;
    let machine = fact("machine")?;
    let date = front.calendar.zone.civil(front.span().begin).date();
    let cpus = match front.cpus() {
        0 => dash(),
        cpus => cpus.to_string(),
    };
    Ok(format!(
        "Linux {release} ({host}) \t{date} \t_{machine}_\t({cpus} CPU)\n"
    ))
}

fn dash() -> String {
    "-".into()
}
