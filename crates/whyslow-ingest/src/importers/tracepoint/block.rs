//! The block layer: bios, requests, devices.

use whyslow_model::event::{BlockRange, Body};

use super::Fields;
use super::Mapping;
use super::value::Value;
use crate::importers::rwbs;

/// Fields read by [`range`]; additional fields of an event follow.
macro_rules! range_and {
    ($($more:literal),*) => {
        &["dev", "sector", "nr_sector", "rwbs", "bytes", "tid", "comm" $(, $more)*]
    };
}

pub(super) static EVENTS: &[Mapping] = &[
    Mapping {
        names: &["block_bio_queue"],
        fields: range_and!(),
        body: bio_queue,
    },
    Mapping {
        names: &["block_bio_backmerge"],
        fields: range_and!(),
        body: bio_backmerge,
    },
    Mapping {
        names: &["block_bio_frontmerge"],
        fields: range_and!(),
        body: bio_frontmerge,
    },
    Mapping {
        names: &["block_bio_complete"],
        fields: range_and!("error"),
        body: bio_complete,
    },
    Mapping {
        names: &["block_bio_remap"],
        fields: range_and!("old_dev", "old_sector"),
        body: bio_remap,
    },
    Mapping {
        names: &["block_split"],
        fields: range_and!("new_sector"),
        body: split,
    },
    Mapping {
        names: &["block_getrq"],
        fields: range_and!(),
        body: get_rq,
    },
    Mapping {
        names: &["block_rq_insert"],
        fields: range_and!(),
        body: rq_insert,
    },
    Mapping {
        names: &["block_rq_issue"],
        fields: range_and!(),
        body: rq_issue,
    },
    Mapping {
        names: &["block_rq_merge"],
        fields: range_and!(),
        body: rq_merge,
    },
    Mapping {
        names: &["block_rq_requeue"],
        fields: range_and!(),
        body: rq_requeue,
    },
    Mapping {
        names: &["block_rq_complete"],
        fields: range_and!("error|errors"),
        body: rq_complete,
    },
];

fn range<'a>(fields: &Fields<'_, 'a>) -> Option<BlockRange<'a>> {
    // `block_split` has no size
    let sectors = fields.i64(2).unwrap_or(0);
    Some(BlockRange {
        dev: fields.i64(0)?,
        sector: fields.i64(1)?,
        sectors,
        // 0 where the request is made of sectors
        bytes: fields.i64(4).filter(|bytes| *bytes > 0),
        flags: match fields.value(3) {
            Value::Str(text) => rwbs::from_text(text, sectors),
            mask => rwbs::from_mask(mask.as_u64()?, sectors),
        },
        tid: fields.i32(5),
        comm: fields.bytes(6),
    })
}

fn bio_queue<'a>(fields: &Fields<'_, 'a>) -> Option<Body<'a>> {
    Some(Body::BlockBioQueue(range(fields)?))
}

fn bio_backmerge<'a>(fields: &Fields<'_, 'a>) -> Option<Body<'a>> {
    Some(Body::BlockBioBackmerge(range(fields)?))
}

fn bio_frontmerge<'a>(fields: &Fields<'_, 'a>) -> Option<Body<'a>> {
    Some(Body::BlockBioFrontmerge(range(fields)?))
}

fn bio_complete<'a>(fields: &Fields<'_, 'a>) -> Option<Body<'a>> {
    Some(Body::BlockBioComplete {
        range: range(fields)?,
        error: fields.i32(7),
    })
}

fn bio_remap<'a>(fields: &Fields<'_, 'a>) -> Option<Body<'a>> {
    Some(Body::BlockBioRemap {
        range: range(fields)?,
        old_dev: fields.i64(7)?,
        old_sector: fields.i64(8)?,
    })
}

fn split<'a>(fields: &Fields<'_, 'a>) -> Option<Body<'a>> {
    Some(Body::BlockSplit {
        range: range(fields)?,
        new_sector: fields.i64(7)?,
    })
}

fn get_rq<'a>(fields: &Fields<'_, 'a>) -> Option<Body<'a>> {
    Some(Body::BlockGetRq(range(fields)?))
}

fn rq_insert<'a>(fields: &Fields<'_, 'a>) -> Option<Body<'a>> {
    Some(Body::BlockRqInsert(range(fields)?))
}

fn rq_issue<'a>(fields: &Fields<'_, 'a>) -> Option<Body<'a>> {
    Some(Body::BlockRqIssue(range(fields)?))
}

fn rq_merge<'a>(fields: &Fields<'_, 'a>) -> Option<Body<'a>> {
    Some(Body::BlockRqMerge(range(fields)?))
}

fn rq_requeue<'a>(fields: &Fields<'_, 'a>) -> Option<Body<'a>> {
    Some(Body::BlockRqRequeue(range(fields)?))
}

fn rq_complete<'a>(fields: &Fields<'_, 'a>) -> Option<Body<'a>> {
    Some(Body::BlockRqComplete {
        range: range(fields)?,
        error: fields.i32(7),
    })
}
