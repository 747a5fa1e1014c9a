use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::time::Zone;

/// How an answer is written.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Output")]
pub struct OutputArgs {
    /// Form of the answer
    #[arg(long, value_name = "FORM", default_value = "text")]
    pub format: Format,
    /// Short for --format json
    #[arg(long, conflicts_with_all = ["format", "csv"])]
    pub json: bool,
    /// Short for --format csv
    #[arg(long, conflicts_with = "format")]
    pub csv: bool,
    /// Write to a file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Only this table of an answer that has several
    #[arg(long, value_name = "NAME")]
    pub table: Option<String>,
    /// Columns: `a,b` only these, `+c` never left out, `-d` without; `help` lists them
    #[arg(long, value_name = "LIST", allow_hyphen_values = true)]
    pub cols: Option<String>,
    /// Every column and every item of a list, however wide
    #[arg(long)]
    pub wide: bool,
    /// Times in UTC
    #[arg(long, visible_alias = "gmt", conflicts_with_all = ["tz", "rel"])]
    pub utc: bool,
    /// Times in this zone [default: the recorded host's]
    #[arg(long, value_name = "ZONE", value_parser = Zone::parse)]
    pub tz: Option<Zone>,
    /// Times from the begin of the window
    #[arg(long)]
    pub rel: bool,
    /// Unit of lengths of time
    #[arg(long, value_name = "UNIT", default_value = "auto")]
    pub unit: UnitChoice,
    /// Sizes in powers of 1000
    #[arg(long)]
    pub si: bool,
    /// Only ASCII characters [default: if the locale is not UTF-8]
    #[arg(long)]
    pub ascii: bool,
    /// Never start a pager (else $WHYSLOW_PAGER or $PAGER shows what is longer than the terminal)
    #[arg(long)]
    pub no_pager: bool,
    /// Exit with 3 if events were lost in the window
    #[arg(long)]
    pub strict: bool,
    /// Which of several answers it is.
    #[arg(skip)]
    pub part: Option<u64>,
}

impl OutputArgs {
    /// The form that is asked for, also by its short flags.
    pub fn chosen_format(&self) -> Format {
        match (self.json, self.csv) {
            (true, _) => Format::Json,
            (_, true) => Format::Csv,
            _ => self.format,
        }
    }
}

/// Form of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people
    Text,
    /// One document
    Json,
    /// One object a line
    Ndjson,
    /// Comma-separated, RFC 4180
    Csv,
    /// Tab-separated
    Tsv,
    /// Markdown
    Md,
    /// A page without outside references
    Html,
    /// Arrow IPC stream
    Arrow,
    /// Parquet
    Parquet,
    /// A picture, of `threads flame` alone
    #[value(skip)]
    Svg,
    /// Lines of stacks, of `threads flame` alone
    #[value(skip)]
    Collapsed,
    /// For speedscope, of `threads flame` alone
    #[value(skip)]
    Speedscope,
    /// Counters for monitoring, of `dns stats @live` alone
    #[value(skip)]
    Openmetrics,
}

/// A form that one question takes beside those of all: its word, and what it is.
type Extra = (&'static str, Format, &'static str);

impl Format {
    /// What `threads flame` takes beside the forms of all answers.
    pub const GRAPHS: [Extra; 3] = [
        (
            "svg",
            Self::Svg,
            "A picture for browsers that zooms and searches offline",
        ),
        (
            "collapsed",
            Self::Collapsed,
            "Lines of stacks for flamegraph.pl, inferno and the like",
        ),
        ("speedscope", Self::Speedscope, "For speedscope"),
    ];
    /// The same of `dns stats`.
    pub const COUNTED: [Extra; 1] = [(
        "openmetrics",
        Self::Openmetrics,
        "With @live: counters and histograms by host and resolver, counted in the kernel",
    )];

    /// Whether it is no table.
    pub fn is_graph(self) -> bool {
        Self::GRAPHS.iter().any(|(_, graph, _)| *graph == self)
    }

    /// Reads the word of a flag, also one of these.
    pub fn with(extra: &'static [Extra]) -> impl clap::builder::TypedValueParser<Value = Self> {
        use clap::builder::TypedValueParser as _;
        let tables = Self::value_variants()
            .iter()
            .filter_map(ValueEnum::to_possible_value);
        let more = extra
            .iter()
            .map(|(name, _, about)| clap::builder::PossibleValue::new(*name).help(about));
        clap::builder::PossibleValuesParser::new(tables.chain(more)).map(|word: String| {
            let found = extra.iter().find(|(name, ..)| *name == word);
            found.map_or_else(
                || <Self as ValueEnum>::from_str(&word, false).unwrap_or(Self::Text),
                |(_, format, _)| *format,
            )
        })
    }
}

/// Unit of lengths of time; `Auto` chooses one that suits each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[allow(missing_docs, reason = "clap would show comments as help")]
pub enum UnitChoice {
    Auto,
    Ns,
    Us,
    Ms,
    S,
}

/// What is said on standard error, by every command.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Everywhere")]
pub struct TalkArgs {
    /// When to colour
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    pub color: ColorChoice,
    /// No hints and no progress
    #[arg(short, long, global = true)]
    pub quiet: bool,
    /// Progress of what takes longer than a second
    #[arg(
        long,
        global = true,
        value_name = "HOW",
        default_value = "auto",
        require_equals = true
    )]
    pub progress: ProgressChoice,
    /// No progress
    #[arg(long, global = true)]
    pub no_progress: bool,
}

impl TalkArgs {
    /// Of who answers other programs.
    pub fn silent() -> Self {
        Self {
            color: ColorChoice::Never,
            quiet: true,
            progress: ProgressChoice::Auto,
            no_progress: true,
        }
    }
}

/// When text is coloured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[allow(missing_docs, reason = "clap would show comments as help")]
pub enum ColorChoice {
    Auto,
    Always,
    Never,
}

/// How progress is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ProgressChoice {
    /// A line, if standard error is a terminal
    Auto,
    /// One JSON object a second
    Json,
}
