/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * The fields of the kernel's structures that the programs read, and no more: where they lie is
 * found out when the programs are loaded (CO-RE).
 */
#ifndef WHYSLOW_KERNEL_H
#define WHYSLOW_KERNEL_H

typedef unsigned char __u8;
typedef short __s16;
typedef unsigned short __u16;
typedef int __s32;
typedef unsigned int __u32;
typedef long long __s64;
typedef unsigned long long __u64;
typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __s32 s32;
typedef __u64 u64;
typedef __s64 s64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;
typedef _Bool bool;
#define true 1
#define false 0

enum bpf_map_type {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_ARRAY_OF_MAPS = 12,
	BPF_MAP_TYPE_RINGBUF = 27,
	BPF_MAP_TYPE_TASK_STORAGE = 29,
};

enum {
	BPF_ANY = 0,
	BPF_F_NO_PREALLOC = 1,
	BPF_LOCAL_STORAGE_GET_F_CREATE = 1,
	BPF_RB_NO_WAKEUP = 1,
	BPF_F_USER_STACK = 1 << 8,
};

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

#if defined(__TARGET_ARCH_x86)
struct pt_regs {
	unsigned long r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di, orig_ax, ip, cs,
		flags, sp, ss;
};
#elif defined(__TARGET_ARCH_arm64)
struct user_pt_regs {
	u64 regs[31];
	u64 sp, pc, pstate;
};
struct pt_regs {
	u64 regs[31];
	u64 sp, pc, pstate;
	u64 orig_x0;
	s32 syscallno;
};
#endif

struct thread_info {
	unsigned long flags;
	u32 status;
};

struct mm_struct {
	unsigned long arg_start;
	unsigned long arg_end;
};

struct ns_common {
	unsigned int inum;
};

struct mnt_namespace {
	struct ns_common ns;
};

struct nsproxy {
	struct mnt_namespace *mnt_ns;
};

struct task_struct {
	struct thread_info thread_info;
	unsigned int flags;
	int prio;
	int pid;
	int tgid;
	unsigned int __state;
	char comm[16];
	struct task_struct *real_parent;
	struct mm_struct *mm;
	struct nsproxy *nsproxy;
};

struct bpf_iter__task {
	struct task_struct *task;
};

struct bvec_iter {
	u64 bi_sector;
	unsigned int bi_size;
};

struct block_device {
	u32 bd_dev;
};

struct bio {
	struct block_device *bi_bdev;
	unsigned int bi_opf;
	u8 bi_status;
	struct bvec_iter bi_iter;
};

struct gendisk {
	int major;
	int first_minor;
};

struct request_queue {
	struct gendisk *disk;
};

struct request {
	struct request_queue *q;
	unsigned int cmd_flags;
	unsigned int __data_len;
	u64 __sector;
};

struct irqaction {
	const char *name;
};

struct linux_binprm {
	const char *filename;
};

#pragma clang attribute pop

enum req_flag_bits {
	__REQ_SYNC = 11,
	__REQ_META = 12,
	__REQ_FUA = 17,
	__REQ_PREFLUSH = 18,
	__REQ_RAHEAD = 19,
};

#endif
