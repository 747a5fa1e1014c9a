//! The Parquet files of one table, encoded and compressed concurrently with tracking.
//!
//! The thread that tracks events builds batches. Encoding costs several times more and depends only
//! on the batches, so other threads encode them in order. The queue is short: a producer that is
//! faster than the encoder waits.

use std::io::BufWriter;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::thread::JoinHandle;

use parquet::errors::ParquetError;
use whyslow_model::{Strings, Table};

use crate::StoreError;
use crate::cells::Block;
use crate::checksums::{Checksums, Summing};
use crate::encode::FileEncoder;
use crate::limits::{self, Limits};
use crate::staging::StagedFiles;

/// Files being written. Most tables are small: they are encoded at the end, by the thread that
/// joins them; a thread is started for more than one block. Dropping it unfinished waits for the
/// thread to stop, so that no file is created in a directory that is being removed.
pub(crate) struct Series {
    encoder: Option<Encoder>,
    first: Option<Block>,
    running: Option<Running>,
}

/// An encoder on its thread.
struct Running {
    queue: Option<SyncSender<Message>>,
    /// Written blocks, for reuse.
    spares: Receiver<Block>,
    thread: Option<JoinHandle<Result<Vec<WrittenFile>, StoreError>>>,
}

enum Message {
    Rows(Block),
    /// All rows were sent without an error: complete the files.
    End,
}

impl Series {
    /// Starts the files `STEM.parquet`, `STEM-00001.parquet`, …
    pub(crate) fn start(
        files: StagedFiles,
        table: &'static Table,
        stem: String,
        strings: Arc<Strings>,
    ) -> Result<Self, StoreError> {
        Ok(Self {
            encoder: Some(Encoder::new(files, table, stem, strings)?),
            first: None,
            running: None,
        })
    }

    /// A written block, to reuse its memory, which is already mapped.
    pub(crate) fn spare(&self) -> Option<Block> {
        self.running.as_ref()?.spares.try_recv().ok()
    }

    pub(crate) fn write(&mut self, block: Block) -> Result<(), StoreError> {
        if let Some(running) = &mut self.running {
            return running.send(Message::Rows(block));
        }
        let Some(first) = self.first.take() else {
            self.first = Some(block);
            return Ok(());
        };
        if let Some(encoder) = self.encoder.take() {
            let running = self.running.insert(Running::start(encoder)?);
            running.send(Message::Rows(first))?;
            running.send(Message::Rows(block))?;
        }
        Ok(())
    }

    /// Completes the files without waiting for it.
    pub(crate) fn end(&mut self) -> Result<(), StoreError> {
        match &mut self.running {
            Some(running) => running.end(),
            None => Ok(()),
        }
    }

    /// The completed files.
    pub(crate) fn join(&mut self) -> Result<Vec<WrittenFile>, StoreError> {
        if let Some(running) = &mut self.running {
            return running.join();
        }
        let Some(mut encoder) = self.encoder.take() else {
            return Ok(Vec::new());
        };
        if let Some(first) = self.first.take() {
            encoder.write(&first)?;
        }
        encoder.finish()
    }
}

impl Running {
    fn start(mut encoder: Encoder) -> Result<Self, StoreError> {
        let (queue, messages) = sync_channel(limits::BATCHES_QUEUED);
        let (done, spares) = channel();
        let path = encoder.current.path.clone();
        let thread = std::thread::Builder::new()
            .name(format!("write {}", encoder.table.name))
            .spawn(move || {
                for message in messages {
                    match message {
                        Message::Rows(block) => {
                            encoder.write(&block)?;
                            // Not received any more when all rows have been sent.
                            let _ = done.send(block);
                        }
                        Message::End => return encoder.finish(),
                    }
                }
                Ok(Vec::new())
            })
            .map_err(|error| StoreError::io("start a thread to write", path, error))?;
        Ok(Self {
            queue: Some(queue),
            spares,
            thread: Some(thread),
        })
    }

    fn end(&mut self) -> Result<(), StoreError> {
        self.send(Message::End)?;
        self.queue = None;
        Ok(())
    }

    fn join(&mut self) -> Result<Vec<WrittenFile>, StoreError> {
        self.queue = None;
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(result)) => result,
            Some(Err(panic)) => std::panic::resume_unwind(panic),
            None => Ok(Vec::new()),
        }
    }

    fn send(&mut self, message: Message) -> Result<(), StoreError> {
        let sent = self
            .queue
            .as_ref()
            .is_some_and(|queue| queue.send(message).is_ok());
        if sent {
            return Ok(());
        }
        match self.join() {
            Err(error) => Err(error),
            Ok(_) => unreachable!("a thread stops receiving only after a failure"),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.queue = None;
        if let Some(thread) = self.thread.take() {
            // An error, if any, concerns a recording that is discarded.
            let _ = thread.join();
        }
    }
}

/// A complete file.
pub(crate) struct WrittenFile {
    pub(crate) name: String,
    pub(crate) checksums: Checksums,
}

struct Encoder {
    files: StagedFiles,
    table: &'static Table,
    stem: String,
    strings: Arc<Strings>,
    complete: Vec<WrittenFile>,
    current: Current,
}

struct Current {
    limits: Limits,
    name: String,
    path: PathBuf,
    encoder: FileEncoder,
    rows: u64,
    rows_in_group: u64,
}

fn failed(path: &std::path::Path) -> impl Fn(ParquetError) -> StoreError {
    move |error| {
        let source = match error {
            ParquetError::External(inner) => match inner.downcast::<std::io::Error>() {
                Ok(io) => *io,
                Err(other) => std::io::Error::other(other),
            },
            other => std::io::Error::other(other),
        };
        StoreError::io("write", path, source)
    }
}

fn row_group_rows(limits: &Limits, rows_written: u64) -> u64 {
    if rows_written < limits.small_file_rows {
        limits.row_group_rows_small
    } else {
        limits.row_group_rows
    }
}

impl Encoder {
    fn new(
        files: StagedFiles,
        table: &'static Table,
        stem: String,
        strings: Arc<Strings>,
    ) -> Result<Self, StoreError> {
        let name = format!("{stem}.parquet");
        let current = Current::create(&files, name, table, &strings)?;
        Ok(Self {
            files,
            table,
            stem,
            strings,
            complete: Vec::new(),
            current,
        })
    }

    fn write(&mut self, block: &Block) -> Result<(), StoreError> {
        let mut at = 0;
        while at < block.rows {
            if self.current.rows == self.files.limits.file_rows {
                self.next_file()?;
            }
            let left = (block.rows - at) as u64;
            let length = left.min(self.current.rows_left_in_group()) as usize;
            self.current.write(block, at..at + length)?;
            at += length;
        }
        Ok(())
    }

    fn next_file(&mut self) -> Result<(), StoreError> {
        let name = format!("{}-{:05}.parquet", self.stem, self.complete.len() + 1);
        let next = Current::create(&self.files, name, self.table, &self.strings)?;
        let full = std::mem::replace(&mut self.current, next);
        self.complete.push(full.finish()?);
        Ok(())
    }

    fn finish(mut self) -> Result<Vec<WrittenFile>, StoreError> {
        self.complete.push(self.current.finish()?);
        Ok(self.complete)
    }
}

impl Current {
    fn create(
        files: &StagedFiles,
        name: String,
        table: &'static Table,
        strings: &Arc<Strings>,
    ) -> Result<Self, StoreError> {
        let path = files.path(&name);
        let file = Summing::new(BufWriter::new(files.create(&name)?));
        let encoder = FileEncoder::new(file, table, &files.limits, Arc::clone(strings));
        Ok(Self {
            limits: files.limits,
            name,
            encoder: encoder.map_err(failed(&path))?,
            path,
            rows: 0,
            rows_in_group: 0,
        })
    }

    fn rows_left_in_group(&self) -> u64 {
        let group = row_group_rows(&self.limits, self.rows - self.rows_in_group);
        (group - self.rows_in_group).min(self.limits.file_rows - self.rows)
    }

    fn write(&mut self, block: &Block, rows: Range<usize>) -> Result<(), StoreError> {
        let length = rows.len() as u64;
        let appended = self.encoder.append(block, rows);
        appended.map_err(failed(&self.path))?;
        self.rows += length;
        self.rows_in_group += length;
        let full =
            self.rows_in_group == row_group_rows(&self.limits, self.rows - self.rows_in_group);
        if full || self.encoder.group_bytes() > limits::ROW_GROUP_BYTES {
            self.encoder.end_group().map_err(failed(&self.path))?;
            self.rows_in_group = 0;
        }
        Ok(())
    }

    fn finish(self) -> Result<WrittenFile, StoreError> {
        let summing = self.encoder.finish().map_err(failed(&self.path))?;
        let (file, checksums) = summing.finish();
        file.into_inner()
            .map_err(std::io::IntoInnerError::into_error)
            .and_then(|file| file.sync_all())
            .map_err(|error| StoreError::io("write", &self.path, error))?;
        Ok(WrittenFile {
            name: self.name,
            checksums,
        })
    }
}
