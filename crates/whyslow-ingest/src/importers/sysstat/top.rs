//! `top -b`: repeated summaries with time and machine totals, each followed by a process table.

use whyslow_model::Ns;
use whyslow_model::counter::{CounterUnit, push_reported};

use super::super::stamp::{self, SECOND_NS, Stamp};
use super::columns::{self, Scale};
use super::headers::comm;
use super::{Of, ReadLine, ReportWriter, goes_on};

#[derive(Debug, Default)]
pub(super) struct Top {
    at: Option<Ns>,
    before: Option<Ns>,
    /// Shortest interval between the samples of this run.
    step: Option<Ns>,
    header: Vec<String>,
    /// `-H`: the ids are thread ids.
    has_threads: bool,
}

/// `top - 02:00:35 up 21 min,  0 user,  load average: 4.83, 4.15, 2.45`
pub(super) fn is_first_line(line: &str) -> bool {
    line.starts_with("top - ") && line.contains("load average:")
}

const MACHINE: Of<'static> = Of {
    tool: "top",
    subject: None,
    pid: None,
    tid: None,
    comm: None,
};

impl ReadLine for Top {
    fn line(&mut self, line: &str, writer: &mut ReportWriter) -> Result<(), String> {
        if line.is_empty() {
            return Ok(());
        }
        if is_first_line(line) {
            return self.begin(line, writer);
        }
        let Some(at) = self.at else {
            return Err("missing line with a time before it".to_owned());
        };
        let words: Vec<&str> = line.split_whitespace().collect();
        if words.first() == Some(&"PID") && words.contains(&"%CPU") {
            self.header = words.iter().map(|word| (*word).to_owned()).collect();
            return Ok(());
        }
        let is_heading = line.split_once(':').is_some_and(|(name, _)| {
            name.starts_with(['T', '%', 'M', 'K', 'G', 'S']) && !self.is_row(&words)
        });
        if is_heading {
            return self.heading(line, at, writer);
        }
        self.row(&words, at, writer)
    }
}

impl Top {
    fn begin(&mut self, line: &str, writer: &mut ReportWriter) -> Result<(), String> {
        let words: Vec<&str> = line.split_whitespace().skip(2).collect();
        let (time, _) = stamp::stamp(&words, None)
            .filter(|(time, _)| matches!(time, Stamp::OfDay(_)))
            .ok_or("missing time of day after `top -`")?;
        let at = writer.at(time);
        // A file may contain several runs: the first sample of each is since boot.
        let distance = self.at.map(|before| at.saturating_sub(before));
        self.step = match (distance, self.step) {
            (Some(distance), Some(step)) => {
                goes_on((step, SECOND_NS), distance).then(|| step.min(distance))
            }
            (distance, _) => distance.filter(|distance| *distance >= 0),
        };
        self.before = self.at.filter(|_| self.step.is_some());
        self.at = Some(at);
        self.header.clear();
        let (_, loads) = line.split_once("load average:").unwrap_or_default();
        let mut values = String::new();
        let scale = Scale::new(100.0, CounterUnit::Hundredths);
        for (name, load) in ["load_1", "load_5", "load_15"]
            .iter()
            .zip(loads.split(", "))
        {
            scale.push(&mut values, name, load.trim())?;
        }
        writer.row(&MACHINE, (at, None), &values);
        Ok(())
    }

    fn is_row(&self, words: &[&str]) -> bool {
        words
            .first()
            .is_some_and(|word| word.parse::<i32>().is_ok())
            && !self.header.is_empty()
    }

    /// `Tasks: 122 total, 1 running`, `%Cpu(s):  0.0 us,100.0 sy`, `MiB Mem :  24105.1 total`.
    fn heading(&mut self, line: &str, at: Ns, writer: &mut ReportWriter) -> Result<(), String> {
        let (label, rest) = line.split_once(':').unwrap_or_default();
        let label = label.trim();
        self.has_threads |= label == "Threads";
        let size = match label.split(' ').next() {
            Some("KiB") => 1024.0,
            Some("MiB") => 1024.0 * 1024.0,
            Some("GiB") => 1024.0 * 1024.0 * 1024.0,
            _ => 1.0,
        };
        let (prefix, scale, subject) = match label {
            "Tasks" | "Threads" => ("tasks_", Scale::new(1.0, CounterUnit::Count), None),
            label if label.starts_with("%Cpu") => {
                let cpu = label.trim_start_matches("%Cpu");
                let scale = Scale::new(100.0, CounterUnit::Hundredths);
                ("%", scale, Some(cpu).filter(|cpu| *cpu != "(s)"))
            }
            label if label.ends_with("Mem") => ("mem_", Scale::new(size, CounterUnit::Bytes), None),
            label if label.ends_with("Swap") => {
                ("swap_", Scale::new(size, CounterUnit::Bytes), None)
            }
            label => return Err(format!("unknown label `{label}:`")),
        };
        // The first sample is since boot.
        if prefix == "%" && self.before.is_none() {
            writer.done.since_boot += 1;
            return Ok(());
        }
        let mut values = String::new();
        let parted = parted(rest);
        let mut words = parted.split_whitespace();
        while let Some(number) = words.next() {
            // The last value of the swap line reads `20927.8 avail Mem`.
            let name = words.next().unwrap_or_default();
            if name.is_empty() || number == "Mem" {
                break;
            }
            let is_available = name == "avail";
            let prefix = if is_available { "mem_" } else { prefix };
            scale.push(
                &mut values,
                &format!("{prefix}{}", name.trim_end_matches('.')),
                number.trim_end_matches('.'),
            )?;
            if is_available {
                break;
            }
        }
        let interval = self
            .before
            .filter(|_| prefix == "%")
            .map(|before| at.saturating_sub(before));
        writer.row(&Of { subject, ..MACHINE }, (at, interval), &values);
        Ok(())
    }

    fn row(&self, words: &[&str], at: Ns, writer: &mut ReportWriter) -> Result<(), String> {
        if self.header.is_empty() || words.len() < self.header.len() {
            return Err("not a process row".to_owned());
        }
        let mut of = MACHINE;
        let rest = words[self.header.len() - 1..].join(" ");
        let mut values = String::new();
        let interval = self.before.map(|before| at.saturating_sub(before));
        let mut share = String::new();
        for (name, text) in self.header.iter().zip(words) {
            match name.as_str() {
                "PID" => {
                    let number = text.parse().map_err(|_| format!("invalid pid `{text}`"))?;
                    of.tid = Some(number);
                    of.pid = Some(number).filter(|_| !self.has_threads);
                }
                "VIRT" | "RES" | "SHR" => {
                    let (number, size) = columns::number(text)
                        .ok_or_else(|| format!("`{text}` in column `{name}` is not a number"))?;
                    let bytes = number * size.unwrap_or(1024.0);
                    if bytes.abs() < 9e15 {
                        push_reported(
                            &mut values,
                            (name, bytes.round() as i64),
                            CounterUnit::Bytes,
                        );
                    }
                }
                "%CPU" => Scale::of(name).push(&mut share, name, text)?,
                "%MEM" => Scale::of(name).push(&mut values, name, text)?,
                // A truncated one ends with a plus sign.
                "COMMAND" => of.comm = comm(&rest).filter(|_| !rest.ends_with('+')),
                _ => {}
            }
        }
        writer.row(&of, (at, None), &values);
        if interval.is_some() {
            writer.row(&of, (at, interval), &share);
        } else {
            writer.done.since_boot += 1;
        }
        Ok(())
    }
}

/// `1,3 us,  0,5 sy` without the commas that separate values: those after names.
fn parted(text: &str) -> String {
    let mut is_name = false;
    let part = |c: char| {
        let is_behind_name = std::mem::replace(&mut is_name, c.is_alphabetic());
        if c == ',' && is_behind_name { ' ' } else { c }
    };
    text.chars().map(part).collect()
}

#[cfg(test)]
mod tests {
    use super::super::{Form, translate};

    fn report(samples: &[&str], cpu: &str) -> String {
        let sample = |time: &&str| {
            format!("top - {time} up 21 min,  0 user,  load average: 4,83, 4,15, 2,45\n{cpu}\n\n")
        };
        samples.iter().map(sample).collect()
    }

    #[test]
    fn numbers_with_commas_are_told_from_commas_between_them() {
        let samples = ["02:00:35", "02:00:38"];
        for cpu in [
            "%Cpu(s):  1,3 us,100,0 sy,  0,5 ni",
            "%Cpu(s):  1.3 us,100.0 sy,  0.5 ni",
        ] {
            let done = translate(Form::Top, &report(&samples, cpu), None, 5);
            assert_eq!((done.bad, done.since_boot), (Vec::new(), 1), "{cpu}");
            let line = done.text.lines().find(|line| line.contains("%us"));
            let line = line.expect("a line with CPU values");
            for value in ["%us 130 ", "%sy 10000 ", "%ni 50 "] {
                assert!(line.contains(value), "{line}");
            }
        }
    }

    #[test]
    fn the_first_look_of_each_run_is_since_boot() {
        let since_boot = |samples: &[&str]| {
            let done = translate(Form::Top, &report(samples, "%Cpu(s):  1.3 us"), None, 5);
            done.since_boot
        };
        let run = ["02:00:35", "02:00:38", "02:00:41"];
        assert_eq!(since_boot(&run), 1);
        let later = ["03:00:35", "03:00:38", "03:00:41"];
        assert_eq!(since_boot(&[run, later].concat()), 2);
        // A sample that was slightly late, by a clock with a resolution of seconds.
        assert_eq!(
            since_boot(&["02:00:35", "02:00:36", "02:00:39", "02:00:40"]),
            1
        );
    }
}
