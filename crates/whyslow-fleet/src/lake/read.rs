//! Reads rows of the lake that are covered by commits.

use arrow_array::RecordBatch;

use super::commit::RecordingKey;
use super::layout::{Member, Partition};
use super::{Lake, LakeError, Listing};
use crate::columns::LakeTable;
use crate::encode::decode;

impl Lake {
    /// All rows of a table, in order of days and files. For checks and small lakes; queries use a
    /// SQL engine.
    pub fn rows(&self, table: &'static LakeTable) -> Result<Vec<RecordBatch>, LakeError> {
        let listing = self.listing()?;
        let mut rows = Vec::new();
        for (partition, member) in members(&listing) {
            let name = partition.file(table.name, &member);
            let content = self.wait(self.get(&name))?;
            let decoded = decode(table, content).map_err(|error| LakeError::Damaged {
                object: name,
                reason: error.to_string(),
            })?;
            rows.extend(decoded);
        }
        Ok(rows)
    }
}

/// The members whose files are read.
fn members(listing: &Listing) -> Vec<(&Partition, Member)> {
    let of_day = |(partition, day)| {
        let day: &super::commit::Day = day;
        let one = |held: &RecordingKey| super::compact::member(held);
        let ones = day.ones.keys().map(one);
        let many = day.many.keys().map(|id| Member::Many(id.clone()));
        let members: Vec<Member> = ones.chain(many).collect();
        members.into_iter().map(move |member| (partition, member))
    };
    listing.days.iter().flat_map(of_day).collect()
}
