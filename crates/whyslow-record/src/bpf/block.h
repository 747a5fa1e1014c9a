/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/* Block I/O: bios at submission, requests at the device. */

#include "rwbs.h"

/*
 * Arguments of a typed tracepoint can be dereferenced directly, which is cheaper; those of other
 * forms cannot.
 */
enum pointers { CHECKED, UNCHECKED };
#define GET(pointers, from, field)                                                                 \
	((pointers) == CHECKED ? (from)->field : BPF_CORE_READ(from, field))

static __always_inline __u32 number_of(struct gendisk *disk)
{
	return disk ? BPF_CORE_READ(disk, major) << 20 | BPF_CORE_READ(disk, first_minor) : 0;
}

static __always_inline __u32 bio_device(const enum pointers pointers, struct bio *bio)
{
	struct bio___before_5_12 *old = (void *)bio;

	if (!bpf_core_field_exists(bio->bi_bdev))
		return number_of(BPF_CORE_READ(old, bi_disk)) + BPF_CORE_READ(old, bi_partno);
	if (pointers == CHECKED)
		return bio->bi_bdev ? bio->bi_bdev->bd_dev : 0;
	return BPF_CORE_READ(bio, bi_bdev, bd_dev);
}

/* The queue has a pointer to its disk since 5.15, and the request has none since 5.17. */
static __always_inline __u32 request_device(struct request *rq)
{
	struct request___before_5_17 *old = (void *)rq;

	if (bpf_core_field_exists(rq->q->disk))
		return number_of(BPF_CORE_READ(rq, q, disk));
	return number_of(BPF_CORE_READ(old, rq_disk));
}

static __always_inline struct wire_block *begin_block(__u16 kind)
{
	struct wire_block *record = BEGIN(struct wire_block, kind);

	if (!record)
		return 0;
	record->head.flags = context_here();
	record->error = 0;
	record->old_sector = 0;
	record->old_dev = 0;
	record->zero = 0;
	return record;
}

static __always_inline struct wire_block *begin_bio(const enum pointers pointers, __u16 kind,
						    struct bio *bio)
{
	struct wire_block *record = begin_block(kind);

	if (!record)
		return 0;
	record->dev = bio_device(pointers, bio);
	record->bytes = GET(pointers, bio, bi_iter.bi_size);
	record->sector = GET(pointers, bio, bi_iter.bi_sector);
	record->rwbs = rwbs_of(GET(pointers, bio, bi_opf));
	return record;
}

static __always_inline int put_bio(const enum pointers pointers, __u16 kind, struct bio *bio)
{
	struct wire_block *record = begin_bio(pointers, kind, bio);

	if (record)
		end_record(record);
	return 0;
}

static __always_inline int put_bio_complete(const enum pointers pointers, struct bio *bio)
{
	struct wire_block *record = begin_bio(pointers, WIRE_BIO_COMPLETE, bio);

	if (!record)
		return 0;
	record->error = GET(pointers, bio, bi_status);
	end_record(record);
	return 0;
}

static __always_inline int put_remap(const enum pointers pointers, struct bio *bio, __u32 dev,
				     __u64 from)
{
	struct wire_block *record = begin_bio(pointers, WIRE_BIO_REMAP, bio);

	if (!record)
		return 0;
	record->old_dev = dev;
	record->old_sector = from;
	end_record(record);
	return 0;
}

static __always_inline int put_split(const enum pointers pointers, struct bio *bio,
				     __u32 new_sector)
{
	struct wire_block *record = begin_bio(pointers, WIRE_BIO_SPLIT, bio);

	if (!record)
		return 0;
	record->old_sector = new_sector;
	end_record(record);
	return 0;
}

/* Only the completion of a request, or of a part of it, reports a number of bytes. */
#define ALL_BYTES (~0u)

static __always_inline int put_rq(const enum pointers pointers, __u16 kind, struct request *rq,
				  __u32 bytes, __s32 error)
{
	struct wire_block *record = begin_block(kind);

	if (!record)
		return 0;
	record->dev = request_device(rq);
	record->bytes = bytes == ALL_BYTES ? GET(pointers, rq, __data_len) : bytes;
	record->sector = GET(pointers, rq, __sector);
	record->rwbs = rwbs_of(GET(pointers, rq, cmd_flags));
	record->error = error;
	end_record(record);
	return 0;
}

SEC("tp_btf/block_bio_queue")
int BPF_PROG(on_bio_queue, struct bio *bio)
{
	return put_bio(CHECKED, WIRE_BIO_QUEUE, bio);
}

SEC("tp_btf/block_bio_backmerge")
int BPF_PROG(on_bio_backmerge, struct bio *bio)
{
	return put_bio(CHECKED, WIRE_BIO_BACKMERGE, bio);
}

SEC("tp_btf/block_bio_frontmerge")
int BPF_PROG(on_bio_frontmerge, struct bio *bio)
{
	return put_bio(CHECKED, WIRE_BIO_FRONTMERGE, bio);
}

SEC("tp_btf/block_getrq")
int BPF_PROG(on_getrq, struct bio *bio)
{
	return put_bio(CHECKED, WIRE_GETRQ, bio);
}

SEC("tp_btf/block_bio_complete")
int BPF_PROG(on_bio_complete, struct request_queue *queue, struct bio *bio)
{
	return put_bio_complete(CHECKED, bio);
}

SEC("tp_btf/block_bio_remap")
int BPF_PROG(on_bio_remap, struct bio *bio, __u32 dev, __u64 from)
{
	return put_remap(CHECKED, bio, dev, from);
}

SEC("tp_btf/block_split")
int BPF_PROG(on_split, struct bio *bio, unsigned int new_sector)
{
	return put_split(CHECKED, bio, new_sector);
}

SEC("tp_btf/block_rq_insert")
int BPF_PROG(on_rq_insert, struct request *rq)
{
	return put_rq(CHECKED, WIRE_RQ_INSERT, rq, ALL_BYTES, 0);
}

SEC("tp_btf/block_rq_issue")
int BPF_PROG(on_rq_issue, struct request *rq)
{
	return put_rq(CHECKED, WIRE_RQ_ISSUE, rq, ALL_BYTES, 0);
}

SEC("tp_btf/block_rq_merge")
int BPF_PROG(on_rq_merge, struct request *rq)
{
	return put_rq(CHECKED, WIRE_RQ_MERGE, rq, ALL_BYTES, 0);
}

SEC("tp_btf/block_rq_requeue")
int BPF_PROG(on_rq_requeue, struct request *rq)
{
	return put_rq(CHECKED, WIRE_RQ_REQUEUE, rq, ALL_BYTES, 0);
}

SEC("tp_btf/block_rq_complete")
int BPF_PROG(on_rq_complete, struct request *rq, __u8 error, unsigned int bytes)
{
	return put_rq(CHECKED, WIRE_RQ_COMPLETE, rq, bytes, error);
}
