//! Reads a finished recording.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::RecordBatch;
use parquet::arrow::arrow_reader::RowSelection;
use whyslow_model::Table;

use crate::checksums::ByFile;
use crate::merge;
use crate::pread::PreadFile;
use crate::prune::{self, Selected};
use crate::table_file::{Projection, TableFile, damaged_because};
use crate::window_cache::{self, CachedGroups, WindowCache};
use crate::{
    Part, RecordingInfo, Scan, StoreError, Tables, Visit, limits, manifest, schema, staging,
};

/// A recording on disk. Files are opened once, when a query first needs them.
#[derive(Debug)]
pub struct Recording {
    path: PathBuf,
    directory: OwnedFd,
    info: RecordingInfo,
    open: Mutex<Open>,
}

/// Opened files: checksums, tables with or without their page index, and the cache of the last
/// window.
#[derive(Debug, Default)]
struct Open {
    checksums: Option<Arc<ByFile>>,
    tables: BTreeMap<(&'static str, bool), Arc<TableFiles>>,
    cache: WindowCache,
}

/// Files of a table, in time order.
#[derive(Debug)]
struct TableFiles {
    main: Vec<Arc<TableFile>>,
    long: Vec<Arc<TableFile>>,
}

impl Recording {
    /// Opens the directory and reads its manifest. Table files and checksums are opened and
    /// verified when a scan first needs them. A packed recording is not a directory and has to be
    /// unpacked first.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let directory = match staging::open_directory(path) {
            Err(StoreError::Io { source, .. })
                if source.kind() == std::io::ErrorKind::NotADirectory =>
            {
                return Err(StoreError::NotARecording {
                    path: path.to_path_buf(),
                    reason: "it is not a directory".to_owned(),
                });
            }
            opened => opened?,
        };
        let info = manifest::read(&directory, path)?;
        Ok(Self {
            path: path.to_path_buf(),
            directory,
            info,
            open: Mutex::new(Open::default()),
        })
    }

    /// The directory that was passed to [`Recording::open`].
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Identifies the content with 32 hexadecimal digits: BLAKE3 of manifest and checksums, each
    /// preceded by its length (8 bytes, little-endian).
    pub fn digest(&self) -> Result<String, StoreError> {
        const DIGITS: usize = 32;
        let mut hasher = blake3::Hasher::new();
        for content in manifest::describing_files(&self.directory, &self.path)? {
            hasher.update(&(content.len() as u64).to_le_bytes());
            hasher.update(&content);
        }
        Ok(hasher.finalize().to_hex()[..DIGITS].to_owned())
    }

    fn files(&self, scan: &Scan) -> Result<Arc<TableFiles>, StoreError> {
        let page_index = scan.window.is_some();
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(files) = open.tables.get(&(scan.table.name, page_index)) {
            return Ok(Arc::clone(files));
        }
        let checksums = match &open.checksums {
            Some(checksums) => Arc::clone(checksums),
            None => Arc::new(manifest::read_checksums(&self.directory, &self.path)?),
        };
        open.checksums = Some(Arc::clone(&checksums));
        let files = Arc::new(self.open_files(scan.table, page_index, &checksums)?);
        open.tables
            .insert((scan.table.name, page_index), Arc::clone(&files));
        Ok(files)
    }

    /// The cached row groups of a scan, if its window has few rows.
    fn cached_groups(
        &self,
        files: &TableFiles,
        scan: &Scan,
        wanted: &Arc<Projection>,
    ) -> CachedGroups {
        let window = scan.window?;
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let known = match &mut open.cache {
            Some((of, known)) if *of == window => known,
            cached => &mut cached.insert((window, BTreeMap::new())).1,
        };
        let cached = known.entry(scan.table.name).or_insert_with(|| {
            let main = groups(&files.main, scan, wanted);
            let long = groups(&files.long, scan, wanted);
            let all: Vec<Group> = main.into_iter().chain(long).collect();
            let rows: u64 = all.iter().map(|group| group.rows).sum();
            let is_cached = rows <= limits::CACHED_ROWS;
            is_cached.then(|| {
                Arc::new(
                    all.into_iter()
                        .map(|group| Arc::new(group.into()))
                        .collect(),
                )
            })
        });
        cached.clone()
    }

    /// Reads every file and verifies its checksums, for readers that do not do so.
    pub fn verify(&self) -> Result<(), StoreError> {
        let checksums = manifest::read_checksums(&self.directory, &self.path)?;
        for table in whyslow_model::tables::ALL {
            let Some(info) = self.info.tables.get(table.name) else {
                continue;
            };
            for name in info.files.iter().chain(&info.long_files) {
                let file = self.open_file(name, table, &checksums)?;
                let path = self.path.join(name);
                file.verify()
                    .map_err(|error| damaged_because(&path, table, error.to_string()))?;
            }
        }
        Ok(())
    }

    fn open_file(
        &self,
        name: &str,
        table: &Table,
        checksums: &ByFile,
    ) -> Result<PreadFile, StoreError> {
        let damaged = |reason| damaged_because(&self.path.join(name), table, reason);
        let Some(checksums) = checksums.get(name) else {
            return Err(damaged("missing checksums".to_owned()));
        };
        let (file, bytes) = manifest::open_file(&self.directory, &self.path, name)?;
        if bytes != checksums.bytes {
            let written = checksums.bytes;
            return Err(damaged(format!("it has {bytes} bytes, expected {written}")));
        }
        Ok(PreadFile::new(file, Arc::clone(checksums)))
    }

    fn open_files(
        &self,
        table: &'static Table,
        page_index: bool,
        checksums: &ByFile,
    ) -> Result<TableFiles, StoreError> {
        // A table that is not listed was unknown to the writer: no rows.
        let Some(info) = self.info.tables.get(table.name) else {
            return Ok(TableFiles {
                main: Vec::new(),
                long: Vec::new(),
            });
        };
        let open = |names: &[String]| {
            names
                .iter()
                .map(|name| {
                    let file = self.open_file(name, table, checksums)?;
                    let how = (self.info.format_version, page_index);
                    let opened = TableFile::open(self.path.join(name), table, file, how)?;
                    Ok(Arc::new(opened.with_ends(info.ends_follow)))
                })
                .collect::<Result<Vec<_>, StoreError>>()
        };
        let files = TableFiles {
            main: open(&info.files)?,
            long: open(&info.long_files)?,
        };
        let rows: u64 = files
            .main
            .iter()
            .chain(&files.long)
            .map(|file| file.rows())
            .sum();
        if rows != info.rows {
            let reason = format!(
                "its files have {rows} rows, the manifest states {}",
                info.rows
            );
            return Err(damaged_because(&self.path, table, reason));
        }
        Ok(files)
    }
}

impl Tables for Recording {
    fn info(&self) -> &RecordingInfo {
        &self.info
    }

    fn parts<'t>(&'t self, scan: &Scan) -> Result<Vec<Box<dyn Part + 't>>, StoreError> {
        let files = self.files(scan)?;
        let projection = Arc::new(Projection::new(scan.table, &scan.columns)?);
        if let Some(cached) = self.cached_groups(&files, scan, &projection) {
            return Ok(window_cache::parts(&cached, &projection));
        }
        let main = groups(&files.main, scan, &projection);
        let long = groups(&files.long, scan, &projection);
        let groups: Vec<Group> = main.into_iter().chain(long).collect();
        let each = limits::PARTS.div_ceil(groups.len().max(1));
        Ok(groups
            .into_iter()
            .flat_map(|group| group.split(each))
            .map(|group| Box::new(group) as Box<dyn Part>)
            .collect())
    }

    fn words(
        &self,
        table: &'static Table,
        column: &str,
    ) -> Result<Option<BTreeSet<String>>, StoreError> {
        let scan = Scan {
            table,
            columns: Vec::new(),
            window: None,
        };
        let files = self.files(&scan)?;
        // For a snapshot, include words of the whole recording that show what was recorded.
        let cut = self.info.cut.as_ref();
        let recorded_words =
            cut.and_then(|cut| cut.recorded_words.get(&format!("{}.{column}", table.name)));
        let mut words = recorded_words.cloned().unwrap_or_default();
        for file in files.main.iter().chain(&files.long) {
            match file.words(column)? {
                Some(of_file) => words.extend(of_file),
                None => return Ok(None),
            }
        }
        Ok(Some(words))
    }

    fn scan(&self, scan: &Scan, visit: &mut Visit<'_>) -> Result<(), StoreError> {
        let files = self.files(scan)?;
        let wanted = Arc::new(Projection::new(scan.table, &scan.columns)?);
        if files.long.is_empty()
            && let Some(cached) = self.cached_groups(&files, scan, &wanted)
        {
            let mut is_over = false;
            for part in window_cache::parts(&cached, &wanted) {
                part.read(&mut |batch| {
                    let next = visit(batch)?;
                    is_over = next.is_break();
                    Ok(next)
                })?;
                if is_over {
                    break;
                }
            }
            return Ok(());
        }
        let keys = schema::key_columns(scan.table);
        let keyed = Arc::new(merge::with_keys(scan, &keys)?);
        let main = groups(&files.main, scan, &keyed);
        let long = groups(&files.long, scan, &keyed);
        if long.is_empty() || main.is_empty() {
            for mut group in main.into_iter().chain(long) {
                group.projection = Arc::clone(&wanted);
                if group.visit(visit)?.is_break() {
                    break;
                }
            }
            return Ok(());
        }
        merge::merge(
            main.iter().flat_map(Group::batches),
            long.iter().flat_map(Group::batches),
            &merge::Merged::new(&keyed, &keys, scan.columns.len()),
            visit,
        )
    }
}

/// A row group, or the pages of it that matter.
pub(crate) struct Group {
    pub(crate) file: Arc<TableFile>,
    pub(crate) number: usize,
    pub(crate) selection: Option<RowSelection>,
    pub(crate) rows: u64,
    projection: Arc<Projection>,
}

impl Group {
    /// Splits into at most `pieces` parts of similar size, none of them too small.
    fn split(self, pieces: usize) -> Vec<Group> {
        let rows = self.rows as usize;
        let pieces = pieces.min(rows / limits::PART_ROWS_MIN).max(1);
        if pieces == 1 {
            return vec![self];
        }
        let all = self.file.row_group_rows(self.number);
        let selection = self.selection.unwrap_or_else(|| {
            let whole = std::iter::once(0..all);
            RowSelection::from_consecutive_ranges(whole, all)
        });
        let edge = |piece: usize| piece * rows / pieces;
        (0..pieces)
            .map(|piece| {
                let range = edge(piece)..edge(piece + 1);
                let length = range.len() as u64;
                let of_selected = std::iter::once(range);
                let picked = RowSelection::from_consecutive_ranges(of_selected, rows);
                Group {
                    file: Arc::clone(&self.file),
                    number: self.number,
                    selection: Some(selection.and_then(&picked)),
                    rows: length,
                    projection: Arc::clone(&self.projection),
                }
            })
            .collect()
    }

    fn batches(&self) -> Batches<'_> {
        self.batches_of(self.selection.clone())
    }

    fn batches_of(&self, selection: Option<RowSelection>) -> Batches<'_> {
        match self.file.read(self.number, selection, &self.projection) {
            Ok(reader) => Box::new(reader),
            Err(error) => Box::new(std::iter::once(Err(error))),
        }
    }

    fn visit(&self, visit: &mut Visit<'_>) -> Result<ControlFlow<()>, StoreError> {
        show(self.batches(), visit)
    }
}

pub(crate) fn show(
    batches: Batches<'_>,
    visit: &mut Visit<'_>,
) -> Result<ControlFlow<()>, StoreError> {
    for batch in batches {
        if visit(&batch?)?.is_break() {
            return Ok(ControlFlow::Break(()));
        }
    }
    Ok(ControlFlow::Continue(()))
}

/// The row groups of some files that may have rows in the scan's window.
fn groups(files: &[Arc<TableFile>], scan: &Scan, projection: &Arc<Projection>) -> Vec<Group> {
    let mut groups = Vec::new();
    for file in files {
        for group in 0..file.row_groups() {
            let selected = match scan.window {
                Some(window) => prune::select(file, scan.table, group, window),
                None => Selected::All,
            };
            let (rows, selection) = match selected {
                Selected::Nothing => continue,
                Selected::All => (file.row_group_rows(group), None),
                Selected::Some(selection) => (selection.row_count(), Some(selection)),
            };
            if rows > 0 {
                groups.push(Group {
                    file: Arc::clone(file),
                    number: group,
                    selection,
                    rows: rows as u64,
                    projection: Arc::clone(projection),
                });
            }
        }
    }
    groups
}

pub(crate) type Batches<'g> = Box<dyn Iterator<Item = Result<RecordBatch, StoreError>> + 'g>;

impl Part for Group {
    fn rows(&self) -> u64 {
        self.rows
    }

    fn read(&self, visit: &mut Visit<'_>) -> Result<(), StoreError> {
        self.visit(visit).map(drop)
    }

    fn read_rows(&self, numbers: &[u64], visit: &mut Visit<'_>) -> Result<(), StoreError> {
        let picked = picked(numbers, self.rows as usize);
        if !picked.selects_any() {
            return Ok(());
        }
        let selection = match &self.selection {
            Some(selection) => selection.and_then(&picked),
            None => picked,
        };
        show(self.batches_of(Some(selection)), visit).map(drop)
    }
}

/// Selects rows by number.
pub(crate) fn picked(numbers: &[u64], rows: usize) -> RowSelection {
    let ranges = numbers.chunk_by(|a, b| a + 1 == *b).map(|run| {
        let begin = (run[0] as usize).min(rows);
        begin..(begin + run.len()).min(rows)
    });
    RowSelection::from_consecutive_ranges(ranges, rows)
}
