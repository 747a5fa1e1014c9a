//! What a test needs beyond the workspace, and which of it `WHYSLOW_REQUIRE` insists on.

/// A reason to skip. A machine that has it should name it in `WHYSLOW_REQUIRE`, so that losing it fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Need {
    /// That this machine can be recorded: root, and a kernel that describes its types.
    Live,
    /// Mounts, namespaces, control groups and loop devices of one's own.
    Isolation,
    /// The development traces, in the folder that `WHYSLOW_DATA` names.
    Data,
    /// The web pages, which the program carries if they were built before it.
    Pages,
    /// The program `duckdb`.
    DuckDb,
    /// `babeltrace2`, its Python module `bt2`, and the older `babeltrace`.
    Babeltrace,
    /// A Chromium that runs without a display.
    Chromium,
    /// `python3`, and the packages that a test imports.
    Python,
    /// PySpark, and the Java that it runs on.
    Spark,
    /// A JDK: `java`, `javac`, `jcmd`.
    Java,
    /// A C compiler.
    Compiler,
    /// Any other program that a test compares with or is about.
    Tools,
    /// What no package brings: more CPUs, another kernel, an event that happened by chance.
    Machine,
    /// That the test runs as root.
    Root,
    /// That the test does not run as root, for whom no file is unreadable.
    NotRoot,
}

impl Need {
    /// Every need, in the order of the message that lists them.
    pub const ALL: [Self; 15] = [
        Self::Live,
        Self::Isolation,
        Self::Data,
        Self::Pages,
        Self::DuckDb,
        Self::Babeltrace,
        Self::Chromium,
        Self::Python,
        Self::Spark,
        Self::Java,
        Self::Compiler,
        Self::Tools,
        Self::Machine,
        Self::Root,
        Self::NotRoot,
    ];

    /// As `WHYSLOW_REQUIRE` names it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Live => "live",
            Self::Isolation => "isolation",
            Self::Data => "data",
            Self::Pages => "pages",
            Self::DuckDb => "duckdb",
            Self::Babeltrace => "babeltrace",
            Self::Chromium => "chromium",
            Self::Python => "python",
            Self::Spark => "spark",
            Self::Java => "java",
            Self::Compiler => "compiler",
            Self::Tools => "tools",
            Self::Machine => "machine",
            Self::Root => "root",
            Self::NotRoot => "not_root",
        }
    }

    /// Whether `all` includes it: no machine can be both root and not, and none has everything that
    /// hardware and kernels offer.
    fn can_be_had(self) -> bool {
        !matches!(self, Self::Machine | Self::Root | Self::NotRoot)
    }
}

/// Whether a value of `WHYSLOW_REQUIRE`, names with commas between, insists on a need.
///
/// # Panics
/// At a name that is none: a gate with a misspelt name would let everything pass.
pub(crate) fn is_required(names: &str, need: Need) -> bool {
    let names = names.split(',').map(str::trim);
    let mut is_required = false;
    for name in names.filter(|name| !name.is_empty()) {
        let known = Need::ALL.iter().find(|need| need.name() == name);
        is_required |= match known {
            Some(known) => *known == need,
            None if name == "all" => need.can_be_had(),
            None => panic!(
                "WHYSLOW_REQUIRE names `{name}`; it may name all, {}",
                Need::ALL.map(Need::name).join(", ")
            ),
        };
    }
    is_required
}

#[cfg(test)]
mod tests {
    use super::*;

    fn required(names: &str) -> Vec<&'static str> {
        let needs = Need::ALL.into_iter();
        let required = needs.filter(|need| is_required(names, *need));
        required.map(Need::name).collect()
    }

    #[test]
    fn nothing_is_required_unless_named() {
        assert!(required("").is_empty());
        assert!(required(" , ,").is_empty());
    }

    #[test]
    fn what_is_named_is_required_and_nothing_else() {
        assert_eq!(required("duckdb"), ["duckdb"]);
        assert_eq!(required(" data,live ,"), ["live", "data"]);
        for need in Need::ALL {
            assert_eq!(required(need.name()), [need.name()]);
        }
    }

    #[test]
    fn all_leaves_out_what_no_installation_brings() {
        let all = required("all");
        assert_eq!(all.len(), Need::ALL.len() - 3);
        for name in ["machine", "root", "not_root"] {
            assert!(!all.contains(&name), "{name}");
        }
        assert!(required("all,root").contains(&"root"));
    }

    #[test]
    #[should_panic(expected = "`duckdbb`; it may name all, live, ")]
    fn a_misspelt_name_is_an_error() {
        is_required("live,duckdbb", Need::Live);
    }
}
