//! Attributes of a process as grouping keys: control group, container, user, mount namespace. Rows
//! only have the process, so each attribute is looked up by process.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::key::ProcessAttribute;

/// A process as shown in answers.
#[derive(Debug, Clone, Default)]
pub(crate) struct ProcessName {
    pub(crate) pid: i64,
    /// Recording-unique id and kernel id of the parent.
    pub(crate) parent: Option<i64>,
    pub(crate) ppid: Option<i64>,
    pub(crate) comm: Option<String>,
    pub(crate) exe: Option<String>,
    pub(crate) command_line: Option<String>,
    pub(crate) uid: Option<i64>,
    pub(crate) user: Option<String>,
    pub(crate) cgroup: Option<String>,
    pub(crate) container: Option<String>,
    pub(crate) mount_ns: Option<i64>,
}

/// A number for an attribute of each process: users and namespaces are numbers already, texts are
/// in `texts`.
#[derive(Debug, Default)]
pub(crate) struct Owners {
    numbers: FxHashMap<i64, i64>,
    texts: Option<Vec<Box<str>>>,
}

impl Owners {
    pub(crate) fn new<'p>(
        attribute: ProcessAttribute,
        processes: impl Iterator<Item = (i64, &'p ProcessName)>,
    ) -> Arc<Self> {
        Arc::new(match attribute {
            ProcessAttribute::User => Self {
                numbers: processes
                    .filter_map(|(upid, process)| Some((upid, process.uid?)))
                    .collect(),
                texts: None,
            },
            ProcessAttribute::MountNs => Self {
                numbers: processes
                    .filter_map(|(upid, process)| Some((upid, process.mount_ns?)))
                    .collect(),
                texts: None,
            },
            ProcessAttribute::Cgroup => Self::of_texts(
                processes.filter_map(|(upid, process)| Some((upid, process.cgroup.as_deref()?))),
            ),
            ProcessAttribute::Container => Self::of_texts(
                processes.filter_map(|(upid, process)| Some((upid, process.container.as_deref()?))),
            ),
        })
    }

    fn of_texts<'p>(named: impl Iterator<Item = (i64, &'p str)>) -> Self {
        let mut known: FxHashMap<&str, i64> = FxHashMap::default();
        let mut texts: Vec<Box<str>> = Vec::new();
        let mut number = |text: &'p str| {
            *known.entry(text).or_insert_with(|| {
                texts.push(text.into());
                texts.len() as i64 - 1
            })
        };
        let numbers = named.map(|(upid, text)| (upid, number(text))).collect();
        Self {
            numbers,
            texts: Some(texts),
        }
    }

    #[inline]
    pub(crate) fn number(&self, upid: i64) -> Option<i64> {
        self.numbers.get(&upid).copied()
    }

    /// The text of a number; `None` if the number is the value.
    pub(crate) fn text(&self, number: i64) -> Option<&str> {
        let texts = self.texts.as_ref()?;
        texts.get(usize::try_from(number).ok()?).map(|text| &**text)
    }
}
