//! Encodes rows of a table as the column chunks of a Parquet row group.
//!
//! Goal: importing a trace must cost less than reading it with other programs, and most of the cost
//! is here. The writer of the Parquet library hashes every value of every dictionary column again,
//! and text as whole strings, although we already have numbers for them. So we encode pages
//! ourselves (three encodings, each a page of code) and use the library for the file structure:
//! page headers, indexes, footer. Tests read the result with the library and with other programs.

mod chunk;
mod column;
mod delta;
mod dictionary;
mod hybrid;
mod page;

use std::fs::File;
use std::io::{BufWriter, Write};
use std::ops::Range;
use std::sync::Arc;

use parquet::arrow::ArrowSchemaConverter;
use parquet::errors::{ParquetError, Result};
use parquet::file::writer::SerializedFileWriter;
use whyslow_model::{Strings, Table};
use zstd::bulk::Compressor;

use self::column::{ColumnEncoder, Layout, Tools};
use crate::cells::Block;
use crate::checksums::Summing;
use crate::limits::{self, Limits};
use crate::schema;

type Sink = Summing<BufWriter<File>>;

/// A table file being written.
pub(crate) struct FileEncoder {
    file: SerializedFileWriter<Sink>,
    columns: Vec<ColumnEncoder>,
    rows: u64,
    tools: Tools,
}

impl FileEncoder {
    pub(crate) fn new(
        sink: Sink,
        table: &'static Table,
        limits: &Limits,
        strings: Arc<Strings>,
    ) -> Result<Self> {
        let arrow = schema::arrow_schema(table);
        let parquet = ArrowSchemaConverter::new().convert(&arrow)?;
        let columns = table.columns.iter().zip(parquet.columns());
        let columns = columns
            .map(|(column, descriptor)| {
                let layout = Layout {
                    delta: schema::is_delta(table, column),
                    page_bounds: schema::has_page_bounds(column),
                };
                ColumnEncoder::new(Arc::clone(descriptor), layout, limits)
            })
            .collect();
        let properties = Arc::new(schema::writer_properties(table));
        let zstd = Compressor::new(limits::ZSTD_LEVEL)
            .map_err(|error| ParquetError::External(Box::new(error)))?;
        Ok(Self {
            file: SerializedFileWriter::new(sink, parquet.root_schema_ptr(), properties)?,
            columns,
            rows: 0,
            tools: Tools {
                strings,
                zstd,
                compression: schema::compression(),
                page_rows: limits.page_rows,
                scratch: Vec::new(),
            },
        })
    }

    pub(crate) fn append(&mut self, block: &Block, rows: Range<usize>) -> Result<()> {
        self.rows += rows.len() as u64;
        for (encoder, column) in self.columns.iter_mut().zip(&block.columns) {
            let nulls = column.nulls.as_ref();
            encoder.append(&column.values, nulls, rows.clone(), &mut self.tools)?;
        }
        Ok(())
    }

    /// Encoded bytes of the row group so far.
    pub(crate) fn group_bytes(&self) -> usize {
        self.columns.iter().map(ColumnEncoder::bytes).sum()
    }

    pub(crate) fn end_group(&mut self) -> Result<()> {
        if self.rows == 0 {
            return Ok(());
        }
        let mut group = self.file.next_row_group()?;
        for column in &mut self.columns {
            let (bytes, close) = column.finish(&mut self.tools)?;
            group.append_column(&bytes, close)?;
        }
        group.close()?;
        self.rows = 0;
        Ok(())
    }

    pub(crate) fn finish(mut self) -> Result<Sink> {
        self.end_group()?;
        let mut sink = self.file.into_inner()?;
        sink.flush()?;
        Ok(sink)
    }
}
