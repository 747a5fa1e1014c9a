//! Page faults, the page cache, and reclaim.
//!
//! Pages of the page cache are added one by one, or since Linux 5.18 as folios of 2^`order` pages.

use whyslow_model::event::{Body, MemoryKind, ReclaimKind};

use super::Fields;
use super::Mapping;

pub(super) static EVENTS: &[Mapping] = &[
    Mapping {
        names: &[
            "x86_exceptions_page_fault_user",
            "exceptions_page_fault_user",
            "page_fault_user",
        ],
        fields: &[],
        body: fault_user,
    },
    Mapping {
        names: &[
            "x86_exceptions_page_fault_kernel",
            "exceptions_page_fault_kernel",
            "page_fault_kernel",
        ],
        fields: &[],
        body: fault_kernel,
    },
    Mapping {
        names: &["mm_filemap_add_to_page_cache"],
        fields: &["order"],
        body: cache_add,
    },
    Mapping {
        names: &["mm_filemap_delete_from_page_cache"],
        fields: &["order"],
        body: cache_remove,
    },
    Mapping {
        names: &["mm_vmscan_writepage", "mm_vmscan_write_folio"],
        fields: &[],
        body: reclaim_write,
    },
    Mapping {
        names: &["mm_vmscan_wakeup_kswapd"],
        fields: &[],
        body: kswapd_wakeup,
    },
    Mapping {
        names: &["mm_vmscan_direct_reclaim_begin"],
        fields: BEGIN,
        body: direct_begin,
    },
    Mapping {
        names: &["mm_vmscan_direct_reclaim_end"],
        fields: END,
        body: direct_end,
    },
    Mapping {
        names: &["mm_vmscan_memcg_reclaim_begin"],
        fields: BEGIN,
        body: cgroup_begin,
    },
    Mapping {
        names: &["mm_vmscan_memcg_reclaim_end"],
        fields: END,
        body: cgroup_end,
    },
    Mapping {
        names: &["mm_vmscan_memcg_softlimit_reclaim_begin"],
        fields: BEGIN,
        body: soft_begin,
    },
    Mapping {
        names: &["mm_vmscan_memcg_softlimit_reclaim_end"],
        fields: END,
        body: soft_end,
    },
    Mapping {
        names: &["mm_vmscan_node_reclaim_begin"],
        fields: BEGIN,
        body: node_begin,
    },
    Mapping {
        names: &["mm_vmscan_node_reclaim_end"],
        fields: END,
        body: node_end,
    },
    Mapping {
        names: &["mm_vmscan_kswapd_wake"],
        fields: BEGIN,
        body: kswapd_begin,
    },
    Mapping {
        names: &["mm_vmscan_kswapd_sleep"],
        fields: END,
        body: kswapd_end,
    },
];

const BEGIN: &[&str] = &["order", "nid"];
const END: &[&str] = &["nr_reclaimed", "nid"];

macro_rules! counted {
    ($($function:ident $kind:ident),+ $(,)?) => { $(
        fn $function<'a>(_: &Fields<'_, 'a>) -> Option<Body<'a>> {
            Some(Body::Memory { kind: MemoryKind::$kind, order: 0 })
        }
    )+ };
}
counted! {
    fault_user FaultUser,
    fault_kernel FaultKernel,
    reclaim_write ReclaimWrite,
    kswapd_wakeup KswapdWakeup,
}

macro_rules! of_cache {
    ($($function:ident $kind:ident),+ $(,)?) => { $(
        fn $function<'a>(fields: &Fields<'_, 'a>) -> Option<Body<'a>> {
            let order = u32::try_from(fields.i64(0).unwrap_or(0)).ok()?;
            Some(Body::Memory { kind: MemoryKind::$kind, order })
        }
    )+ };
}
of_cache! { cache_add CacheAdd, cache_remove CacheRemove }

macro_rules! reclaim {
    ($($begin:ident $end:ident $kind:ident),+ $(,)?) => { $(
        fn $begin<'a>(fields: &Fields<'_, 'a>) -> Option<Body<'a>> {
            Some(Body::ReclaimBegin {
                kind: ReclaimKind::$kind,
                order: fields.i32(0),
                node: fields.i32(1),
            })
        }

        fn $end<'a>(fields: &Fields<'_, 'a>) -> Option<Body<'a>> {
            Some(Body::ReclaimEnd {
                kind: ReclaimKind::$kind,
                pages: fields.i64(0),
                node: fields.i32(1),
            })
        }
    )+ };
}
reclaim! {
    direct_begin direct_end Direct,
    cgroup_begin cgroup_end Cgroup,
    soft_begin soft_end CgroupSoft,
    node_begin node_end Node,
    kswapd_begin kswapd_end Kswapd,
}
