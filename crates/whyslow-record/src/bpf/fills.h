/*
 * Page-cache fills, by file and causing thread.
 *
 * A file is read page by page, and a record for each would cost as much as the read. So a thread's
 * pages of one file are summed up until it does something else: until its system call returns, its
 * next page is of another file, it exits, or, outside of calls, the sum is old.
 */

#define FILLS_OLD_NS (10 * 1000 * 1000)
#define FILES_MAX (1 << 12)
#define FILE_OLD_NS (1000 * 1000 * 1000)
#define PLACE_MAX 4096
#define NAME_MAX 256
#define FOLDERS_MAX 48
#define PF_IO_WORKER 0x10
#define MODE_KIND 0170000
#define MODE_REGULAR 0100000
#define MODE_BLOCK 0060000
#define OVERLAY_MAGIC 0x794c7630

struct filling {
	__u64 mapping; /* 0 for none */
	__u64 entered; /* entry time of the call, 0 outside */
	__u64 since;
	__u64 last;
	__u64 ino;
	__u64 pages;
	__u32 dev;
	__u16 by;
	__u16 arg;
	__u32 nr;
	__s32 fd;
	__u32 flags; /* of the record */
	__s32 state; /* number of the call, negative outside */
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct filling);
} fillings SEC(".maps");

/* Recently reported files: one that was replaced in the cache is reported again. */
struct reported_file {
	__u64 ino;
	__u64 at;
	__u32 dev;
	__u32 zero;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, FILES_MAX);
	__type(key, __u32);
	__type(value, struct reported_file);
} reported_files SEC(".maps");

struct place_scratch {
	struct wire_inode record;
	char names[PLACE_MAX + NAME_MAX];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct place_scratch);
} place_scratches SEC(".maps");

static __always_inline void put_fills(struct task_struct *task, struct filling *filling)
{
	struct wire_fill *record = begin_record_of(WIRE_FILL, sizeof(*record), task);
	bool is_current = (__u32)bpf_get_current_pid_tgid() == task->pid;

	filling->mapping = 0;
	if (!record)
		return;
	record->head.flags = filling->flags | (is_current ? 0 : WIRE_ELSEWHERE);
	record->since = filling->since;
	record->until = filling->entered ? record->head.ts : filling->last;
	record->ino = filling->ino;
	record->pages = filling->pages;
	record->bytes = filling->pages * page_bytes;
	record->dev = filling->dev;
	record->by = filling->by;
	record->arg = filling->arg;
	record->nr = filling->nr;
	record->fd = filling->fd;
	end_record(record);
}

static __always_inline void end_fills(struct task_struct *task)
{
	struct filling *filling = bpf_task_storage_get(&fillings, task, 0, 0);

	if (filling && filling->mapping)
		put_fills(task, filling);
}

/* The path by any of the file's names, within its file system. */
static __always_inline void put_place(struct inode *inode, __u64 ino, __u32 dev, __u64 now)
{
	__u32 zero = 0, cpu = bpf_get_smp_processor_id();
	struct place_scratch *scratch = bpf_map_lookup_elem(&place_scratches, &zero);
	void *ring = ring_here(cpu), *alias;
	struct dentry *dentry = 0, *parent, *root;
	const unsigned char *name;
	__u64 size = 0, len;
	long got;
	int i;

	if (!scratch || !ring || !bpf_core_field_exists(dentry->d_u.d_alias))
		return;
	alias = BPF_CORE_READ(inode, i_dentry.first);
	if (!alias)
		return;
	dentry = alias - bpf_core_field_offset(struct dentry, d_u.d_alias);
	root = BPF_CORE_READ(inode, i_sb, s_root);
	for (i = 0; i < FOLDERS_MAX; i++) {
		if (dentry == root)
			break;
		name = BPF_CORE_READ(dentry, d_name.name);
		barrier_var(size);
		if (size >= PLACE_MAX)
			return;
		got = bpf_probe_read_kernel_str(scratch->names + size, NAME_MAX, name);
		if (got <= 1)
			return;
		size += got;
		parent = BPF_CORE_READ(dentry, d_parent);
		/* Its directories are not in the dentry cache. */
		if (parent == dentry)
			return;
		dentry = parent;
	}
	barrier_var(size);
	if (dentry != root || size > PLACE_MAX)
		return;
	len = (sizeof(struct wire_inode) + size + 7) & ~7ULL;
	fill_head(&scratch->record.head, WIRE_INODE, len, cpu, now);
	scratch->record.ino = ino;
	scratch->record.dev = dev;
	scratch->record.size = size;
	if (bpf_ringbuf_output(ring, scratch, len, BPF_RB_NO_WAKEUP))
		lose(now);
}

static __always_inline void report_place(struct inode *inode, __u64 ino, __u32 dev, __u64 now)
{
	__u32 place = (ino * 31 + dev) & (FILES_MAX - 1);
	struct reported_file *reported = bpf_map_lookup_elem(&reported_files, &place);

	if (!reported || (reported->ino == ino && reported->dev == dev && now - reported->at < FILE_OLD_NS))
		return;
	reported->ino = ino;
	reported->dev = dev;
	reported->at = now;
	put_place(inode, ino, dev, now);
}

/* Whether a descriptor refers to the file, or to an overlay file above it. */
static __always_inline bool leads_to(struct task_struct *task, __u32 fd, __u64 mapping, __u16 kind)
{
	struct fdtable *table = BPF_CORE_READ(task, files, fdt);
	struct file **files = BPF_CORE_READ(table, fd), *file = 0;

	if (!table || fd >= BPF_CORE_READ(table, max_fds) ||
	    bpf_probe_read_kernel(&file, sizeof(file), files + fd) || !file)
		return false;
	if ((__u64)BPF_CORE_READ(file, f_mapping) == mapping)
		return true;
	return kind == MODE_REGULAR &&
	       (__u32)BPF_CORE_READ(file, f_inode, i_sb, s_magic) == OVERLAY_MAGIC;
}

/* Calls have their descriptors among their first three arguments. */
static __always_inline void find_fd(struct task_struct *task, struct filling *filling,
				    struct pt_regs *regs, bool compat, __u16 kind)
{
	__u32 fd;
	int arg;

	for (arg = 1; arg <= 3; arg++) {
		fd = arg_of(regs, compat, arg);
		if (leads_to(task, fd, filling->mapping, kind)) {
			filling->arg = arg;
			/* A descriptor is only useful if all calls are recorded. */
			filling->fd = filling->entered && !call_min_ns ? fd : -1;
			return;
		}
	}
}

/* The number of a task's system call; negative outside. */
static __always_inline __s32 call_nr(struct pt_regs *regs)
{
#if defined(__TARGET_ARCH_x86)
	return regs->orig_ax;
#else
	return regs->syscallno;
#endif
}

static __always_inline void begin_fills(struct task_struct *task, struct filling *filling,
					struct address_space *mapping, struct pt_regs *regs,
					__u64 now)
{
	struct inode *inode = BPF_CORE_READ(mapping, host);
	__u16 kind = BPF_CORE_READ(inode, i_mode) & MODE_KIND;
	bool compat = is_compat(task);
	bool is_device = kind == MODE_BLOCK;

	filling->mapping = (__u64)mapping;
	filling->since = filling->entered ? filling->entered : now;
	filling->pages = 0;
	filling->ino = is_device ? 0 : BPF_CORE_READ(inode, i_ino);
	filling->dev = is_device ? BPF_CORE_READ(inode, i_rdev) : BPF_CORE_READ(inode, i_sb, s_dev);
	filling->flags = compat ? WIRE_COMPAT : 0;
	filling->nr = 0;
	filling->arg = 0;
	filling->fd = 0;
	if (task->flags & (PF_KTHREAD | PF_IO_WORKER)) {
		filling->by = FILL_KERNEL;
	} else if (filling->state < 0) {
		filling->by = FILL_FAULT;
	} else {
		filling->by = FILL_CALL;
		filling->nr = filling->state;
		find_fd(task, filling, regs, compat, kind);
	}
	if (!is_device)
		report_place(inode, filling->ino, filling->dev, now);
}

static __always_inline void note_fill(struct folio *folio, __u64 pages)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
	struct call *call = call_of(task);
	__u64 now = bpf_ktime_get_ns(), entered = call ? call->entered : 0;
	struct address_space *mapping = 0;
	struct filling *filling;

	if (bpf_core_field_exists(folio->mapping))
		bpf_core_read(&mapping, sizeof(mapping), &folio->mapping);
	else
		bpf_core_read(&mapping, sizeof(mapping), &((struct page *)folio)->mapping);
	filling = bpf_task_storage_get(&fillings, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!filling || !mapping) {
		lose(now);
		return;
	}
	if (filling->mapping &&
	    (filling->mapping != (__u64)mapping || filling->entered != entered ||
	     filling->state != call_nr(regs) || (!entered && now - filling->since > FILLS_OLD_NS)))
		put_fills(task, filling);
	if (!filling->mapping) {
		filling->entered = entered;
		filling->state = call_nr(regs);
		begin_fills(task, filling, mapping, regs, now);
		if (call && entered)
			call->has_fills = 1;
	}
	filling->pages += pages;
	filling->last = now;
}
