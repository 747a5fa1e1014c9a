//! Converts block I/O records.

use whyslow_model::event::{BlockFlags, BlockOp, BlockRange, Body};
use whyslow_model::spool::{BlockIo, Kind};

pub(super) fn event(kind: Kind, io: BlockIo) -> Body<'static> {
    let range = BlockRange {
        dev: i64::from(io.dev),
        // A flush has no sector.
        sector: if io.sector == u64::MAX {
            0
        } else {
            io.sector as i64
        },
        sectors: i64::from(io.bytes / 512),
        bytes: None,
        flags: flags(io.rwbs),
        tid: None,
        comm: None,
    };
    let error = Some(BlockIo::errno(io.error)).filter(|errno| *errno != 0);
    match kind {
        Kind::BioQueue => Body::BlockBioQueue(range),
        Kind::BioBackmerge => Body::BlockBioBackmerge(range),
        Kind::BioFrontmerge => Body::BlockBioFrontmerge(range),
        Kind::BioComplete => Body::BlockBioComplete { range, error },
        Kind::BioRemap => Body::BlockBioRemap {
            range,
            old_dev: i64::from(io.old_dev),
            old_sector: io.old_sector as i64,
        },
        Kind::BioSplit => Body::BlockSplit {
            range,
            new_sector: io.old_sector as i64,
        },
        Kind::GetRq => Body::BlockGetRq(range),
        Kind::RqInsert => Body::BlockRqInsert(range),
        Kind::RqIssue => Body::BlockRqIssue(range),
        Kind::RqMerge => Body::BlockRqMerge(range),
        Kind::RqRequeue => Body::BlockRqRequeue(range),
        _ => Body::BlockRqComplete { range, error },
    }
}

fn flags(rwbs: u32) -> BlockFlags {
    let has = |bit| rwbs & bit != 0;
    BlockFlags {
        op: match rwbs & BlockIo::OP {
            0 => BlockOp::Read,
            1 => BlockOp::Write,
            2 => BlockOp::Flush,
            3 => BlockOp::Discard,
            _ => BlockOp::Other,
        },
        sync: has(BlockIo::SYNC),
        meta: has(BlockIo::META),
        ahead: has(BlockIo::AHEAD),
        fua: has(BlockIo::FUA),
        preflush: has(BlockIo::PREFLUSH),
        secure: has(BlockIo::SECURE),
    }
}
