//! Raw tables of a recording (`--raw`): every table that has start and end, with recording and host
//! as two additional columns.
//!
//! They may be gigabytes, so they are first written to a temporary file. A file that an earlier
//! push sent completely is not sent again: it has the same size and the same end, where Parquet
//! stores the offset, size, minimum and maximum of every column chunk.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use arrow_array::{ArrayRef, DictionaryArray, Int32Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use bytes::Bytes;
use object_store::{ObjectStoreExt as _, WriteMultipart};
use parquet::arrow::ArrowWriter;
use parquet::errors::ParquetError;
use whyslow_model::{Shape, Table, tables};
use whyslow_store::{Scan, Tables};

use super::commit::{Commit, FileInfo};
use super::push::{Place, PushOptions, Pushed, check};
use super::{Lake, LakeError};
use crate::encode::{as_times, properties};
use crate::summary::RecordingFacts;

/// Part size of a multipart upload; a few parts are sent concurrently.
const PART_BYTES: usize = 8 << 20;
const PARTS_AT_ONCE: usize = 2;
/// Number of bytes at the end that are compared with an earlier upload.
const END_BYTES: u64 = 64 << 10;
/// Columns prepended to the table's own.
const OWNERS: [&str; 2] = ["recording", "host"];

impl Lake {
    pub(super) fn push_raw(
        &self,
        source: &dyn Tables,
        (facts, options): (&RecordingFacts, &PushOptions),
        place: &Place,
        (commit, pushed): (&mut Commit, &mut Pushed),
        cancel: &AtomicBool,
    ) -> Result<(), LakeError> {
        let info = source.info();
        let has_rows = |table: &&&Table| {
            info.tables
                .get(table.name)
                .is_some_and(|table| table.rows > 0)
        };
        let intervals = tables::ALL
            .iter()
            .filter(|table| table.shape == Shape::Interval);
        for table in intervals.filter(has_rows) {
            check(cancel)?;
            let (mut file, rows) = written(source, table, facts, cancel)?;
            let name = place.partition.file(table.name, &place.member);
            let bytes = self.send(&name, &mut file, (pushed, options.replace), cancel)?;
            commit.add(table.name, &name, rows, bytes);
        }
        Ok(())
    }

    /// Uploads the packed recording, for queries that the lake cannot answer.
    pub(super) fn push_whole(
        &self,
        (path, options): (&Path, &PushOptions),
        place: &Place,
        (commit, pushed): (&mut Commit, &mut Pushed),
        cancel: &AtomicBool,
    ) -> Result<(), LakeError> {
        let mut file = File::open(path).map_err(|source| LakeError::Io {
            what: "open",
            path: path.display().to_string(),
            source,
        })?;
        let name = place.whole();
        let bytes = self.send(&name, &mut file, (pushed, options.replace), cancel)?;
        commit.whole = Some(FileInfo::new(&name, 0, bytes));
        Ok(())
    }

    /// Uploads a file unless it is there, or in any case with `replace`; returns its bytes.
    fn send(
        &self,
        name: &str,
        file: &mut File,
        (pushed, replace): (&mut Pushed, bool),
        cancel: &AtomicBool,
    ) -> Result<u64, LakeError> {
        let bytes = size(file)?;
        if !replace && self.wait(self.has(name, file, bytes))? {
            pushed.kept += 1;
            return Ok(bytes);
        }
        self.wait(self.upload(name, file, cancel))?;
        self.wait(self.check(name, bytes))?;
        pushed.sent(bytes);
        Ok(bytes)
    }

    /// Whether an object has the content of this file.
    async fn has(&self, name: &str, file: &mut File, bytes: u64) -> Result<bool, LakeError> {
        if self.size(name).await? != Some(bytes) {
            return Ok(false);
        }
        let from = bytes.saturating_sub(END_BYTES);
        let mut ours = Vec::new();
        file.seek(SeekFrom::Start(from))
            .map_err(temporary("read"))?;
        file.read_to_end(&mut ours).map_err(temporary("read"))?;
        let path = self.path(name);
        let theirs = self.store.get_range(&path, from..bytes);
        let theirs = theirs.await.map_err(LakeError::store("read", name))?;
        Ok(theirs == ours)
    }

    /// All or nothing: an interrupted upload leaves no object.
    async fn upload(
        &self,
        name: &str,
        file: &mut File,
        cancel: &AtomicBool,
    ) -> Result<(), LakeError> {
        file.seek(SeekFrom::Start(0)).map_err(temporary("read"))?;
        let failed = || LakeError::store("write", name);
        let upload = self
            .store
            .put_multipart(&self.path(name))
            .await
            .map_err(failed())?;
        let mut upload = WriteMultipart::new_with_chunk_size(upload, PART_BYTES);
        let mut sent = async || -> Result<(), LakeError> {
            loop {
                check(cancel)?;
                let mut part = Vec::with_capacity(PART_BYTES);
                file.take(PART_BYTES as u64)
                    .read_to_end(&mut part)
                    .map_err(temporary("read"))?;
                if part.is_empty() {
                    return Ok(());
                }
                upload
                    .wait_for_capacity(PARTS_AT_ONCE)
                    .await
                    .map_err(failed())?;
                upload.put(Bytes::from(part));
            }
        };
        if let Err(error) = sent().await {
            // The sent parts cost money until the upload is aborted; a failure of that is ignored.
            let _ = upload.abort().await;
            return Err(error);
        }
        upload.finish().await.map(|_| ()).map_err(failed())
    }
}

fn size(file: &mut File) -> Result<u64, LakeError> {
    file.seek(SeekFrom::End(0)).map_err(temporary("stat"))
}

/// A table in an unnamed temporary file, and its number of rows.
fn written(
    source: &dyn Tables,
    table: &'static Table,
    facts: &RecordingFacts,
    cancel: &AtomicBool,
) -> Result<(File, u64), LakeError> {
    let failed = |error: ParquetError| LakeError::Encode {
        table: table.name.to_owned(),
        source: error,
    };
    let file = tempfile::tempfile().map_err(temporary("create"))?;
    let clone = file.try_clone().map_err(temporary("open"))?;
    let schema = schema(table);
    let times: Vec<&str> = ["ts", "dur", "ts_end"]
        .into_iter()
        .filter(|name| table.column(name).is_some())
        .collect();
    let sorted_by = vec![(OWNERS.len() + table.column("ts").map_or(0, |(place, _)| place)) as i32];
    let properties = as_times(properties(sorted_by), &times).build();
    let mut writer =
        ArrowWriter::try_new(clone, Arc::clone(&schema), Some(properties)).map_err(failed)?;
    let scan = Scan {
        table,
        columns: table.columns.iter().map(|column| column.name).collect(),
        window: None,
    };
    let (mut rows, mut failure) = (0, None);
    source.scan(&scan, &mut |batch| {
        rows += batch.num_rows() as u64;
        let wrote = check(cancel).and_then(|()| {
            let batch = owned(batch, &schema, facts).map_err(failed)?;
            writer.write(&batch).map_err(failed)
        });
        Ok(match wrote {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                failure = Some(error);
                ControlFlow::Break(())
            }
        })
    })?;
    if let Some(error) = failure {
        return Err(error);
    }
    writer.close().map_err(failed)?;
    Ok((file, rows))
}

fn schema(table: &Table) -> SchemaRef {
    let text = || DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
    let owners = OWNERS.iter().map(|name| Field::new(*name, text(), false));
    let own = table.columns.iter().map(|column| {
        use whyslow_model::ColumnType as Type;
        let kind = match column.kind {
            Type::I64 => DataType::Int64,
            Type::I32 => DataType::Int32,
            Type::F64 => DataType::Float64,
            Type::Bool => DataType::Boolean,
            Type::Utf8 => text(),
        };
        Field::new(column.name, kind, column.nullable)
    });
    Arc::new(Schema::new(owners.chain(own).collect::<Vec<_>>()))
}

fn owned(
    batch: &RecordBatch,
    schema: &SchemaRef,
    facts: &RecordingFacts,
) -> Result<RecordBatch, ParquetError> {
    let rows = batch.num_rows();
    let same = |text: &str| -> Result<ArrayRef, ParquetError> {
        let keys = Int32Array::from(vec![0; rows]);
        let words = Arc::new(StringArray::from(vec![text]));
        Ok(Arc::new(DictionaryArray::try_new(keys, words)?))
    };
    let mut columns = vec![same(&facts.recording)?, same(&facts.host)?];
    columns.extend(batch.columns().iter().cloned());
    Ok(RecordBatch::try_new(Arc::clone(schema), columns)?)
}

fn temporary(what: &'static str) -> impl FnOnce(std::io::Error) -> LakeError {
    move |source| LakeError::Io {
        what,
        path: std::env::temp_dir().display().to_string(),
        source,
    }
}
