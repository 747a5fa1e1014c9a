//! Host paths: a table source that replaces paths as processes saw them by paths in the mount
//! namespace of the recorder.
//!
//! Queries on it (filters, groups, rows) use these paths. Paths on file systems that are not
//! mounted there, and paths of processes whose mount namespace is unknown, stay unchanged.

mod mounts;
mod views;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow_array::builder::StringBuilder;
use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type};
use arrow_array::{Array, ArrayRef, DictionaryArray, Int32Array, RecordBatch};
use rustc_hash::FxHashMap;
use whyslow_model::sort::IndexSort;
use whyslow_model::tables::{MetadataRow, MountRow};
use whyslow_model::{Symbols, Table};
use whyslow_store::{Part, RecordingInfo, Scan, StoreError, Tables, Visit, rows};

use self::mounts::{Mount, Mounts};
use self::views::{View, Views};

/// Columns with paths as processes saw them.
const PATHS: [&str; 2] = ["path", "path2"];

/// Tables with host paths.
pub struct HostPaths<'t> {
    inner: &'t dyn Tables,
    views: Views,
    mounts: BTreeMap<i64, Mounts>,
    own_ns: Option<i64>,
    /// Number of rows whose path is unchanged.
    unchanged: AtomicU64,
}

impl<'t> HostPaths<'t> {
    /// `None` if the recording has no mount information.
    pub fn new(inner: &'t dyn Tables) -> Result<Option<Self>, StoreError> {
        let mut symbols = Symbols::new();
        let mut by_ns: BTreeMap<i64, Vec<Mount>> = BTreeMap::new();
        let mut all = rows::<MountRow>(inner, &mut symbols)?;
        all.index_sort_by_ints(|row| [row.id, 0, 0]);
        for row in all {
            by_ns.entry(row.mount_ns).or_default().push(Mount {
                id: row.mount_id,
                parent: row.parent_id,
                dev: row.dev,
                root: symbols.get(row.root).to_owned(),
                point: symbols.get(row.mount_point).to_owned(),
            });
        }
        let facts = rows::<MetadataRow>(inner, &mut symbols)?;
        let mut own = facts
            .iter()
            .filter(|row| symbols.get(row.key) == "mount_ns")
            .filter_map(|row| symbols.get(row.value).parse().ok());
        let own_ns: Option<i64> = own.next();
        if own_ns.is_none_or(|ns| !by_ns.contains_key(&ns)) {
            return Ok(None);
        }
        Ok(Some(Self {
            inner,
            views: Views::read(inner)?,
            mounts: by_ns
                .into_iter()
                .map(|(ns, mounts)| (ns, Mounts::new(mounts)))
                .collect(),
            own_ns,
            unchanged: AtomicU64::new(0),
        }))
    }

    /// A caveat about paths that stayed unchanged in queries so far; `None` if all were translated.
    pub fn caveat(&self) -> Option<String> {
        (self.unchanged.load(Ordering::Relaxed) > 0).then(|| {
            "some paths are shown as their processes saw them: their file system is not mounted in \
             the host's mount namespace, or the mount namespace of the process is unknown"
                .into()
        })
    }

    fn translate(&self, view: Option<&View>, path: &str) -> Option<String> {
        let view = view?;
        if view.mount_ns == self.own_ns && view.root.is_empty() {
            return Some(path.to_owned());
        }
        // The target of `..` depends on symbolic links.
        if path.split('/').any(|part| part == "..") {
            return None;
        }
        let mounts = self.mounts.get(&view.mount_ns?)?;
        let below_root = format!("{}{path}", view.root);
        mounts.translate(&below_root, self.mounts.get(&self.own_ns?)?)
    }

    /// The scan to run instead, and the number of its columns that the caller requested.
    fn with_owner(scan: &Scan) -> Option<(Scan, usize)> {
        let has = |table: &Table, name| table.column(name).is_some();
        let is_wanted = scan.columns.iter().any(|column| PATHS.contains(column));
        if !is_wanted || !has(scan.table, "upid") || !has(scan.table, "ts") {
            return None;
        }
        let mut scan = scan.clone();
        let wanted = scan.columns.len();
        for name in ["upid", "ts"] {
            if !scan.columns.contains(&name) {
                scan.columns.push(name);
            }
        }
        Some((scan, wanted))
    }

    fn batch(&self, batch: &RecordBatch, wanted: usize) -> Option<RecordBatch> {
        let upids = batch
            .column_by_name("upid")?
            .as_primitive_opt::<Int32Type>()?;
        let times = batch
            .column_by_name("ts")?
            .as_primitive_opt::<Int64Type>()?;
        let views: Vec<Option<usize>> = (0..batch.num_rows())
            .map(|row| {
                let upid = upids.is_valid(row).then(|| i64::from(upids.value(row)))?;
                self.views.at(upid, times.value(row))
            })
            .collect();
        let schema = batch.schema();
        let mut columns: Vec<ArrayRef> = batch.columns().to_vec();
        for (place, field) in schema.fields().iter().enumerate() {
            if PATHS.contains(&field.name().as_str())
                && let Some(paths) = columns[place].as_dictionary_opt::<Int32Type>()
            {
                columns[place] = self.column(paths, &views)?;
            }
        }
        let batch = RecordBatch::try_new(schema, columns).ok()?;
        batch.project(&(0..wanted).collect::<Vec<_>>()).ok()
    }

    fn column(
        &self,
        paths: &DictionaryArray<Int32Type>,
        views: &[Option<usize>],
    ) -> Option<ArrayRef> {
        let words = paths.values().as_string_opt::<i32>()?;
        let mut known: FxHashMap<(Option<usize>, i32), (i32, bool)> = FxHashMap::default();
        let mut texts = StringBuilder::new();
        let (mut count, mut unchanged) = (0, 0);
        let mut keys = Vec::with_capacity(views.len());
        for (row, view) in views.iter().enumerate() {
            if paths.keys().is_null(row) {
                keys.push(None);
                continue;
            }
            let key = paths.keys().value(row);
            let (new, is_translated) = *known.entry((*view, key)).or_insert_with(|| {
                let path = words.value(key as usize);
                let is_path = path.starts_with('/') && !path.starts_with("/memfd:");
                let view = view.and_then(|view| self.views.all.get(view));
                let found = is_path.then(|| self.translate(view, path)).flatten();
                texts.append_value(found.as_deref().unwrap_or(path));
                count += 1;
                (count - 1, !is_path || found.is_some())
            });
            unchanged += u64::from(!is_translated);
            keys.push(Some(new));
        }
        self.unchanged.fetch_add(unchanged, Ordering::Relaxed);
        let texts: ArrayRef = Arc::new(texts.finish());
        let found = DictionaryArray::try_new(Int32Array::from(keys), texts).ok()?;
        Some(Arc::new(found))
    }

    fn shown(&self, batch: &RecordBatch, wanted: usize, visit: &mut Visit<'_>) -> Shown {
        match self.batch(batch, wanted) {
            Some(batch) => visit(&batch),
            // Columns of other types are left to the caller, which reports the error.
            None => visit(batch),
        }
    }
}

type Shown = Result<ControlFlow<()>, StoreError>;

impl Tables for HostPaths<'_> {
    fn info(&self) -> &RecordingInfo {
        self.inner.info()
    }

    fn parts<'t>(&'t self, scan: &Scan) -> Result<Vec<Box<dyn Part + 't>>, StoreError> {
        let Some((scan, wanted)) = Self::with_owner(scan) else {
            return self.inner.parts(scan);
        };
        let parts = self.inner.parts(&scan)?.into_iter();
        Ok(parts
            .map(|part| {
                Box::new(HostPart {
                    part,
                    paths: self,
                    wanted,
                }) as Box<dyn Part + 't>
            })
            .collect())
    }

    fn words(
        &self,
        table: &'static Table,
        column: &str,
    ) -> Result<Option<BTreeSet<String>>, StoreError> {
        if PATHS.contains(&column) {
            return Ok(None);
        }
        self.inner.words(table, column)
    }

    fn scan(&self, scan: &Scan, visit: &mut Visit<'_>) -> Result<(), StoreError> {
        let Some((scan, wanted)) = Self::with_owner(scan) else {
            return self.inner.scan(scan, visit);
        };
        let mut each = |batch: &RecordBatch| self.shown(batch, wanted, visit);
        self.inner.scan(&scan, &mut each)
    }
}

struct HostPart<'t> {
    part: Box<dyn Part + 't>,
    paths: &'t HostPaths<'t>,
    wanted: usize,
}

impl Part for HostPart<'_> {
    fn rows(&self) -> u64 {
        self.part.rows()
    }

    fn read(&self, visit: &mut Visit<'_>) -> Result<(), StoreError> {
        let mut each = |batch: &RecordBatch| self.paths.shown(batch, self.wanted, visit);
        self.part.read(&mut each)
    }

    fn read_rows(&self, numbers: &[u64], visit: &mut Visit<'_>) -> Result<(), StoreError> {
        let mut each = |batch: &RecordBatch| self.paths.shown(batch, self.wanted, visit);
        self.part.read_rows(numbers, &mut each)
    }
}
