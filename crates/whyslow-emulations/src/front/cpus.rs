use whyslow_analysis::{Kind, Verb};
use whyslow_base::failure::Failure;

use super::parts::Parts;
use super::session::Front;
use crate::cells::{Row, rows};

/// CPU time breakdown of an interval in per cent, mean of all CPUs; `None` if not recorded.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct CpuShares {
    pub(crate) user: Option<f64>,
    pub(crate) nice: Option<f64>,
    pub(crate) system: Option<f64>,
    pub(crate) iowait: Option<f64>,
    pub(crate) hardirq: Option<f64>,
    pub(crate) softirq: Option<f64>,
    pub(crate) steal: Option<f64>,
    pub(crate) idle: Option<f64>,
}

impl CpuShares {
    /// One for each interval.
    pub(crate) fn of(front: &Front<'_>, parts: Parts) -> Result<Vec<Self>, Failure> {
        let answer = front.query((Kind::Cpu, Verb::Usage), |query| {
            query.by = vec!["cpu".into()];
            query.interval = parts.interval();
        })?;
        let mut by_part: Vec<Vec<Row<'_>>> = vec![Vec::new(); parts.count()];
        for row in rows(&answer, "cpus") {
            let part = row.int("ts_ns").map_or(Some(0), |ts| parts.of(ts));
            if let Some(part) = part {
                by_part[part].push(row);
            }
        }
        Ok(by_part.iter().map(|rows| Self::mean(rows)).collect())
    }

    fn mean(rows: &[Row<'_>]) -> Self {
        let of = |name: &str| {
            let values: Vec<f64> = rows.iter().filter_map(|row| row.float(name)).collect();
            let sum: f64 = values.iter().sum();
            (!values.is_empty()).then(|| 100.0 * sum / values.len() as f64)
        };
        Self {
            user: of("user_ratio"),
            nice: of("nice_ratio"),
            system: of("system_ratio"),
            iowait: of("iowait_ratio"),
            hardirq: of("hardirq_ratio"),
            softirq: of("softirq_ratio"),
            steal: of("steal_ratio"),
            idle: of("idle_ratio"),
        }
    }
}
