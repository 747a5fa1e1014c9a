/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/* Memory: reclaim and waits for it, and optionally each page fault and page-cache change. */

enum reclaim_kind {
	RECLAIM_DIRECT = 0,
	RECLAIM_CGROUP = 1,
	RECLAIM_CGROUP_SOFT = 2,
	RECLAIM_NODE = 3,
	RECLAIM_KSWAPD = 4,
};

static __always_inline int put_reclaim(__u16 kind, __u32 what, __s32 order, __s32 node, __s64 pages)
{
	struct wire_reclaim *record = BEGIN(struct wire_reclaim, kind);

	if (!record)
		return 0;
	record->what = what;
	record->order = order;
	record->node = node;
	record->zero = 0;
	record->pages = pages;
	end_record(record);
	return 0;
}

SEC("tp_btf/mm_vmscan_direct_reclaim_begin")
int BPF_PROG(on_direct_begin, int order)
{
	return put_reclaim(WIRE_RECLAIM_BEGIN, RECLAIM_DIRECT, order, -1, -1);
}

SEC("tp_btf/mm_vmscan_direct_reclaim_end")
int BPF_PROG(on_direct_end, unsigned long pages)
{
	return put_reclaim(WIRE_RECLAIM_END, RECLAIM_DIRECT, -1, -1, pages);
}

SEC("tp_btf/mm_vmscan_memcg_reclaim_begin")
int BPF_PROG(on_cgroup_begin, int order)
{
	return put_reclaim(WIRE_RECLAIM_BEGIN, RECLAIM_CGROUP, order, -1, -1);
}

SEC("tp_btf/mm_vmscan_memcg_reclaim_end")
int BPF_PROG(on_cgroup_end, unsigned long pages)
{
	return put_reclaim(WIRE_RECLAIM_END, RECLAIM_CGROUP, -1, -1, pages);
}

SEC("tp_btf/mm_vmscan_memcg_softlimit_reclaim_begin")
int BPF_PROG(on_soft_begin, int order)
{
	return put_reclaim(WIRE_RECLAIM_BEGIN, RECLAIM_CGROUP_SOFT, order, -1, -1);
}

SEC("tp_btf/mm_vmscan_memcg_softlimit_reclaim_end")
int BPF_PROG(on_soft_end, unsigned long pages)
{
	return put_reclaim(WIRE_RECLAIM_END, RECLAIM_CGROUP_SOFT, -1, -1, pages);
}

SEC("tp_btf/mm_vmscan_node_reclaim_begin")
int BPF_PROG(on_node_begin, int node, int order)
{
	return put_reclaim(WIRE_RECLAIM_BEGIN, RECLAIM_NODE, order, node, -1);
}

SEC("tp_btf/mm_vmscan_node_reclaim_end")
int BPF_PROG(on_node_end, unsigned long pages)
{
	return put_reclaim(WIRE_RECLAIM_END, RECLAIM_NODE, -1, -1, pages);
}

SEC("tp_btf/mm_vmscan_kswapd_wake")
int BPF_PROG(on_kswapd_wake, int node, int zone, int order)
{
	return put_reclaim(WIRE_RECLAIM_BEGIN, RECLAIM_KSWAPD, order, node, -1);
}

SEC("tp_btf/mm_vmscan_kswapd_sleep")
int BPF_PROG(on_kswapd_sleep, int node)
{
	return put_reclaim(WIRE_RECLAIM_END, RECLAIM_KSWAPD, -1, node, -1);
}

static __always_inline int put_memory(__u32 what, __u32 order)
{
	struct wire_memory *record = BEGIN(struct wire_memory, WIRE_MEMORY);

	if (!record)
		return 0;
	record->what = what;
	record->order = order;
	end_record(record);
	return 0;
}

SEC("tp_btf/page_fault_user")
int BPF_PROG(on_fault_user)
{
	return put_memory(0, 0);
}

SEC("tp_btf/page_fault_kernel")
int BPF_PROG(on_fault_kernel)
{
	return put_memory(1, 0);
}

/*
 * Single pages have no order field; the flags, which come first, show that. The field moved in 6.6.
 */
static __always_inline __u32 order_of(struct folio *folio)
{
	__u64 bit = bpf_core_enum_value(enum pageflags, PG_head);
	struct folio___old *old = (void *)folio;
	__u64 flags = 0;
	__u8 order = 0;

	bpf_probe_read_kernel(&flags, sizeof(flags), folio);
	if (!(flags >> (bit & 63) & 1))
		return 0;
	if (bpf_core_field_exists(old->_folio_order))
		bpf_core_read(&order, sizeof(order), &old->_folio_order);
	else if (bpf_core_field_exists(folio->_flags_1))
		bpf_core_read(&order, sizeof(order), &folio->_flags_1);
	return order;
}

SEC("tp_btf/mm_filemap_add_to_page_cache")
int BPF_PROG(on_cache_add, struct folio *folio)
{
	note_fill(folio, 1ULL << order_of(folio));
	return 0;
}

SEC("tp_btf/mm_filemap_delete_from_page_cache")
int BPF_PROG(on_cache_remove, struct folio *folio)
{
	return put_memory(3, order_of(folio));
}

SEC("tp_btf/mm_vmscan_write_folio")
int BPF_PROG(on_reclaim_write, struct folio *folio)
{
	return put_memory(4, order_of(folio));
}

SEC("tp_btf/mm_vmscan_wakeup_kswapd")
int BPF_PROG(on_kswapd_call)
{
	return put_memory(5, 0);
}
