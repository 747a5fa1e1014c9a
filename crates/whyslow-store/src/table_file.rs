//! One Parquet file of a table: checked against the table's declaration, read by row group.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions, new_null_array};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader,
    ParquetRecordBatchReaderBuilder, RowSelection,
};
use parquet::errors::ParquetError;
use parquet::file::metadata::{PageIndexPolicy, ParquetMetaData};
use whyslow_model::{Column, ColumnType, Table};

use crate::pread::PreadFile;
use crate::{StoreError, limits, schema};

#[derive(Debug)]
pub(crate) struct TableFile {
    path: PathBuf,
    table: &'static Table,
    file: PreadFile,
    metadata: ArrowReaderMetadata,
}

impl TableFile {
    /// Reads the footer; the page index too, if pages are to be left out.
    pub(crate) fn open(
        path: PathBuf,
        table: &'static Table,
        file: PreadFile,
        page_index: bool,
    ) -> Result<Self, StoreError> {
        let damaged = |error: &ParquetError| damaged(&path, table, error);
        let policy = if page_index {
            PageIndexPolicy::Optional
        } else {
            PageIndexPolicy::Skip
        };
        let options = ArrowReaderOptions::new()
            .with_skip_arrow_metadata(true)
            .with_page_index_policy(policy);
        let plain = ArrowReaderMetadata::load(&file, options).map_err(|error| damaged(&error))?;
        check_columns(plain.schema(), table)
            .map_err(|reason| damaged_because(&path, table, reason))?;
        let options = ArrowReaderOptions::new().with_schema(dictionary_schema(plain.schema()));
        let metadata = ArrowReaderMetadata::try_new(Arc::clone(plain.metadata()), options)
            .map_err(|error| damaged(&error))?;
        check_rows(metadata.metadata()).map_err(|reason| damaged_because(&path, table, reason))?;
        Ok(Self {
            path,
            table,
            file,
            metadata,
        })
    }

    pub(crate) fn metadata(&self) -> &ParquetMetaData {
        self.metadata.metadata()
    }

    pub(crate) fn rows(&self) -> u64 {
        (0..self.row_groups())
            .map(|group| self.row_group_rows(group) as u64)
            .sum()
    }

    pub(crate) fn row_groups(&self) -> usize {
        self.metadata().num_row_groups()
    }

    pub(crate) fn row_group_rows(&self, group: usize) -> usize {
        self.metadata().row_group(group).num_rows() as usize
    }

    /// Place of a column in the file.
    pub(crate) fn leaf(&self, name: &str) -> Option<usize> {
        self.metadata.schema().index_of(name).ok()
    }

    /// Reads the selected rows of one row group.
    pub(crate) fn read(
        &self,
        group: usize,
        selection: Option<RowSelection>,
        projection: &Arc<Projection>,
    ) -> Result<GroupReader<'_>, StoreError> {
        let leaves = projection
            .columns
            .iter()
            .filter_map(|column| self.leaf(column.name));
        let mask = ProjectionMask::leaves(self.metadata.parquet_schema(), leaves);
        let mut builder = ParquetRecordBatchReaderBuilder::new_with_metadata(
            self.file.clone(),
            self.metadata.clone(),
        )
        .with_row_groups(vec![group])
        .with_projection(mask)
        .with_batch_size(limits::READ_BATCH_ROWS);
        if let Some(selection) = selection {
            builder = builder.with_row_selection(selection);
        }
        let reader = builder
            .build()
            .map_err(|error| damaged(&self.path, self.table, &error))?;
        Ok(GroupReader {
            file: self,
            reader,
            projection: Arc::clone(projection),
        })
    }
}

/// Columns wanted, in their order.
#[derive(Debug)]
pub(crate) struct Projection {
    pub(crate) columns: Vec<&'static Column>,
    pub(crate) schema: SchemaRef,
}

impl Projection {
    pub(crate) fn new(table: &'static Table, names: &[&str]) -> Result<Self, StoreError> {
        let columns = names
            .iter()
            .map(|name| {
                let found = table.column(name).map(|(_, column)| column);
                found.ok_or_else(|| StoreError::NoColumn {
                    table: table.name.to_owned(),
                    column: (*name).to_owned(),
                })
            })
            .collect::<Result<Vec<_>, _>>()?;
        let fields: Vec<Field> = columns.iter().map(|column| schema::field(column)).collect();
        Ok(Self {
            columns,
            schema: Arc::new(Schema::new(fields)),
        })
    }

    /// A batch of these columns; one that is missing (older files) is null throughout.
    fn arrange(&self, batch: &RecordBatch) -> Result<RecordBatch, arrow_schema::ArrowError> {
        let arrays: Vec<ArrayRef> = self
            .columns
            .iter()
            .map(|column| match batch.column_by_name(column.name) {
                Some(array) => Arc::clone(array),
                None => new_null_array(&schema::data_type(column.kind), batch.num_rows()),
            })
            .collect();
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        RecordBatch::try_new_with_options(Arc::clone(&self.schema), arrays, &options)
    }
}

/// Batches of one row group.
pub(crate) struct GroupReader<'f> {
    file: &'f TableFile,
    reader: ParquetRecordBatchReader,
    projection: Arc<Projection>,
}

impl Iterator for GroupReader<'_> {
    type Item = Result<RecordBatch, StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        let arranged = self
            .reader
            .next()?
            .and_then(|batch| self.projection.arrange(&batch));
        Some(
            arranged.map_err(|error| {
                damaged_because(&self.file.path, self.file.table, error.to_string())
            }),
        )
    }
}

pub(crate) fn damaged_because(path: &Path, table: &Table, reason: String) -> StoreError {
    StoreError::Damaged {
        path: path.to_path_buf(),
        table: table.name.to_owned(),
        reason,
    }
}

fn damaged(path: &Path, table: &Table, error: &ParquetError) -> StoreError {
    damaged_because(path, table, error.to_string())
}

/// Text as dictionaries, everything else as the file has it.
fn dictionary_schema(plain: &SchemaRef) -> SchemaRef {
    let fields: Vec<Field> = plain
        .fields()
        .iter()
        .map(|field| match field.data_type() {
            DataType::Utf8 => field
                .as_ref()
                .clone()
                .with_data_type(schema::data_type(ColumnType::Utf8)),
            _ => field.as_ref().clone(),
        })
        .collect();
    Arc::new(Schema::new(fields))
}

/// A column we do not know is of a later program and left alone; one we know has to be as declared.
fn check_columns(plain: &SchemaRef, table: &Table) -> Result<(), String> {
    for column in table.columns {
        let Ok(field) = plain.field_with_name(column.name) else {
            if column.nullable {
                continue;
            }
            return Err(format!("it has no column `{}`", column.name));
        };
        let expected = match column.kind {
            ColumnType::Utf8 => DataType::Utf8,
            kind => schema::data_type(kind),
        };
        if *field.data_type() != expected {
            return Err(format!(
                "column `{}` is {}, not {expected}",
                column.name,
                field.data_type()
            ));
        }
        if field.is_nullable() && !column.nullable {
            return Err(format!("column `{}` may be null", column.name));
        }
    }
    Ok(())
}

fn check_rows(metadata: &ParquetMetaData) -> Result<(), String> {
    let mut rows = 0_i64;
    for group in metadata.row_groups() {
        let sum = rows.checked_add(group.num_rows());
        match sum {
            Some(sum) if group.num_rows() >= 0 => rows = sum,
            _ => return Err("the row counts of its row groups are impossible".to_owned()),
        }
    }
    let stated = metadata.file_metadata().num_rows();
    if rows == stated {
        Ok(())
    } else {
        Err(format!(
            "its row groups have {rows} rows, its footer says {stated}"
        ))
    }
}
