//! Names that changed between format versions, translated when an older recording is read.
//!
//! Every reader of recordings goes through this list, or its copy in the Python package
//! (`renamed.py`). A later version adds its names at the end, with its own number.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, DictionaryArray, StringArray};
use whyslow_model::Table;

use crate::Cut;

/// A column with another name in recordings before a format version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RenamedColumn {
    /// First format version with the new name.
    pub since: u32,
    /// Table of the column.
    pub table: &'static str,
    /// Name in older recordings.
    pub old: &'static str,
    /// Name today.
    pub new: &'static str,
}

/// A word of a text column that older recordings spell differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RenamedWord {
    /// First format version with the new word.
    pub since: u32,
    /// Table of the column.
    pub table: &'static str,
    /// Column that has the word, by its name today.
    pub column: &'static str,
    /// Word in older recordings.
    pub old: &'static str,
    /// Word today.
    pub new: &'static str,
}

const COLUMNS: [RenamedColumn; 3] = [
    RenamedColumn {
        since: 3,
        table: "counter",
        old: "told_by",
        new: "reported_by",
    },
    RenamedColumn {
        since: 3,
        table: "lock_wait",
        old: "told_by",
        new: "reported_by",
    },
    RenamedColumn {
        since: 3,
        table: "request_thread",
        old: "got_by",
        new: "received_by",
    },
];

const WORDS: [RenamedWord; 5] = [
    RenamedWord {
        since: 3,
        table: "metadata",
        column: "key",
        old: "sample_interval_told_by",
        new: "sample_interval_reported_by",
    },
    anomaly("MACHINE_SLEPT", "MACHINE_SUSPENDED"),
    anomaly("PERF_HURRIED", "PERF_SORTED_EARLY"),
    anomaly("REQUEST_NOT_ASKED", "REQUEST_NOT_HTTP"),
    anomaly("SNOOP_TALK", "SNOOP_STATUS_LINE"),
];

const fn anomaly(old: &'static str, new: &'static str) -> RenamedWord {
    RenamedWord {
        since: 3,
        table: "trace_stat",
        column: "name",
        old,
        new,
    }
}

/// Name of a column in the files of a recording of this format version.
pub fn column_in_files(version: u32, table: &str, column: &'static str) -> &'static str {
    COLUMNS
        .iter()
        .find(|one| version < one.since && one.table == table && one.new == column)
        .map_or(column, |one| one.old)
}

/// Words of a text column that a recording of this format version may spell differently.
pub fn words_in_files(
    version: u32,
    table: &str,
    column: &str,
) -> impl Iterator<Item = &'static RenamedWord> {
    WORDS
        .iter()
        .filter(move |one| version < one.since && one.table == table && one.column == column)
}

/// A text column with the words of today.
pub(crate) fn with_new_words(
    version: u32,
    table: &Table,
    column: &str,
    array: &ArrayRef,
) -> ArrayRef {
    let mut words = words_in_files(version, table.name, column).peekable();
    if words.peek().is_none() {
        return Arc::clone(array);
    }
    let Some(texts) = array.as_dictionary_opt::<Int32Type>() else {
        return Arc::clone(array);
    };
    let Some(values) = texts.values().as_string_opt::<i32>() else {
        return Arc::clone(array);
    };
    let words: Vec<_> = words.collect();
    let values: StringArray = values
        .iter()
        .map(|value| value.map(|value| new_word(&words, value)))
        .collect();
    // Keys stay valid: there are as many values as before.
    DictionaryArray::try_new(texts.keys().clone(), Arc::new(values))
        .map_or_else(|_| Arc::clone(array), |texts| Arc::new(texts) as ArrayRef)
}

/// The distinct words of a column, as of today.
pub(crate) fn new_words(
    version: u32,
    table: &Table,
    column: &str,
    words: Vec<String>,
) -> Vec<String> {
    let renamed: Vec<_> = words_in_files(version, table.name, column).collect();
    let renew = |word: String| new_word(&renamed, &word).to_owned();
    words.into_iter().map(renew).collect()
}

fn new_word<'w>(renamed: &[&'static RenamedWord], word: &'w str) -> &'w str {
    renamed
        .iter()
        .find(|one| one.old == word)
        .map_or(word, |one| one.new)
}

/// The columns that a snapshot lists, by their names today.
pub(crate) fn rename_in_cut(version: u32, cut: &mut Cut) {
    for one in COLUMNS.iter().filter(|one| version < one.since) {
        let key = |column: &str| format!("{}.{column}", one.table);
        if let Some(words) = cut.recorded_words.remove(&key(one.old)) {
            cut.recorded_words.insert(key(one.new), words);
        }
        let columns: Option<&mut BTreeSet<String>> = cut.recorded_words.get_mut(one.table);
        if let Some(columns) = columns
            && columns.remove(one.old)
        {
            columns.insert(one.new.to_owned());
        }
    }
    for one in WORDS.iter().filter(|one| version < one.since) {
        let key = format!("{}.{}", one.table, one.column);
        if let Some(words) = cut.recorded_words.get_mut(&key)
            && words.remove(one.old)
        {
            words.insert(one.new.to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::FORMAT_VERSION;

    #[test]
    fn new_names_are_columns_of_today_and_old_names_are_not() {
        for one in COLUMNS {
            let table = whyslow_model::tables::ALL
                .iter()
                .find(|table| table.name == one.table)
                .expect("a table");
            assert!(table.column(one.new).is_some(), "{one:?}");
            assert!(table.column(one.old).is_none(), "{one:?}");
            assert!(one.since <= FORMAT_VERSION, "{one:?}");
        }
        for one in WORDS {
            assert!(one.since <= FORMAT_VERSION, "{one:?}");
        }
    }

    #[test]
    fn only_older_files_have_old_names() {
        assert_eq!(column_in_files(2, "counter", "reported_by"), "told_by");
        assert_eq!(column_in_files(3, "counter", "reported_by"), "reported_by");
        assert_eq!(column_in_files(2, "counter", "name"), "name");
        assert_eq!(column_in_files(2, "syscall", "reported_by"), "reported_by");
        assert_eq!(words_in_files(2, "trace_stat", "name").count(), 4);
        assert_eq!(words_in_files(3, "trace_stat", "name").count(), 0);
    }

    #[test]
    fn words_are_replaced_and_nulls_and_others_stay() {
        let table = &whyslow_model::tables::ALL
            .iter()
            .find(|table| table.name == "trace_stat")
            .expect("a table");
        let words = [Some("SNOOP_TALK"), None, Some("TEXT_LINE_BAD")];
        let texts: DictionaryArray<Int32Type> = words.into_iter().collect();
        let array: ArrayRef = Arc::new(texts);
        let read = |version| -> Vec<Option<String>> {
            let array = with_new_words(version, table, "name", &array);
            let texts = array.as_dictionary::<Int32Type>();
            let texts = texts.downcast_dict::<StringArray>().expect("text");
            texts
                .into_iter()
                .map(|text| text.map(str::to_owned))
                .collect()
        };
        let kept = |word: &str| Some(word.to_owned());
        assert_eq!(
            read(2),
            [kept("SNOOP_STATUS_LINE"), None, kept("TEXT_LINE_BAD")]
        );
        assert_eq!(read(3), [kept("SNOOP_TALK"), None, kept("TEXT_LINE_BAD")]);
    }

    #[test]
    fn the_columns_that_a_snapshot_lists_are_renamed() {
        let set = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        let mut cut = Cut {
            recorded_words: BTreeMap::from([
                ("counter.told_by".to_owned(), set(&["iostat"])),
                ("counter.name".to_owned(), set(&["await"])),
                ("trace_stat.name".to_owned(), set(&["PERF_HURRIED"])),
            ]),
            ..Cut::default()
        };
        rename_in_cut(2, &mut cut);
        let expected = BTreeMap::from([
            ("counter.name".to_owned(), set(&["await"])),
            ("counter.reported_by".to_owned(), set(&["iostat"])),
            ("trace_stat.name".to_owned(), set(&["PERF_SORTED_EARLY"])),
        ]);
        assert_eq!(cut.recorded_words, expected);
    }
}
