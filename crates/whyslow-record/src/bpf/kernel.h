/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * The fields of kernel structures that the programs read, and no others: their offsets are resolved
 * at load time (CO-RE).
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
	BPF_MAP_TYPE_LRU_HASH = 9,
	BPF_MAP_TYPE_ARRAY_OF_MAPS = 12,
	BPF_MAP_TYPE_RINGBUF = 27,
	BPF_MAP_TYPE_TASK_STORAGE = 29,
};

enum {
	BPF_ANY = 0,
	BPF_NOEXIST = 1,
	BPF_F_NO_PREALLOC = 1,
	BPF_LOCAL_STORAGE_GET_F_CREATE = 1,
	BPF_RB_NO_WAKEUP = 1,
	BPF_F_USER_STACK = 1 << 8,
};

enum wb_reason {
	WB_REASON_BACKGROUND = 0,
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

struct task_io_accounting {
	u64 read_bytes;
	u64 write_bytes;
	u64 cancelled_write_bytes;
};

struct nsproxy {
	struct mnt_namespace *mnt_ns;
};

struct atomic_count {
	int counter;
};

struct signal_struct {
	struct atomic_count live;
	struct task_io_accounting ioac;
};

struct kernfs_node {
	u64 id;
};

struct cgroup_root {
	int hierarchy_id;
};

struct cgroup {
	struct kernfs_node *kn;
	struct cgroup_root *root;
};

struct sigaction {
	void *sa_handler;
};

struct k_sigaction {
	struct sigaction sa;
};

struct sighand_struct {
	struct k_sigaction action[64];
};

struct kernel_siginfo {
	int si_code;
};

struct rq {
	unsigned int nr_running;
};

struct cfs_rq {
	struct rq *rq;
};

struct sched_entity {
	__u64 sum_exec_runtime;
	struct cfs_rq *cfs_rq;
};

struct hlist_node {
	struct hlist_node *next;
};

struct hlist_head {
	struct hlist_node *first;
};

struct qstr {
	const unsigned char *name;
};

struct dentry {
	struct dentry *d_parent;
	struct qstr d_name;
	union {
		struct hlist_node d_alias;
	} d_u;
};

struct super_block {
	u32 s_dev;
	unsigned long s_magic;
	struct dentry *s_root;
};

struct inode {
	u16 i_mode;
	u32 i_rdev;
	unsigned long i_ino;
	struct super_block *i_sb;
	struct hlist_head i_dentry;
};

struct address_space {
	struct inode *host;
};

struct file {
	struct address_space *f_mapping;
	struct inode *f_inode;
};

struct fdtable {
	unsigned int max_fds;
	struct file **fd;
};

struct files_struct {
	struct fdtable *fdt;
};

struct sched_info {
	unsigned long pcount;
};

struct task_struct {
	struct thread_info thread_info;
	int on_cpu;
	struct sched_entity se;
	unsigned int flags;
	int prio;
	int pid;
	int tgid;
	unsigned int __state;
	char comm[16];
	struct task_struct *real_parent;
	struct signal_struct *signal;
	struct sighand_struct *sighand;
	struct mm_struct *mm;
	struct nsproxy *nsproxy;
	struct files_struct *files;
	struct task_struct *group_leader;
	struct task_io_accounting ioac;
	struct sched_info sched_info;
	unsigned long nvcsw;
	unsigned long nivcsw;
};

/* Former names and types of fields; ___ and what follows it are not part of the name. */
struct task_struct___before_5_14 {
	long state;
};

struct seq_file {
	unsigned long size;
};

struct bpf_iter_meta {
	struct seq_file *seq;
};

struct bpf_iter__task {
	struct bpf_iter_meta *meta;
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

struct bio___before_5_12 {
	struct gendisk *bi_disk;
	u8 bi_partno;
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

struct request___before_5_17 {
	struct gendisk *rq_disk;
};

struct irqaction {
	const char *name;
};

struct linux_binprm {
	const char *filename;
};

struct journal_s {
	struct block_device *j_fs_dev;
};

struct transaction_s {
	u32 t_tid;
};

struct work_struct {
	void (*func)(struct work_struct *work);
};

struct workqueue_struct {
	char name[24];
};

struct pool_workqueue {
	struct workqueue_struct *wq;
};

struct backing_dev_info {
	char dev_name[64];
};

struct bdi_writeback {
	struct backing_dev_info *bdi;
};

struct wb_writeback_work {
	long nr_pages;
	enum wb_reason reason;
};

struct xfs_mount {
	struct super_block *m_super;
};

struct xlog {
	struct xfs_mount *l_mp;
};

struct folio {
	struct address_space *mapping;
	unsigned long _flags_1;
};

struct page {
	struct address_space *mapping;
};

struct folio___old {
	u8 _folio_order;
};

struct net_device {
	char name[16];
};

struct in6_addr {
	u8 bytes[16];
};

struct sock_common {
	u32 skc_daddr;
	u32 skc_rcv_saddr;
	u16 skc_dport; /* as on the wire */
	u16 skc_num;
	unsigned short skc_family;
	struct in6_addr skc_v6_daddr;
	struct in6_addr skc_v6_rcv_saddr;
};

struct sock {
	struct sock_common __sk_common;
	int sk_err;
	u16 sk_protocol;
};

struct inet_sock {
	__be16 inet_sport; /* as on the wire */
};

struct tcp_sock {
	u64 bytes_acked;
	u64 bytes_received;
	u32 total_retrans;
	u32 srtt_us;
};

struct request_sock {
	struct sock_common __req_common;
};

struct sk_buff {
	struct net_device *dev;
	char cb[48];
	unsigned int len;
	u16 protocol; /* as on the wire */
	u16 network_header;
	unsigned char *head;
	unsigned char *data;
};

/* Arguments of classic tracepoints, with the names shown in tracefs. */
struct trace_event_raw_sys_enter {
	long id;
};

struct trace_event_raw_sys_exit {
	long ret;
};

struct trace_event_raw_sched_switch {
	long prev_state;
	int next_pid;
	int next_prio;
};

struct trace_event_raw_sched_wakeup_template {
	int pid;
	int prio;
};

struct trace_event_raw_sched_process_template {
	int pid;
};

struct trace_event_raw_sched_process_exec {
	u32 __data_loc_filename;
	int old_pid;
};

struct trace_event_raw_task_newtask {
	int pid;
	char comm[16];
	unsigned long clone_flags;
};

struct trace_event_raw_task_rename {
	int pid;
	char newcomm[16];
};

struct trace_event_raw_block_bio {
	u32 dev;
	u64 sector;
	unsigned int nr_sector;
	char rwbs[8];
};

struct trace_event_raw_block_bio_complete {
	u32 dev;
	u64 sector;
	unsigned int nr_sector;
	int error;
	char rwbs[8];
};

struct trace_event_raw_block_bio_remap {
	u32 dev;
	u64 sector;
	unsigned int nr_sector;
	u32 old_dev;
	u64 old_sector;
	char rwbs[8];
};

struct trace_event_raw_block_split {
	u32 dev;
	u64 sector;
	u64 new_sector;
	char rwbs[8];
};

struct trace_event_raw_block_rq {
	u32 dev;
	u64 sector;
	unsigned int nr_sector;
	char rwbs[8];
};

struct trace_event_raw_block_rq_requeue {
	u32 dev;
	u64 sector;
	unsigned int nr_sector;
	char rwbs[8];
};

struct trace_event_raw_block_rq_completion {
	u32 dev;
	u64 sector;
	unsigned int nr_sector;
	int error;
	char rwbs[8];
};

#pragma clang attribute pop

enum pageflags {
	PG_head = 6,
};

enum req_flag_bits {
	__REQ_SYNC = 11,
	__REQ_META = 12,
	__REQ_FUA = 17,
	__REQ_PREFLUSH = 18,
	__REQ_RAHEAD = 19,
};

#endif
