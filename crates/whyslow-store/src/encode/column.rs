//! One column: encodes values of rows as pages, and pages as a column chunk.

use std::ops::Range;

use arrow_buffer::{BooleanBufferBuilder, NullBuffer};
use parquet::basic::{Compression, Type};
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::Result;
use parquet::file::statistics::Statistics;
use parquet::schema::types::ColumnDescPtr;
use whyslow_model::Strings;
use zstd::bulk::Compressor;

use super::chunk::{Chunk, DataPage};
use super::hybrid::put_levels;
use super::page::{Bounds, PageValues};
use crate::cells::Values;
use crate::limits::Limits;

/// Shared state for encoding pages.
pub(crate) struct Tools {
    pub(crate) strings: std::sync::Arc<Strings>,
    pub(crate) zstd: Compressor<'static>,
    pub(crate) compression: Compression,
    pub(crate) page_rows: usize,
    /// The page being encoded.
    pub(crate) scratch: Vec<u8>,
}

pub(crate) struct ColumnEncoder {
    descriptor: ColumnDescPtr,
    nullable: bool,
    page_bounds: bool,
    values: PageValues,
    /// Which rows of the current page have a value.
    valid: BooleanBufferBuilder,
    nulls_in_page: usize,
    nulls: u64,
    bounds: Bounds,
    chunk: Chunk,
}

/// How a column is encoded.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Layout {
    pub(crate) delta: bool,
    pub(crate) page_bounds: bool,
}

impl ColumnEncoder {
    pub(crate) fn new(descriptor: ColumnDescPtr, layout: Layout, limits: &Limits) -> Self {
        Self {
            nullable: descriptor.max_def_level() > 0,
            page_bounds: layout.page_bounds,
            values: PageValues::new(descriptor.physical_type(), layout.delta, limits),
            descriptor,
            valid: BooleanBufferBuilder::new(0),
            nulls_in_page: 0,
            nulls: 0,
            bounds: Bounds::default(),
            chunk: Chunk::new(layout.page_bounds),
        }
    }

    /// Size of the chunk so far.
    pub(crate) fn bytes(&self) -> usize {
        self.chunk.bytes()
    }

    /// Appends the values of some rows.
    pub(crate) fn append(
        &mut self,
        values: &Values,
        nulls: Option<&NullBuffer>,
        rows: Range<usize>,
        tools: &mut Tools,
    ) -> Result<()> {
        let mut at = rows.start;
        while at < rows.end {
            let room = tools.page_rows - self.valid.len();
            let wanted = at..rows.end.min(at + room);
            let nulls = nulls.map(|nulls| nulls.slice(wanted.start, wanted.len()));
            let nulls = nulls.filter(|nulls| nulls.null_count() > 0);
            let taken = self
                .values
                .take(values, nulls.as_ref(), wanted.clone(), &tools.strings);
            match &nulls {
                None => self.valid.append_n(taken, true),
                Some(nulls) => {
                    let valid = nulls.inner().slice(0, taken);
                    self.nulls_in_page += taken - valid.count_set_bits();
                    self.valid.append_buffer(&valid);
                }
            }
            at += taken;
            if taken < wanted.len() || self.valid.len() == tools.page_rows {
                self.end_page(tools)?;
            }
        }
        Ok(())
    }

    /// Encodes the rows of the page.
    fn end_page(&mut self, tools: &mut Tools) -> Result<()> {
        let rows = self.valid.len();
        if rows == 0 {
            return Ok(());
        }
        let valid = self.valid.finish();
        let page = &mut tools.scratch;
        page.clear();
        if self.nullable {
            put_levels(page, rows, (self.nulls_in_page > 0).then_some(&valid));
        }
        let (encoding, bounds) = self.values.put_page(page);
        self.bounds.include(bounds);
        let page = DataPage {
            bytes: &tools.scratch,
            rows,
            nulls: self.nulls_in_page,
            encoding,
            bounds: bounds.0.filter(|_| self.page_bounds),
        };
        self.chunk.put(&page, &mut tools.zstd)?;
        self.nulls += self.nulls_in_page as u64;
        self.nulls_in_page = 0;
        Ok(())
    }

    /// Ends the row group: writes its bytes and returns its footer entry. The encoder starts over.
    pub(crate) fn finish(
        &mut self,
        tools: &mut Tools,
    ) -> Result<(bytes::Bytes, ColumnCloseResult)> {
        self.end_page(tools)?;
        let (dictionary, bounds) = self.values.end_dictionary(&tools.strings);
        self.bounds.include(bounds);
        let statistics = self.statistics();
        self.nulls = 0;
        self.bounds = Bounds::default();
        let chunk = std::mem::replace(&mut self.chunk, Chunk::new(self.page_bounds));
        let descriptor = self.descriptor.clone();
        chunk.finish(
            descriptor,
            dictionary,
            statistics,
            tools.compression,
            &mut tools.zstd,
        )
    }

    /// Minimum and maximum of numbers; for text only the null count, because every row group has
    /// nearly all names.
    fn statistics(&self) -> Statistics {
        let (least, greatest) = self.bounds.0.unzip();
        let nulls = Some(self.nulls);
        match self.descriptor.physical_type() {
            Type::INT64 => Statistics::int64(least, greatest, None, nulls, false),
            Type::INT32 => {
                let int = |value: i64| value as i32;
                Statistics::int32(least.map(int), greatest.map(int), None, nulls, false)
            }
            Type::DOUBLE => Statistics::double(None, None, None, nulls, false),
            Type::BOOLEAN => Statistics::boolean(None, None, None, nulls, false),
            _ => Statistics::byte_array(None, None, None, nulls, false),
        }
    }
}
