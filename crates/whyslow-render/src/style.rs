use whyslow_analysis::Weight;
use whyslow_base::args::UnitChoice;
use whyslow_base::time::Zone;
use whyslow_model::Ns;

/// Presentation for people: everything that is not part of the answer itself.
#[derive(Debug, Clone)]
pub struct TextStyle {
    /// Time zone of displayed times.
    pub zone: Zone,
    /// Origin of relative times.
    pub rel: Option<Ns>,
    /// Unit of durations.
    pub unit: UnitChoice,
    /// Sizes in powers of 1000.
    pub si: bool,
    /// Use ASCII characters only.
    pub ascii: bool,
    /// Use colours.
    pub color: bool,
    /// Width of the terminal; `None`: nothing is omitted or shortened.
    pub width: Option<usize>,
    /// Group digits; not in files and pipes, which programs read.
    pub group: bool,
    /// Measure that determines the shade of a heat map cell.
    pub weight: Weight,
    /// Show columns of low priority, too.
    pub details: bool,
    /// Number of this answer in a series of answers.
    pub part: Option<u64>,
    /// Columns that are shown however narrow the terminal is.
    pub keep: Vec<String>,
}

impl TextStyle {
    /// Style for files and pipes: complete, without colours, UTC.
    #[cfg(test)]
    pub fn plain() -> Self {
        Self::of_zone(Zone::utc())
    }

    /// The same in a zone.
    pub(super) fn of_zone(zone: Zone) -> Self {
        Self {
            zone,
            rel: None,
            unit: UnitChoice::Auto,
            si: false,
            ascii: false,
            color: false,
            width: None,
            group: false,
            weight: Weight::Count,
            details: false,
            part: None,
            keep: Vec::new(),
        }
    }

    pub(super) fn paint(&self, paint: Paint, text: &str) -> String {
        if !self.color || text.is_empty() {
            return text.to_owned();
        }
        let style = match paint {
            Paint::Header => anstyle::Style::new().bold(),
            Paint::Loss | Paint::Outlier | Paint::Culprit => {
                anstyle::AnsiColor::Red.on_default().bold()
            }
            Paint::Cut => anstyle::AnsiColor::Yellow.on_default(),
            Paint::Bar => anstyle::AnsiColor::Cyan.on_default(),
            Paint::Aside => anstyle::Style::new().dimmed(),
        };
        format!("{style}{text}{style:#}")
    }
}

/// Kind of a piece of text. Colour only repeats what the text shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Paint {
    Header,
    Loss,
    Outlier,
    Culprit,
    Cut,
    Bar,
    Aside,
}
