//! Blocks ready to be written.

use std::io;

use whyslow_model::spool::{BLOCK_BYTES, Block, Encoder};

/// Fast, and half the size.
const COMPRESSION: i32 = 1;

/// Records of a block, compressed if that makes them smaller. Its number is assigned on writing.
#[derive(Debug)]
pub(crate) struct Packed {
    stored: Box<[u8]>,
    is_compressed: bool,
    pub(crate) has_names: bool,
    pub(crate) record_bytes: u32,
    pub(crate) records: u32,
    pub(crate) complete_until: u64,
}

impl Packed {
    /// Size in a file.
    pub(crate) fn bytes(&self) -> u64 {
        (BLOCK_BYTES + self.stored.len()) as u64
    }

    pub(crate) fn append_to(&self, file: &mut Vec<u8>, number: u64) {
        let mut block = Block {
            number,
            complete_until: self.complete_until,
            payload_bytes: self.stored.len() as u32,
            record_bytes: self.record_bytes,
            records: self.records,
            is_compressed: self.is_compressed,
            has_names: self.has_names,
            crc: 0,
        };
        let head = block.head();
        let mut crc = crc32fast::Hasher::new();
        crc.update(&head);
        crc.update(&self.stored);
        block.crc = crc.finalize();
        file.extend(head);
        file.extend(block.crc.to_le_bytes());
        file.extend_from_slice(&self.stored);
    }
}

/// Creates blocks.
pub(crate) struct Packer {
    compressor: zstd::bulk::Compressor<'static>,
    /// Blocks are copied from here: shrinking them in place would fragment the heap.
    scratch: Vec<u8>,
}

impl Packer {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self {
            compressor: zstd::bulk::Compressor::new(COMPRESSION)?,
            scratch: Vec::new(),
        })
    }

    pub(crate) fn pack(
        &mut self,
        payload: &[u8],
        records: u32,
        complete_until: u64,
    ) -> io::Result<Packed> {
        self.scratch.clear();
        self.scratch
            .reserve(zstd::zstd_safe::compress_bound(payload.len()));
        self.compressor
            .compress_to_buffer(payload, &mut self.scratch)?;
        let is_compressed = self.scratch.len() < payload.len();
        Ok(Packed {
            stored: if is_compressed {
                self.scratch.as_slice().into()
            } else {
                payload.into()
            },
            is_compressed,
            has_names: false,
            record_bytes: payload.len() as u32,
            records,
            complete_until,
        })
    }

    /// Symbols, in a block of their own, so that they can be found without the others.
    pub(crate) fn pack_names(
        &mut self,
        names: &Encoder,
        complete_until: u64,
    ) -> io::Result<Packed> {
        let block = self.pack_all(names, complete_until)?;
        Ok(Packed {
            has_names: true,
            ..block
        })
    }

    pub(crate) fn pack_all(
        &mut self,
        encoder: &Encoder,
        complete_until: u64,
    ) -> io::Result<Packed> {
        self.pack(encoder.payload(), encoder.records(), complete_until)
    }
}
