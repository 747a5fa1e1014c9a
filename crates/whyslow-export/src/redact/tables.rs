//! Tables with texts replaced as they are read: no query can return the original texts. A filter by
//! path applies to the replacement.

use std::collections::{BTreeSet, VecDeque};
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use arrow_array::{Array, ArrayRef, DictionaryArray, Int32Array, RecordBatch, StringArray};
use rustc_hash::FxHashMap;
use whyslow_model::tables::{FrameRow, MetadataRow};
use whyslow_model::{ColumnType, Row, Symbols, Table};
use whyslow_store::{Part, RecordingInfo, Scan, StoreError, Tables, Visit, rows};

use super::{Class, Redactor, Scope, class};

/// Dictionaries of the last batches, which consecutive batches often share.
const DICTIONARIES: usize = 64;

/// Wraps a source of tables.
pub struct RedactedTables<'t> {
    inner: Box<dyn Tables + 't>,
    redactor: Redactor,
    info: RecordingInfo,
    known: Mutex<VecDeque<Known>>,
}

#[derive(Clone)]
struct Known {
    class: Class,
    words: ArrayRef,
    new: Words,
}

/// Unique replacements of the words of a dictionary.
#[derive(Clone)]
struct Words {
    texts: ArrayRef,
    /// Index of the replacement of each word.
    numbers: Arc<[i32]>,
}

impl<'t> RedactedTables<'t> {
    /// Redacted tables over `inner`. For [`Scope::Names`], the names of kernel functions, which
    /// stay, are read first.
    pub fn new(inner: Box<dyn Tables + 't>, redactor: Redactor) -> Result<Self, StoreError> {
        let redactor = match redactor.scope() {
            Scope::Texts => redactor,
            Scope::Names => redactor.with_kernel(kernel_functions(&*inner)?),
        };
        Ok(Self {
            info: redactor.info(inner.info()),
            inner,
            redactor,
            known: Mutex::default(),
        })
    }

    /// The redactor, for texts outside of tables, too.
    pub fn redactor(&self) -> &Redactor {
        &self.redactor
    }

    /// The columns to read for a scan.
    fn wanted(scan: &Scan) -> Wanted {
        let classes = scan.columns.iter().map(|name| {
            let (_, column) = scan.table.column(name)?;
            let class = class::of_column(scan.table.name, name);
            (column.kind == ColumnType::Utf8 && class != Class::Public).then_some(class)
        });
        let classes: Vec<Option<Class>> = classes.collect();
        let mut scan = scan.clone();
        let is_fact = classes.contains(&Some(Class::Fact));
        let key = is_fact.then(|| {
            let key = scan.columns.iter().position(|name| *name == "key");
            key.unwrap_or_else(|| {
                scan.columns.push("key");
                scan.columns.len() - 1
            })
        });
        Wanted { scan, classes, key }
    }

    fn batch(&self, batch: &RecordBatch, wanted: &Wanted) -> Result<RecordBatch, StoreError> {
        let mut columns: Vec<ArrayRef> = batch.columns().to_vec();
        for (place, class) in wanted.classes.iter().enumerate() {
            let Some(class) = class else { continue };
            let Some(texts) = columns[place].as_dictionary_opt::<Int32Type>() else {
                return Err(unexpected(wanted.scan.table, wanted.scan.columns[place]));
            };
            columns[place] = match wanted.key.filter(|_| *class == Class::Fact) {
                Some(key) => self.facts(texts, batch.column(key)),
                None => Arc::new(self.column(texts, *class)),
            };
        }
        let shown: Vec<usize> = (0..wanted.classes.len()).collect();
        let new = RecordBatch::try_new(batch.schema(), columns);
        new.and_then(|new| new.project(&shown))
            .map_err(|_| unexpected(wanted.scan.table, "a text column"))
    }

    fn column(
        &self,
        texts: &DictionaryArray<Int32Type>,
        class: Class,
    ) -> DictionaryArray<Int32Type> {
        let new = self.words_of(texts.values(), class);
        let keys: Int32Array = texts
            .keys()
            .iter()
            .map(|key| key.and_then(|key| new.numbers.get(key as usize).copied()))
            .collect();
        DictionaryArray::new(keys, new.texts)
    }

    fn words_of(&self, words: &ArrayRef, class: Class) -> Words {
        let is_it = |known: &&Known| known.class == class && Arc::ptr_eq(&known.words, words);
        let lock = || self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = lock().iter().find(is_it) {
            return known.new.clone();
        }
        let new = self.new_words(words.as_string::<i32>(), class);
        let mut known = lock();
        if known.len() == DICTIONARIES {
            known.pop_front();
        }
        known.push_back(Known {
            class,
            words: Arc::clone(words),
            new: new.clone(),
        });
        new
    }

    fn new_words(&self, words: &StringArray, class: Class) -> Words {
        let mut texts: Vec<String> = Vec::with_capacity(words.len());
        let mut numbers: FxHashMap<String, i32> = FxHashMap::default();
        let places = words.iter().map(|word| {
            let new = self.redactor.text(class, word.unwrap_or_default());
            *numbers.entry(new).or_insert_with_key(|new| {
                texts.push(new.clone());
                texts.len() as i32 - 1
            })
        });
        let numbers = places.collect();
        Words {
            texts: Arc::new(StringArray::from(texts)),
            numbers,
        }
    }

    /// The class of a metadata value depends on its key. There are few.
    fn facts(&self, values: &DictionaryArray<Int32Type>, keys: &ArrayRef) -> ArrayRef {
        let keys = keys.as_dictionary::<Int32Type>();
        let at = |texts: &DictionaryArray<Int32Type>, row| {
            let word = texts.key(row)?;
            Some(texts.values().as_string::<i32>().value(word).to_owned())
        };
        let value = |row| {
            let class = at(keys, row).map_or(Class::Text, |key| class::of_fact(&key));
            at(values, row).map(|value| self.redactor.text(class, &value))
        };
        let new: Vec<Option<String>> = (0..values.len()).map(value).collect();
        let texts = new.iter().map(Option::as_deref);
        Arc::new(texts.collect::<DictionaryArray<Int32Type>>())
    }

    fn shown(
        &self,
        batch: &RecordBatch,
        wanted: &Wanted,
        visit: &mut Visit<'_>,
    ) -> Result<ControlFlow<()>, StoreError> {
        if wanted.classes.iter().all(Option::is_none) {
            return visit(batch);
        }
        visit(&self.batch(batch, wanted)?)
    }
}

/// A scan and the classes of its columns; `None` for unchanged columns.
struct Wanted {
    scan: Scan,
    classes: Vec<Option<Class>>,
    /// Index of the key column of metadata.
    key: Option<usize>,
}

/// Fails closed: nothing is shown that cannot be replaced.
fn unexpected(table: &Table, column: &str) -> StoreError {
    StoreError::NoColumn {
        table: table.name.to_owned(),
        column: column.to_owned(),
    }
}

fn kernel_functions(tables: &dyn Tables) -> Result<BTreeSet<String>, StoreError> {
    let mut symbols = Symbols::new();
    let frames = rows::<FrameRow>(tables, &mut symbols)?;
    let of_kernel = frames
        .iter()
        .filter(|frame| symbols.get(frame.kind) == "kernel");
    let functions = of_kernel.filter_map(|frame| frame.function);
    Ok(functions
        .map(|function| symbols.get(function).to_owned())
        .collect())
}

impl Tables for RedactedTables<'_> {
    fn info(&self) -> &RecordingInfo {
        &self.info
    }

    fn parts<'t>(&'t self, scan: &Scan) -> Result<Vec<Box<dyn Part + 't>>, StoreError> {
        let wanted = Arc::new(Self::wanted(scan));
        let parts = self.inner.parts(&wanted.scan)?.into_iter();
        Ok(parts
            .map(|part| {
                Box::new(RedactedPart {
                    part,
                    tables: self,
                    wanted: Arc::clone(&wanted),
                }) as Box<dyn Part + 't>
            })
            .collect())
    }

    fn words(
        &self,
        table: &'static Table,
        column: &str,
    ) -> Result<Option<BTreeSet<String>>, StoreError> {
        if table.name == MetadataRow::TABLE.name {
            return Ok(None);
        }
        let class = class::of_column(table.name, column);
        let words = self.inner.words(table, column)?;
        let new = |word: &String| self.redactor.text(class, word);
        Ok(words.map(|words| words.iter().map(new).collect()))
    }

    fn scan(&self, scan: &Scan, visit: &mut Visit<'_>) -> Result<(), StoreError> {
        let wanted = Self::wanted(scan);
        let mut each = |batch: &RecordBatch| self.shown(batch, &wanted, visit);
        self.inner.scan(&wanted.scan, &mut each)
    }
}

struct RedactedPart<'t> {
    part: Box<dyn Part + 't>,
    tables: &'t RedactedTables<'t>,
    wanted: Arc<Wanted>,
}

impl Part for RedactedPart<'_> {
    fn rows(&self) -> u64 {
        self.part.rows()
    }

    fn read(&self, visit: &mut Visit<'_>) -> Result<(), StoreError> {
        let mut each = |batch: &RecordBatch| self.tables.shown(batch, &self.wanted, visit);
        self.part.read(&mut each)
    }

    fn read_rows(&self, numbers: &[u64], visit: &mut Visit<'_>) -> Result<(), StoreError> {
        let mut each = |batch: &RecordBatch| self.tables.shown(batch, &self.wanted, visit);
        self.part.read_rows(numbers, &mut each)
    }
}

#[cfg(test)]
mod tests {
    use whyslow_model::tables::{self, Collected};
    use whyslow_model::trigger;
    use whyslow_model::{Feed, Sym, for_each_table};
    use whyslow_store::MemoryTables;

    use super::super::Key;
    use super::*;

    const SECRET: &str = "zxcvbnmqwrtp";

    /// Rows with a secret in each text that is not public.
    struct Planted<'s> {
        table: &'static Table,
        symbols: &'s mut Symbols,
    }

    impl Feed for Planted<'_> {
        fn i64(&mut self, _: usize) -> Option<i64> {
            Some(7)
        }
        fn i32(&mut self, _: usize) -> Option<i32> {
            Some(7)
        }
        fn f64(&mut self, _: usize) -> Option<f64> {
            Some(7.0)
        }
        fn bool(&mut self, _: usize) -> Option<bool> {
            Some(true)
        }
        fn sym(&mut self, column: usize) -> Option<Sym> {
            let name = self.table.columns[column].name;
            let text = match class::of_column(self.table.name, name) {
                Class::Public => name.to_owned(),
                Class::Event => format!("{SECRET}:x"),
                Class::Object => format!("/srv/{SECRET}"),
                _ => SECRET.to_owned(),
            };
            Some(self.symbols.intern(&text))
        }
    }

    fn planted() -> MemoryTables {
        let (mut rows, mut symbols) = (Collected::default(), Symbols::new());
        macro_rules! plant {
            ($($row:ident $field:ident),+) => {
                $(rows.$field.push(tables::$row::get(&mut Planted {
                    table: tables::$row::TABLE,
                    symbols: &mut symbols,
                }));)+
            };
        }
        for_each_table!(plant);
        let info = RecordingInfo {
            host: Some(SECRET.to_owned()),
            sources: vec![whyslow_store::SourceInfo {
                path: format!("/srv/{SECRET}"),
                ..Default::default()
            }],
            ..RecordingInfo::default()
        };
        MemoryTables::new(&rows, &symbols, info)
    }

    fn texts(batch: &RecordBatch, found: &mut Vec<String>) {
        let columns = batch.columns().iter();
        for texts in columns.filter_map(|column| column.as_dictionary_opt::<Int32Type>()) {
            let words = texts.values().as_string::<i32>().iter().flatten();
            found.extend(words.map(str::to_owned));
        }
    }

    #[test]
    fn no_way_to_read_a_table_shows_what_is_hidden() {
        let redactor = Redactor::new(Key::of(b"a test"), Scope::Names);
        let redacted = RedactedTables::new(Box::new(planted()), redactor).expect("a test");
        let mut found = Vec::new();
        for table in tables::ALL {
            let all: Vec<&str> = table.columns.iter().map(|column| column.name).collect();
            let alone = all.iter().map(|name| vec![*name]);
            for columns in alone.chain([all.clone()]) {
                let scan = Scan {
                    table,
                    columns,
                    window: None,
                };
                let mut show = |batch: &RecordBatch| {
                    assert_eq!(batch.num_columns(), scan.columns.len());
                    texts(batch, &mut found);
                    Ok(ControlFlow::Continue(()))
                };
                redacted.scan(&scan, &mut show).expect("a test");
                for part in redacted.parts(&scan).expect("a test") {
                    part.read(&mut show).expect("a test");
                    part.read_rows(&[0], &mut show).expect("a test");
                }
            }
            for name in &all {
                let words = redacted.words(table, name).expect("a test");
                found.extend(words.into_iter().flatten());
            }
        }
        found.push(format!("{:?}", redacted.info()));
        assert!(found.iter().any(|text| text.starts_with("/srv/")));
        for text in found {
            assert!(!text.contains(SECRET), "{text}");
        }
    }

    #[test]
    fn facts_are_what_their_keys_say() {
        let (mut rows, mut symbols) = (Collected::default(), Symbols::new());
        let facts = [
            ("zone", "Europe/Vienna"),
            ("mount_ns", "4026531832"),
            ("sample_interval_ns", "9655615"),
            (trigger::CONDITION, "open>200ms"),
            (trigger::TIME, "1700000000000000000"),
            ("hostname", "acme"),
        ];
        for (id, (key, value)) in facts.into_iter().enumerate() {
            rows.metadata.push(MetadataRow {
                id: id as i64,
                source: None,
                key: symbols.intern(key),
                value: symbols.intern(value),
            });
        }
        let memory = MemoryTables::new(&rows, &symbols, RecordingInfo::default());
        let redactor = Redactor::new(Key::of(b"a test"), Scope::Texts);
        let redacted = RedactedTables::new(Box::new(memory), redactor).expect("a test");
        let mut symbols = Symbols::new();
        let rows = whyslow_store::rows::<MetadataRow>(&redacted, &mut symbols).expect("a test");
        let values: Vec<&str> = rows.iter().map(|row| symbols.get(row.value)).collect();
        assert_eq!(values[..3], ["Europe/Vienna", "4026531832", "9655615"]);
        assert_eq!(values[3..5], ["open>200ms", "1700000000000000000"]);
        assert_ne!(values[5], "acme");
    }
}
