//! Writes a recording: takes rows of every table as trackers finish them.

use std::path::Path;

use whyslow_model::row::Emit;

use whyslow_model::{Row, Symbols, for_each_table, tables};

use crate::checksums::{self, ByFile};
use crate::limits::Limits;
use crate::staging::{Existing, Staging};
use crate::table_writer::{Context, TableWriter};
use crate::{RecordingInfo, StoreError, manifest};

macro_rules! recording_writer {
    ($($row:ident $field:ident),+) => {
        /// Writes a recording. Rows come through [`Emit`]; call [`Self::flush_ready`] regularly in
        /// between, and [`Self::finish`] to make the recording visible. Dropped before that, it
        /// leaves nothing behind.
        pub struct RecordingWriter {
            ready: bool,
            $($field: TableWriter<tables::$row>,)+
            // Last, because it must be dropped last: threads of the tables write into it.
            staging: Staging,
        }

        impl RecordingWriter {
            /// Starts a recording next to `target`, where it will appear when it is finished.
            pub fn create(target: &Path, existing: Existing) -> Result<Self, StoreError> {
                Self::create_within(target, existing, Limits::default())
            }

            /// The same with custom limits.
            pub fn create_within(
                target: &Path,
                existing: Existing,
                limits: Limits,
            ) -> Result<Self, StoreError> {
                Ok(Self {
                    staging: Staging::create(target, existing, limits)?,
                    ready: false,
                    $($field: TableWriter::new(&limits)),+
                })
            }

            /// Writes the tables that exceed their buffers. Costs nothing if there are none: call
            /// it after every event or small batch of events.
            #[inline]
            pub fn flush_ready(&mut self, symbols: &Symbols) -> Result<(), StoreError> {
                if self.ready { self.flush(symbols) } else { Ok(()) }
            }

            #[cold]
            fn flush(&mut self, symbols: &Symbols) -> Result<(), StoreError> {
                let context = Context {
                    staging: &self.staging,
                    symbols,
                };
                $(self.$field.flush_ready(&context)?;)+
                self.ready = false;
                Ok(())
            }

            /// Completes all tables and moves the recording to the target. The caller provides
            /// sources, host, zone and time range; the rest of the manifest is filled in here.
            pub fn finish(
                self,
                symbols: &Symbols,
                mut recording: RecordingInfo,
            ) -> Result<RecordingInfo, StoreError> {
                let Self { staging, ready: _, $($field),+ } = self;
                let context = Context {
                    staging: &staging,
                    symbols,
                };
                recording.format_version = manifest::FORMAT_VERSION;
                recording.written_by = format!("whyslow {}", env!("CARGO_PKG_VERSION"));
                recording.tables.clear();
                let mut checksums = ByFile::new();
                // All tables are passed on before any is waited for: their threads share the CPUs.
                $(let $field = $field.drain(&context)?;)+
                $(
                    let name = <tables::$row as Row>::TABLE.name;
                    recording.tables.insert(name.to_owned(), $field.join(&mut checksums)?);
                )+
                staging.write(checksums::FILE_NAME, &checksums::encode(&checksums))?;
                staging.write(manifest::FILE_NAME, &manifest::to_json(&recording))?;
                staging.commit()?;
                Ok(recording)
            }
        }

        $(impl Emit<tables::$row> for RecordingWriter {
            #[inline]
            fn emit(&mut self, row: tables::$row) {
                self.ready |= self.$field.take(row);
            }
        })+
    };
}
for_each_table!(recording_writer);
