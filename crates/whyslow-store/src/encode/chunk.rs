//! The finished pages of one column of one row group.

use parquet::basic::{Compression, Encoding, PageType, Type};
use parquet::column::page::{CompressedPage, Page, PageWriter};
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::{
    ColumnChunkMetaData, ColumnIndexBuilder, OffsetIndexBuilder, PageEncodingStats,
};
use parquet::file::statistics::Statistics;
use parquet::file::writer::{SerializedPageWriter, TrackedWrite};
use parquet::schema::types::ColumnDescPtr;
use zstd::bulk::Compressor;

/// Pages in the order of their creation. The dictionary, which is complete only at the end, goes
/// first in the file.
pub(crate) struct Chunk {
    pages: TrackedWrite<Vec<u8>>,
    uncompressed: usize,
    rows: u64,
    offsets: OffsetIndexBuilder,
    /// Minimum and maximum of each page, if scans prune by them.
    bounds: Option<ColumnIndexBuilder>,
    encodings: Vec<PageEncodingStats>,
}

/// Values of one page, preceded by the definition levels.
pub(crate) struct DataPage<'p> {
    pub(crate) bytes: &'p [u8],
    pub(crate) rows: usize,
    pub(crate) nulls: usize,
    pub(crate) encoding: Encoding,
    /// Minimum and maximum, if there is a value.
    pub(crate) bounds: Option<(i64, i64)>,
}

/// A dictionary: its entries and their number.
pub(crate) struct DictionaryPage {
    pub(crate) bytes: Vec<u8>,
    pub(crate) entries: usize,
}

fn compress(zstd: &mut Compressor<'_>, bytes: &[u8]) -> Result<bytes::Bytes> {
    let compressed = zstd.compress(bytes);
    let compressed = compressed.map_err(|error| ParquetError::External(Box::new(error)))?;
    Ok(compressed.into())
}

impl Chunk {
    pub(crate) fn new(page_bounds: bool) -> Self {
        Self {
            pages: TrackedWrite::new(Vec::new()),
            uncompressed: 0,
            rows: 0,
            offsets: OffsetIndexBuilder::new(),
            bounds: page_bounds.then(|| ColumnIndexBuilder::new(Type::INT64)),
            encodings: Vec::new(),
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.pages.bytes_written()
    }

    pub(crate) fn put(&mut self, page: &DataPage<'_>, zstd: &mut Compressor<'_>) -> Result<()> {
        let compressed = CompressedPage::new(
            Page::DataPage {
                buf: compress(zstd, page.bytes)?,
                num_values: page.rows as u32,
                encoding: page.encoding,
                def_level_encoding: Encoding::RLE,
                rep_level_encoding: Encoding::RLE,
                statistics: None,
            },
            page.bytes.len(),
        );
        let written = SerializedPageWriter::new(&mut self.pages).write_page(compressed)?;
        self.uncompressed += written.uncompressed_size;
        self.rows += page.rows as u64;
        self.offsets
            .append_offset_and_size(written.offset as i64, written.compressed_size as i32);
        self.offsets.append_row_count(page.rows as i64);
        if let Some(bounds) = &mut self.bounds {
            let end = |value: fn((i64, i64)) -> i64| {
                let value = page.bounds.map(value);
                value.map_or(Vec::new(), |value| value.to_le_bytes().to_vec())
            };
            let (least, greatest) = (end(|bounds| bounds.0), end(|bounds| bounds.1));
            let is_null = page.bounds.is_none();
            bounds.append(is_null, least, greatest, page.nulls as i64, None);
        }
        self.count(PageType::DATA_PAGE, page.encoding);
        Ok(())
    }

    fn count(&mut self, page_type: PageType, encoding: Encoding) {
        let mut known = self.encodings.iter_mut();
        let known = known.find(|stats| stats.page_type == page_type && stats.encoding == encoding);
        match known {
            Some(stats) => stats.count += 1,
            None => self.encodings.push(PageEncodingStats {
                page_type,
                encoding,
                count: 1,
            }),
        }
    }

    /// Everything the file needs for this column chunk.
    pub(crate) fn finish(
        mut self,
        column: ColumnDescPtr,
        dictionary: Option<DictionaryPage>,
        statistics: Statistics,
        compression: Compression,
        zstd: &mut Compressor<'_>,
    ) -> Result<(bytes::Bytes, ColumnCloseResult)> {
        let mut whole = TrackedWrite::new(Vec::new());
        let has_dictionary = dictionary.is_some();
        if let Some(dictionary) = dictionary {
            let page = CompressedPage::new(
                Page::DictionaryPage {
                    buf: compress(zstd, &dictionary.bytes)?,
                    num_values: dictionary.entries as u32,
                    encoding: Encoding::PLAIN,
                    is_sorted: false,
                },
                dictionary.bytes.len(),
            );
            let written = SerializedPageWriter::new(&mut whole).write_page(page)?;
            self.uncompressed += written.uncompressed_size;
            self.count(PageType::DICTIONARY_PAGE, Encoding::PLAIN);
        }
        let mut bytes = whole.into_inner()?;
        let data_at = bytes.len() as i64;
        bytes.extend_from_slice(&self.pages.into_inner()?);
        let mut offsets = self.offsets.build();
        for location in &mut offsets.page_locations {
            location.offset += data_at;
        }
        let mut encodings = vec![Encoding::RLE];
        encodings.extend(self.encodings.iter().map(|stats| stats.encoding));
        encodings.sort_by_key(|encoding| *encoding as i32);
        encodings.dedup();
        let metadata = ColumnChunkMetaData::builder(column)
            .set_compression(compression)
            .set_encodings(encodings)
            .set_page_encoding_stats(self.encodings)
            .set_total_compressed_size(bytes.len() as i64)
            .set_total_uncompressed_size(self.uncompressed as i64)
            .set_num_values(self.rows as i64)
            .set_data_page_offset(data_at)
            .set_dictionary_page_offset(has_dictionary.then_some(0))
            .set_statistics(statistics)
            .build()?;
        let close = ColumnCloseResult {
            bytes_written: bytes.len() as u64,
            rows_written: self.rows,
            metadata,
            bloom_filter: None,
            column_index: self.bounds.map(ColumnIndexBuilder::build).transpose()?,
            offset_index: Some(offsets),
        };
        Ok((bytes.into(), close))
    }
}
