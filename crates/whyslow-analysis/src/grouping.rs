//! Assigns small numbers to groups while scanning.
//!
//! Text columns are translated once per dictionary word, integer columns through a map with the
//! last value cached; several keys are folded pairwise into one number. The numbers are private to
//! a thread: results are merged by the values of the keys.

mod pairs;

use std::borrow::Cow;
use std::sync::Arc;

use arrow_array::{Array, RecordBatch};
use rustc_hash::FxHashMap;
use whyslow_model::{Ns, Window};

use crate::AnalysisError;
use crate::interner::Interner;
use crate::keys::{Derive, Key, KeyValue, Shape, unknown_object};
use crate::owners::Owners;
use crate::scan::{ColumnRef, PerWord, Projection, Texts};
use crate::spec::Spec;
use crate::threads::Names;
use pairs::PairCoder;

/// Keys bound to the columns of a projection.
#[derive(Debug, Clone)]
pub(crate) struct Grouping {
    columns: Vec<Bound>,
}

/// Time intervals as a key: the start of the interval that contains `column`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TimeKey {
    pub(crate) column: ColumnRef,
    pub(crate) span: Window,
    pub(crate) width: Ns,
}

impl TimeKey {
    /// Times outside the span belong to its first or last interval.
    #[inline]
    pub(crate) fn begin(&self, ts: Ns) -> Ns {
        let last = self.span.end.max(self.span.begin + 1) - 1;
        let ts = ts.clamp(self.span.begin, last);
        ts - (ts - self.span.begin) % self.width
    }
}

#[derive(Debug, Clone)]
enum Bound {
    Text(ColumnRef, Derive),
    Int(ColumnRef),
    Time(TimeKey),
    Object {
        path: ColumnRef,
        reason: ColumnRef,
        derive: Derive,
    },
    Owner(ColumnRef, Arc<Owners>),
}

/// The object of a call that the keys apply to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Object {
    /// What `fd` refers to, or the path argument.
    First,
    /// What `fd2` refers to.
    Second,
}

impl Grouping {
    pub(crate) fn new(
        spec: &Spec,
        (keys, object): (&[Key], Object),
        names: &Names,
        projection: &mut Projection,
    ) -> Self {
        let bind = |key: &Key| {
            Some(match (key.columns(spec)?, object) {
                (Shape::Object(derive), Object::First)
                    if spec.table.column("unknown_reason").is_none() =>
                {
                    Bound::Text(projection.need("path"), derive)
                }
                (Shape::Object(derive), Object::First) => Bound::Object {
                    path: projection.need("path"),
                    reason: projection.need("unknown_reason"),
                    derive,
                },
                (Shape::Object(derive), Object::Second) => {
                    Bound::Text(projection.need("path2"), derive)
                }
                (Shape::Int("fd"), Object::Second) => Bound::Int(projection.need("fd2")),
                (Shape::Owner(attribute), _) => {
                    Bound::Owner(projection.need("upid"), names.owners(attribute))
                }
                (Shape::Text(column, derive), _) => Bound::Text(projection.need(column), derive),
                (Shape::Int(column), _) => Bound::Int(projection.need(column)),
            })
        };
        Self {
            columns: keys.iter().filter_map(bind).collect(),
        }
    }

    /// Adds time as the last key.
    pub(crate) fn push_time(&mut self, key: TimeKey) {
        self.columns.push(Bound::Time(key));
    }

    /// For all rows of a table, or for those of a window.
    pub(crate) fn coder(&self, of_window: bool) -> Coder {
        let coder = |bound: &Bound| ColumnCoder::new(bound.clone(), of_window);
        Coder {
            columns: self.columns.iter().map(coder).collect(),
            pairs: vec![PairCoder::default(); self.columns.len().saturating_sub(1)],
            scratch: Vec::new(),
        }
    }
}

const UNSET: u32 = u32::MAX;
/// Reserved for a number that is about to be assigned.
const PENDING: u32 = UNSET - 1;
/// Smaller integers are looked up in a table, larger ones in a hash map.
const SMALL_INTS: usize = 1 << 16;

/// Maps rows to group numbers, `0..count()`.
pub(crate) struct Coder {
    columns: Vec<ColumnCoder>,
    pairs: Vec<PairCoder>,
    scratch: Vec<u32>,
}

impl Coder {
    /// Group number of each of `rows`.
    pub(crate) fn codes(
        &mut self,
        batch: &RecordBatch,
        rows: &[u32],
        codes: &mut Vec<u32>,
    ) -> Result<(), AnalysisError> {
        codes.clear();
        let Some((first, others)) = self.columns.split_first_mut() else {
            codes.resize(rows.len(), 0);
            return Ok(());
        };
        first.codes(batch, rows, codes)?;
        for (column, pairs) in others.iter_mut().zip(&mut self.pairs) {
            self.scratch.clear();
            column.codes(batch, rows, &mut self.scratch)?;
            for (code, right) in codes.iter_mut().zip(&self.scratch) {
                *code = pairs.code((*code, *right));
            }
        }
        Ok(())
    }

    /// Number of groups so far; without keys all rows are one group.
    pub(crate) fn count(&self) -> usize {
        match (self.columns.last(), self.pairs.last()) {
            (None, _) => 1,
            (Some(only), None) => only.values.len(),
            (Some(_), Some(last)) => last.pairs.len(),
        }
    }

    /// Our numbers for the groups of another thread, in their order. New ones are consecutive.
    pub(crate) fn adopt(&mut self, other: &Coder) -> Vec<u32> {
        let columns = self.columns.iter_mut().zip(&other.columns);
        let mut values = columns.map(|(column, other)| column.adopt(other));
        let Some(mut codes) = values.next() else {
            return vec![0];
        };
        for ((values, pairs), other) in values.zip(&mut self.pairs).zip(&other.pairs) {
            let code = |(left, right): &(u32, u32)| {
                pairs.code((codes[*left as usize], values[*right as usize]))
            };
            codes = other.pairs.iter().map(code).collect();
        }
        codes
    }

    /// Key values of a group.
    pub(crate) fn values(&self, code: u32) -> Vec<KeyValue> {
        let mut codes = Vec::with_capacity(self.columns.len());
        self.codes_of(code, &mut codes);
        let columns = codes.into_iter().enumerate();
        columns.map(|(key, code)| self.value(key, code)).collect()
    }

    /// Numbers of a group's key values, each in a numbering of its own.
    pub(crate) fn codes_of(&self, code: u32, codes: &mut Vec<u32>) {
        codes.clear();
        if self.columns.is_empty() {
            return;
        }
        let mut code = code;
        for pairs in self.pairs.iter().rev() {
            let (left, right) = pairs.pairs[code as usize];
            codes.push(right);
            code = left;
        }
        codes.push(code);
        codes.reverse();
    }

    /// The value of a key by its number.
    pub(crate) fn value(&self, key: usize, code: u32) -> KeyValue {
        self.columns[key].value(code)
    }
}

struct ColumnCoder {
    bound: Bound,
    of_window: bool,
    /// By code.
    values: Vec<Coded>,
    /// Texts by number, which all words of a dictionary may get, and the codes of texts that occur
    /// in rows.
    texts: Vec<Box<str>>,
    numbers: Interner,
    text_codes: Vec<u32>,
    ints: FxHashMap<i64, u32>,
    /// The same for small values, as most ids are.
    small_ints: Vec<u32>,
    null: u32,
    words: PerWord<Seen>,
    /// Whether batches bring dictionary words without a number.
    brings_words: bool,
    reasons: PerWord<Seen>,
}

/// A value that has a code.
#[derive(Debug, Clone, Copy)]
enum Coded {
    Null,
    Int(i64),
    Text(u32),
}

/// State of a dictionary word: the number of its text, and the code of its group.
#[derive(Debug, Clone, Copy)]
struct Seen {
    text: u32,
    code: u32,
}

impl Default for Seen {
    fn default() -> Self {
        Self {
            text: UNSET,
            code: UNSET,
        }
    }
}

impl ColumnCoder {
    fn new(bound: Bound, of_window: bool) -> Self {
        Self {
            bound,
            of_window,
            values: Vec::new(),
            texts: Vec::new(),
            numbers: Interner::default(),
            text_codes: Vec::new(),
            ints: FxHashMap::default(),
            small_ints: Vec::new(),
            null: UNSET,
            words: PerWord::new(),
            brings_words: false,
            reasons: PerWord::new(),
        }
    }

    fn codes(
        &mut self,
        batch: &RecordBatch,
        rows: &[u32],
        codes: &mut Vec<u32>,
    ) -> Result<(), AnalysisError> {
        match self.bound.clone() {
            Bound::Int(column) => {
                let column = column.ints(batch)?;
                self.int_codes(rows.iter().map(|row| column.get(*row)), codes);
                Ok(())
            }
            Bound::Time(key) => {
                let column = key.column.ints(batch)?;
                let begins = rows.iter().map(|row| Some(key.begin(column.get(*row)?)));
                self.int_codes(begins, codes);
                Ok(())
            }
            Bound::Owner(column, owners) => {
                let column = column.ints(batch)?;
                let numbers = rows.iter().map(|row| owners.number(column.get(*row)?));
                self.int_codes(numbers, codes);
                Ok(())
            }
            Bound::Text(column, derive) => {
                let texts = column.texts(batch)?;
                if texts.are_null() {
                    codes.resize(rows.len(), self.null_code());
                    return Ok(());
                }
                let mut words = std::mem::take(&mut self.words);
                let known = self.known(&mut words, &texts, (rows, derive));
                self.word_codes((&texts, known, derive), rows, codes);
                self.words = words;
                Ok(())
            }
            Bound::Object {
                path,
                reason,
                derive,
            } => {
                let (paths, why) = (path.texts(batch)?, reason.texts(batch)?);
                let mut words = std::mem::take(&mut self.words);
                let mut reasons = std::mem::take(&mut self.reasons);
                let known = self.known(&mut words, &paths, (rows, derive));
                let known_why = reasons.of(&why, Seen::default());
                if why.are_null() && !paths.are_null() {
                    self.word_codes((&paths, known, derive), rows, codes);
                    (self.words, self.reasons) = (words, reasons);
                    return Ok(());
                }
                codes.extend(rows.iter().map(|row| {
                    if let Some(key) = paths.key(*row) {
                        let text = || derive.apply(paths.words.value(key));
                        self.word_code(&mut known[key], text)
                    } else if let Some(key) = why.key(*row) {
                        let text = || Cow::Owned(unknown_object(why.words.value(key)));
                        self.word_code(&mut known_why[key], text)
                    } else {
                        self.null_code()
                    }
                }));
                self.words = words;
                self.reasons = reasons;
                Ok(())
            }
        }
    }

    /// Group codes of the words of the rows; there is at least one word.
    fn word_codes(
        &mut self,
        (texts, known, derive): (&Texts<'_>, &mut [Seen], Derive),
        rows: &[u32],
        codes: &mut Vec<u32>,
    ) {
        let is_null = |row: &u32| texts.key(*row).is_none();
        let null = if texts.have_nulls() && rows.iter().any(is_null) {
            self.null_code()
        } else {
            UNSET
        };
        codes.extend(rows.iter().map(|row| {
            let (key, has_word) = texts.key_or_zero(*row);
            let mut code = known[key].code;
            if code == UNSET && has_word {
                code = self.word_code(&mut known[key], || derive.apply(texts.words.value(key)));
            }
            if has_word { code } else { null }
        }));
    }

    /// State of the words of a dictionary. A new dictionary is processed at once, word by word,
    /// unless only a few of its rows may ever be needed: this lets the CPU overlap the cache misses
    /// of many words. For a window, the words of each batch are processed, because most of those of
    /// a row group do not occur in it; once batches bring hardly any new words, they are processed
    /// on first use.
    fn known<'w>(
        &mut self,
        words: &'w mut PerWord<Seen>,
        texts: &Texts<'_>,
        (rows, derive): (&[u32], Derive),
    ) -> &'w mut [Seen] {
        const WORDS_PER_ROW: usize = 8;
        const ROWS_PER_NEW_WORD: usize = 64;
        let (known, is_new) = words.of_new(texts, Seen::default());
        self.brings_words |= is_new;
        if !self.brings_words {
            return known;
        }
        let of_window = self.of_window;
        let mut number = |seen: &mut Seen, key: usize| {
            seen.text = self.text_number(derive.apply(texts.words.value(key)));
        };
        if !of_window {
            if rows.len().saturating_mul(WORDS_PER_ROW) >= known.len() {
                for (key, seen) in known.iter_mut().enumerate() {
                    if !texts.words.is_null(key) {
                        number(seen, key);
                    }
                }
            }
            self.brings_words = false;
            return known;
        }
        let mut new = Vec::new();
        for row in rows {
            let (key, has_word) = texts.key_or_zero(*row);
            if has_word && known[key].text == UNSET {
                known[key].text = PENDING;
                new.push(key);
            }
        }
        for key in &new {
            number(&mut known[*key], *key);
        }
        self.brings_words = new.len() * ROWS_PER_NEW_WORD > rows.len();
        known
    }

    /// Group code of a word.
    #[inline]
    fn word_code<'t>(&mut self, seen: &mut Seen, text: impl FnOnce() -> Cow<'t, str>) -> u32 {
        if seen.code == UNSET {
            if seen.text == UNSET {
                seen.text = self.text_number(text());
            }
            seen.code = self.text_code(seen.text);
        }
        seen.code
    }

    fn int_codes(&mut self, values: impl Iterator<Item = Option<i64>>, codes: &mut Vec<u32>) {
        let mut last: Option<(i64, u32)> = None;
        codes.extend(values.map(|value| {
            let Some(value) = value else {
                return self.null_code();
            };
            let small = usize::try_from(value).ok();
            match (small.and_then(|small| self.small_ints.get(small)), last) {
                (Some(code), _) if *code != UNSET => *code,
                (_, Some((seen, code))) if seen == value => code,
                _ => {
                    let code = self.int_code(value);
                    last = Some((value, code));
                    code
                }
            }
        }));
    }

    #[inline(never)]
    fn int_code(&mut self, value: i64) -> u32 {
        let values = &mut self.values;
        let code = *self.ints.entry(value).or_insert_with(|| {
            values.push(Coded::Int(value));
            values.len() as u32 - 1
        });
        if let Ok(small) = usize::try_from(value)
            && small < SMALL_INTS
        {
            let length = self.small_ints.len().max(small + 1);
            self.small_ints.resize(length, UNSET);
            self.small_ints[small] = code;
        }
        code
    }

    fn null_code(&mut self) -> u32 {
        if self.null == UNSET {
            self.values.push(Coded::Null);
            self.null = self.values.len() as u32 - 1;
        }
        self.null
    }

    fn text_number(&mut self, text: Cow<'_, str>) -> u32 {
        let texts = &self.texts;
        let next = texts.len() as u32;
        let is = |number: u32| *texts[number as usize] == *text;
        let number = self.numbers.number(&text, next, is);
        if number == next {
            self.texts.push(text.into());
            self.text_codes.push(UNSET);
        }
        number
    }

    fn text_code(&mut self, number: u32) -> u32 {
        let code = &mut self.text_codes[number as usize];
        if *code == UNSET {
            *code = self.values.len() as u32;
            self.values.push(Coded::Text(number));
        }
        *code
    }

    fn value(&self, code: u32) -> KeyValue {
        match self.values[code as usize] {
            Coded::Null => KeyValue::Null,
            Coded::Int(value) => match &self.bound {
                Bound::Owner(_, owners) => match owners.text(value) {
                    Some(text) => KeyValue::Text(text.into()),
                    None => KeyValue::Int(value),
                },
                _ => KeyValue::Int(value),
            },
            Coded::Text(number) => KeyValue::Text(self.texts[number as usize].clone()),
        }
    }

    /// Our numbers for the values of another thread.
    fn adopt(&mut self, other: &ColumnCoder) -> Vec<u32> {
        let code = |value: &Coded| match value {
            Coded::Null => self.null_code(),
            Coded::Int(value) => self.int_code(*value),
            Coded::Text(number) => {
                let text = &other.texts[*number as usize];
                let number = self.text_number(Cow::Borrowed(text));
                self.text_code(number)
            }
        };
        other.values.iter().map(code).collect()
    }
}
