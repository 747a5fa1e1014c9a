//! Runs next to the recorder: imports each complete spool, queries the recording and deletes it.

use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Receiver;

use whyslow_base::failure::Failure;
use whyslow_ingest::ImportOptions;

use super::folder::LiveFolder;
use super::handover::Handover;
use super::segment::{Segment, Shared};

pub(super) struct Answers<'a> {
    pub(super) folder: &'a LiveFolder,
    pub(super) handover: &'a Handover,
    pub(super) are_parts: bool,
    pub(super) receiver: Receiver<PathBuf>,
}

impl Answers<'_> {
    pub(super) fn give(
        self,
        answer: &mut (dyn FnMut(&Segment<'_>) -> Result<(), Failure> + Send),
    ) -> Result<(), Failure> {
        let shared = Shared::default();
        for (number, spool) in (0..).zip(&self.receiver) {
            let answered = self.one((number, &spool), &shared, answer);
            if answered.is_err() {
                self.handover.is_over.store(true, Ordering::Relaxed);
                return answered;
            }
            self.handover.waiting.fetch_sub(1, Ordering::Relaxed);
        }
        Ok(())
    }

    fn one(
        &self,
        (number, spool): (u64, &PathBuf),
        shared: &Shared,
        answer: &mut (dyn FnMut(&Segment<'_>) -> Result<(), Failure> + Send),
    ) -> Result<(), Failure> {
        let recording = self.folder.recording(number);
        let options = ImportOptions::new(&recording);
        whyslow_ingest::import(std::slice::from_ref(spool), &options, &mut |_| {})?;
        let failed = |path: &PathBuf| {
            let path = path.clone();
            move |error| Failure::writing(&path, error)
        };
        std::fs::remove_dir_all(spool).map_err(failed(spool))?;
        answer(&Segment {
            recording: &recording,
            number,
            is_part: self.are_parts,
            shared,
        })?;
        std::fs::remove_dir_all(&recording).map_err(failed(&recording))
    }
}
