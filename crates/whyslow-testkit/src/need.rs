//! Requirements of tests beyond the workspace, and which of them `WHYSLOW_REQUIRE` enforces.

/// A reason to skip. Machines that meet it should list it in `WHYSLOW_REQUIRE`, so that a
/// regression fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Need {
    /// This machine can be recorded: root, and a kernel with BTF.
    Live,
    /// Mounts, namespaces, control groups and loop devices.
    Isolation,
    /// The development traces, in the directory `WHYSLOW_DATA`.
    Data,
    /// The web pages, which the program embeds if they were built before it.
    Pages,
    /// The program `duckdb`.
    DuckDb,
    /// `babeltrace2`, its Python module `bt2`, and the older `babeltrace`.
    Babeltrace,
    /// A Chromium that runs headless.
    Chromium,
    /// `python3`, and the packages that a test imports.
    Python,
    /// PySpark, and Java for it.
    Spark,
    /// A JDK: `java`, `javac`, `jcmd`.
    Java,
    /// A C compiler.
    Compiler,
    /// Any other program that a test compares with or covers.
    Tools,
    /// Conditions that no package provides: more CPUs, another kernel, a chance event.
    Machine,
    /// The test runs as root.
    Root,
    /// The test does not run as root, which can read all files.
    NotRoot,
}

impl Need {
    /// All needs, in the order of the message that lists them.
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

    /// The name in `WHYSLOW_REQUIRE`.
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

    /// Whether `all` includes it: no machine can be both root and not root, or has everything that
    /// hardware and kernels offer.
    /// hardware and kernels offer.
    fn can_be_had(self) -> bool {
        !matches!(self, Self::Machine | Self::Root | Self::NotRoot)
    }
}

/// Whether a value of `WHYSLOW_REQUIRE`, a comma-separated list of names, enforces a need.
///
/// # Panics
/// On an unknown name: with a misspelled name, everything would pass.
pub(crate) fn is_required(names: &str, need: Need) -> bool {
    let names = names.split(',').map(str::trim);
    let mut is_required = false;
    for name in names.filter(|name| !name.is_empty()) {
        let known = Need::ALL.iter().find(|need| need.name() == name);
        is_required |= match known {
            Some(known) => *known == need,
            None if name == "all" => need.can_be_had(),
            None => panic!(
                "unknown need `{name}` in WHYSLOW_REQUIRE; use all, {}",
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
    #[should_panic(expected = "`duckdbb` in WHYSLOW_REQUIRE; use all, live, ")]
    fn a_misspelt_name_is_an_error() {
        is_required("live,duckdbb", Need::Live);
    }
}
