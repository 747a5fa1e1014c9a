//! Checks views in `sql/`: a documented header, portable SQL.

/// Words that one of the two engines does not support, or that hide columns.
const BANNED: [&str; 7] = [
    "select *", "unnest", "qualify", "filter (", "asof", "lateral", "approx_",
];

pub(super) fn check(name: &str, text: &str, complaints: &mut Vec<String>) {
    if !name.starts_with("sql/") || !name.ends_with(".sql") {
        return;
    }
    let lower = text.to_lowercase();
    for word in BANNED {
        let code = lower
            .lines()
            .filter(|line| !line.trim_start().starts_with("--"));
        if code.into_iter().any(|line| line.contains(word)) {
            complaints.push(format!(
                "{name}: `{word}` is not portable or not explicit SQL"
            ));
        }
    }
    if !text.starts_with("-- ") {
        complaints.push(format!(
            "{name}: must start with a comment that describes the view"
        ));
    }
    for (at, line) in text.lines().enumerate() {
        if line.len() > 100 {
            complaints.push(format!("{name}:{}: longer than 100 columns", at + 1));
        }
    }
}
