use whyslow_analysis::Weight;
use whyslow_base::args::UnitChoice;
use whyslow_base::time::Zone;
use whyslow_model::Ns;

/// How people see an answer: everything that is not in the answer itself.
#[derive(Debug, Clone)]
pub struct Look {
    /// Zone of the times.
    pub zone: Zone,
    /// Times count from here.
    pub rel: Option<Ns>,
    /// Unit of lengths of time.
    pub unit: UnitChoice,
    /// Sizes in powers of 1000.
    pub si: bool,
    /// No characters beyond ASCII.
    pub ascii: bool,
    /// With colours.
    pub color: bool,
    /// Columns of the terminal; `None` means that nothing is left out or shortened.
    pub width: Option<usize>,
    /// Digits in groups; not in files and pipes, where programs read them.
    pub group: bool,
    /// What makes a cell of a heat map dark.
    pub weight: Weight,
    /// Also the columns that few want to see.
    pub details: bool,
    /// Which of several answers it is.
    pub part: Option<u64>,
    /// Columns that stay however narrow the terminal.
    pub keep: Vec<String>,
}

impl Look {
    /// A look for files and pipes: complete, plain, UTC.
    #[cfg(test)]
    pub fn plain() -> Self {
        Self {
            zone: Zone::utc(),
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
            Paint::Loss | Paint::Outlier => anstyle::AnsiColor::Red.on_default().bold(),
            Paint::Cut => anstyle::AnsiColor::Yellow.on_default(),
            Paint::Bar => anstyle::AnsiColor::Cyan.on_default(),
            Paint::Aside => anstyle::Style::new().dimmed(),
        };
        format!("{style}{text}{style:#}")
    }
}

/// What a piece of text is; colour follows, and never says what the text does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Paint {
    Header,
    Loss,
    Outlier,
    Cut,
    Bar,
    Aside,
}
