use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::time::Zone;

/// How a result is written.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Output")]
pub struct OutputArgs {
    /// Write the result in FORMAT
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub format: Format,
    /// Same as --format json
    #[arg(long, conflicts_with_all = ["format", "csv"])]
    pub json: bool,
    /// Same as --format csv
    #[arg(long, conflicts_with = "format")]
    pub csv: bool,
    /// Write to FILE instead of standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Print only table NAME, if the result has several tables
    #[arg(long, value_name = "NAME")]
    pub table: Option<String>,
    /// Select columns: `a,b` prints only these, `+c` adds, `-d` removes; `help` lists all
    #[arg(long, value_name = "LIST", allow_hyphen_values = true)]
    pub cols: Option<String>,
    /// Print all columns and list items, whatever the terminal width
    #[arg(long)]
    pub wide: bool,
    /// Print times in UTC
    #[arg(long, visible_alias = "gmt", conflicts_with_all = ["tz", "rel"])]
    pub utc: bool,
    /// Print times in ZONE [default: that of the recorded host]
    #[arg(long, value_name = "ZONE", value_parser = Zone::parse)]
    pub tz: Option<Zone>,
    /// Print times relative to the start of the window
    #[arg(long)]
    pub rel: bool,
    /// Print durations in UNIT
    #[arg(long, value_name = "UNIT", default_value = "auto")]
    pub unit: UnitChoice,
    /// Print sizes in powers of 1000
    #[arg(long)]
    pub si: bool,
    /// Print ASCII only [default: if the locale is not UTF-8]
    #[arg(long)]
    pub ascii: bool,
    /// Never start a pager [default: $WHYSLOW_PAGER or $PAGER for output longer than the terminal]
    #[arg(long)]
    pub no_pager: bool,
    /// Exit with status 3 if events were lost in the window
    #[arg(long)]
    pub strict: bool,
    /// Number of this result in a series.
    #[arg(skip)]
    pub part: Option<u64>,
}

impl OutputArgs {
    /// The requested format, also by `--json` and `--csv`.
    pub fn chosen_format(&self) -> Format {
        match (self.json, self.csv) {
            (true, _) => Format::Json,
            (_, true) => Format::Csv,
            _ => self.format,
        }
    }
}

/// Output format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Human-readable
    Text,
    /// One JSON document
    Json,
    /// One JSON object per line
    Ndjson,
    /// Comma-separated, RFC 4180
    Csv,
    /// Tab-separated
    Tsv,
    /// Markdown
    Md,
    /// Self-contained page
    Html,
    /// Arrow IPC stream
    Arrow,
    /// Parquet
    Parquet,
    /// SVG image, only for `threads flame`
    #[value(skip)]
    Svg,
    /// Collapsed stacks, only for `threads flame`
    #[value(skip)]
    Collapsed,
    /// For speedscope, only for `threads flame`
    #[value(skip)]
    Speedscope,
    /// Counters for monitoring, only for `dns stats @live`
    #[value(skip)]
    Openmetrics,
}

/// A format that only one query supports: its name, the format, its description.
type Extra = (&'static str, Format, &'static str);

impl Format {
    /// Additional formats of `threads flame`.
    pub const GRAPHS: [Extra; 3] = [
        (
            "svg",
            Self::Svg,
            "Image for browsers, with zoom and search, offline",
        ),
        (
            "collapsed",
            Self::Collapsed,
            "Collapsed stacks for flamegraph.pl, inferno and similar tools",
        ),
        ("speedscope", Self::Speedscope, "For speedscope"),
    ];
    /// Additional formats of `dns stats`.
    pub const COUNTED: [Extra; 1] = [(
        "openmetrics",
        Self::Openmetrics,
        "With @live: counters and histograms by host and resolver, aggregated in the kernel",
    )];

    /// Whether it is a graph and not a table.
    pub fn is_graph(self) -> bool {
        Self::GRAPHS.iter().any(|(_, graph, _)| *graph == self)
    }

    /// A parser that also accepts these formats.
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

/// Unit of durations; `Auto` chooses a suitable one for each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[allow(missing_docs, reason = "clap would show comments as help")]
pub enum UnitChoice {
    Auto,
    Ns,
    Us,
    Ms,
    S,
}

/// Messages on standard error, of every command.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Global options")]
pub struct TalkArgs {
    /// Use colour WHEN: auto, always or never
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    pub color: ColorChoice,
    /// Suppress notes and progress
    #[arg(short, long, global = true)]
    pub quiet: bool,
    /// Show progress of operations longer than 1 s as HOW: auto or json
    #[arg(
        long,
        global = true,
        value_name = "HOW",
        default_value = "auto",
        require_equals = true
    )]
    pub progress: ProgressChoice,
    /// Do not show progress
    #[arg(long, global = true)]
    pub no_progress: bool,
}

impl TalkArgs {
    /// For results that are sent to other programs.
    pub fn silent() -> Self {
        Self {
            color: ColorChoice::Never,
            quiet: true,
            progress: ProgressChoice::Auto,
            no_progress: true,
        }
    }
}

/// When to colour text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[allow(missing_docs, reason = "clap would show comments as help")]
pub enum ColorChoice {
    Auto,
    Always,
    Never,
}

/// How to show progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ProgressChoice {
    /// A status line, if standard error is a terminal
    Auto,
    /// One JSON object per second
    Json,
}
