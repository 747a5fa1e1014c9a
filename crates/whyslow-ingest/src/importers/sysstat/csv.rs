//! `sadf -d`: `# hostname;interval;timestamp;CPU;%user;…`, and rows separated by semicolons.

use super::super::stamp::{self, SECOND_NS};
use super::columns::{self, Role, Scale};
use super::{Of, ReadLine, ReportWriter};

#[derive(Debug, Default)]
pub(super) struct Csv {
    columns: Vec<(String, Role)>,
    topic: Option<&'static str>,
    /// The last column is repeated for each CPU.
    is_open: bool,
    is_known: bool,
}

const BEFORE: &str = "# hostname;interval;timestamp;";

impl ReadLine for Csv {
    fn line(&mut self, line: &str, writer: &mut ReportWriter) -> Result<(), String> {
        if line.is_empty() {
            return Ok(());
        }
        if let Some(header) = line.strip_prefix(BEFORE) {
            return self.header(header);
        }
        if line.contains(";LINUX-RESTART") || line.contains(";COM ") {
            writer.done.sums += 1;
            return Ok(());
        }
        let cells: Vec<&str> = line.split(';').collect();
        let [_, interval, time, cells @ ..] = cells.as_slice() else {
            return Err("fewer than four fields".to_owned());
        };
        if self.columns.is_empty() {
            return Err(format!("missing header (`{BEFORE}…`)"));
        }
        let words: Vec<&str> = time.split_whitespace().collect();
        let read = stamp::stamp(&words, writer.dates).filter(|(_, taken)| *taken == words.len());
        let (time, _) = read.ok_or_else(|| format!("invalid time `{time}`"))?;
        let at = writer.at(time);
        let seconds: i64 = interval
            .parse()
            .map_err(|_| format!("invalid interval `{interval}`"))?;
        let interval = Some(seconds.saturating_mul(SECOND_NS)).filter(|interval| *interval > 0);
        let count = self.columns.len();
        if cells.len() != count && !(self.is_open && cells.len() >= count) {
            return Err(format!(
                "{} fields, the header has {}",
                cells.len() + 3,
                count + 3
            ));
        }
        let mut of = Of {
            tool: "sar",
            subject: self.topic,
            ..Of::default()
        };
        let mut values = String::new();
        for ((name, role), text) in self.columns.iter().zip(cells) {
            match role {
                Role::Subject if name == "CPU" && *text == "-1" => of.subject = Some("all"),
                Role::Subject => of.subject = Some(text),
                Role::Value(scale) => scale.push(&mut values, name, text)?,
                _ => {}
            }
        }
        if self.is_open {
            for (cpu, text) in cells[count..].iter().enumerate() {
                Scale::of("intr/s").push(&mut values, &format!("CPU{cpu}"), text)?;
            }
        }
        writer.row(&of, (at, interval), &values);
        Ok(())
    }
}

impl Csv {
    fn header(&mut self, header: &str) -> Result<(), String> {
        self.columns.clear();
        self.is_known = !header.contains("[...]");
        if !self.is_known {
            return Err(
                "several objects in one row (`sadf -h`): use `sadf -d` without `-h`".to_owned(),
            );
        }
        self.is_open = header.ends_with("CPU*");
        let names = header.split(';').map(|name| match name {
            "CPU*" => ("all".to_owned(), Role::Value(Scale::of("intr/s"))),
            name => (name.to_owned(), columns::role(name, false)),
        });
        self.columns = names.collect();
        self.topic = match header.split(';').next() {
            Some("call/s") => Some("nfs"),
            Some("scall/s") => Some("nfsd"),
            Some("atmptf/s") => Some("tcp"),
            _ => None,
        };
        Ok(())
    }
}
