//! Output of Kafka's JmxTool:
//! `"time","kafka.network:type=RequestMetrics,name=LocalTimeMs,request=Fetch:Mean",…`, and
//! comma-separated rows whose times are milliseconds since 1970.
//!
//! A JMX name is a domain, a colon, properties, a colon and an attribute. The counter name consists
//! of `name` (or `type` if missing) and the attribute; the other properties are the subject.

use whyslow_model::counter::{CounterUnit, push_reported};

use super::super::stamp::Stamp;
use super::{Of, ReadLine, ReportWriter};

#[derive(Debug, Default)]
pub(super) struct Jmx {
    /// Columns grouped by subject.
    subjects: Vec<(String, Vec<Column>)>,
    count: usize,
}

#[derive(Debug)]
struct Column {
    /// Column index after the time.
    place: usize,
    name: String,
    unit: Option<(f64, CounterUnit)>,
}

const BEGIN: &str = "\"time\",\"";
const MS: f64 = 1e6;

pub(super) fn is_header(line: &str) -> bool {
    line.starts_with(BEGIN) && line.contains(":type=")
}

impl ReadLine for Jmx {
    // The header with all request metrics of a broker has about 700 kB.
    const BYTES_MAX: usize = 16 << 20;

    fn line(&mut self, line: &str, writer: &mut ReportWriter) -> Result<(), String> {
        if line.is_empty() {
            return Ok(());
        }
        if is_header(line) {
            self.header(line);
            return Ok(());
        }
        if self.count == 0 {
            return Err(format!("missing header (`{BEGIN}…`)"));
        }
        let cells: Vec<&str> = line.split(',').collect();
        let [time, cells @ ..] = cells.as_slice() else {
            return Err("missing time".to_owned());
        };
        if cells.len() != self.count {
            let (has, wants) = (cells.len() + 1, self.count + 1);
            return Err(format!("{has} fields, the header has {wants}"));
        }
        let ms: Result<i64, _> = time.parse();
        let ms = ms.map_err(|_| {
            format!("invalid time `{time}`: expected ms (JmxTool without --date-format)")
        })?;
        let at = writer.at(Stamp::Epoch(ms.saturating_mul(1_000_000)));
        for (subject, columns) in &self.subjects {
            let mut values = String::new();
            for column in columns {
                if !column.push(&mut values, cells[column.place]) {
                    writer.done.unreadable += 1;
                }
            }
            let of = Of {
                tool: "jmx",
                subject: Some(subject.as_str()).filter(|subject| !subject.is_empty()),
                ..Of::default()
            };
            writer.row(&of, (at, None), &values);
        }
        Ok(())
    }
}

impl Jmx {
    fn header(&mut self, line: &str) {
        self.subjects.clear();
        let names = line.strip_prefix(BEGIN).unwrap_or_default();
        let names = names.strip_suffix('"').unwrap_or(names);
        self.count = 0;
        for (place, name) in names.split("\",\"").enumerate() {
            self.count += 1;
            let Some((subject, column)) = column(place, name) else {
                continue;
            };
            match self
                .subjects
                .iter_mut()
                .find(|(other, _)| *other == subject)
            {
                Some((_, columns)) => columns.push(column),
                None => self.subjects.push((subject, vec![column])),
            }
        }
    }
}

/// Subject and counter; none for the units of rates, which are words.
fn column(place: usize, name: &str) -> Option<(String, Column)> {
    let (bean, attribute) = name.rsplit_once(':').unwrap_or((name, ""));
    if attribute.ends_with("Unit") || attribute == "EventType" {
        return None;
    }
    let properties = bean
        .split_once(':')
        .map_or(bean, |(_, properties)| properties);
    let (mut named, mut kind, mut others) = (None, None, Vec::new());
    for property in properties.split(',') {
        let (key, value) = property.split_once('=').unwrap_or(("", property));
        let value = value.trim_matches('"');
        match key {
            "name" => named = Some(value),
            "type" => kind = Some(value),
            _ => others.push(value),
        }
    }
    let what = named.or(kind).unwrap_or(bean);
    let is_rate = attribute.ends_with("Rate") || attribute.ends_with("-rate");
    let is_count = attribute == "Count" || attribute.ends_with("-count");
    let unit = if is_rate {
        Some((100.0, CounterUnit::HundredthsPerSecond))
    } else if what.ends_with("Ms") && !is_count {
        Some((MS, CounterUnit::Ns))
    } else {
        None
    };
    let name = match attribute {
        "" | "Value" => what.to_owned(),
        _ => format!("{what}.{attribute}"),
    };
    Some((others.join(" "), Column { place, name, unit }))
}

impl Column {
    /// Whether it is a number; a metric without a value yet is not.
    fn push(&self, values: &mut String, text: &str) -> bool {
        let number: Result<f64, _> = text.parse();
        let Some(number) = number.ok().filter(|number| number.is_finite()) else {
            return false;
        };
        let plain = if text.contains('.') {
            (100.0, CounterUnit::Hundredths)
        } else {
            (1.0, CounterUnit::Count)
        };
        let (factor, unit) = self.unit.unwrap_or(plain);
        let value = (number * factor).round();
        // Beyond this, not every integer is representable.
        let is_whole = value.abs() < 9e15;
        if is_whole {
            push_reported(values, (&self.name, value as i64), unit);
        }
        is_whole
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Form, form_of, translate};

    const REPORT: &str = concat!(
        "\"time\",\"kafka.network:type=RequestMetrics,name=RequestQueueTimeMs,request=Produce:99thPercentile\",",
        "\"kafka.network:type=RequestMetrics,name=RequestQueueTimeMs,request=Produce:Count\",",
        "\"kafka.network:type=RequestMetrics,name=LocalTimeMs,request=Fetch:Mean\",",
        "\"kafka.server:type=Produce,client-id=\"app 1\":request-time\",",
        "\"kafka.server:type=BrokerTopicMetrics,name=BytesInPerSec:OneMinuteRate\",",
        "\"kafka.server:type=BrokerTopicMetrics,name=BytesInPerSec:RateUnit\",",
        "\"kafka.network:type=RequestChannel,name=RequestQueueSize:Value\"\n",
        "1795735097000,412.5,17,0.25,1.0E-4,12.5,SECONDS,3\n",
        "1795735098000,NaN,18,0.5,2,13,SECONDS,4\n",
    );

    #[test]
    fn columns_are_of_whom_their_names_say() {
        assert_eq!(form_of(REPORT), Some(Form::Jmx));
        let done = translate(Form::Jmx, REPORT, None, 9);
        let lines: Vec<&str> = done.text.lines().skip(1).collect();
        assert_eq!(
            lines[..4],
            [
                "1795735097.000000000 [-] counters reported_by=jmx subject=\"Produce\" \
                 values=\"RequestQueueTimeMs.99thPercentile 412500000 ns;RequestQueueTimeMs.Count 17 count\"",
                "1795735097.000000000 [-] counters reported_by=jmx subject=\"Fetch\" \
                 values=\"LocalTimeMs.Mean 250000 ns\"",
                "1795735097.000000000 [-] counters reported_by=jmx subject=\"app 1\" \
                 values=\"Produce.request-time 0 hundredths\"",
                "1795735097.000000000 [-] counters reported_by=jmx \
                 values=\"BytesInPerSec.OneMinuteRate 1250 hundredths/s;RequestQueueSize 3 count\"",
            ]
        );
        assert_eq!((done.rows, done.unreadable, done.bad_count), (8, 1, 0));
        assert_eq!((done.zones, done.untimed), (0, 0));
    }

    #[test]
    fn what_is_wrong_with_a_row_is_told() {
        let header = REPORT.lines().next().unwrap_or_default();
        let check = |row: &str, part: &str| {
            let done = translate(Form::Jmx, &format!("{header}\n{row}\n"), None, 9);
            assert_eq!(done.rows, 0);
            assert!(done.bad[0].what.contains(part), "{:?}", done.bad);
        };
        check("1795735097000,1", "2 fields, the header has 8");
        check("2026-11-26 23:18:17,1,2,3,4,5,6,7", "without --date-format");
        let done = translate(Form::Jmx, "1,2\n", None, 9);
        assert!(
            done.bad[0].what.contains("missing header"),
            "{:?}",
            done.bad
        );
    }
}
