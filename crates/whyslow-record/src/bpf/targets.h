/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/* Processes to record: by pid, by name, by control group; and their descendants. */

#define PATTERNS_MAX 8
#define COMM_MAX 16

/* A name, or a prefix. */
struct comm_pattern {
	char bytes[COMM_MAX];
	__u8 len;
	__u8 is_prefix;
	__u8 zero[6];
};

const volatile struct comm_pattern comm_patterns[PATTERNS_MAX] = {};
const volatile __u32 comm_pattern_count = 0;

/* Inodes of the selected control groups, and their hierarchy. */
const volatile __s32 cgroup_hierarchy = -1;

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 4096);
	__type(key, __u64);
	__type(value, __u8);
} cgroups SEC(".maps");

static __always_inline void add_target(__u32 pid)
{
	__u8 one = 1;

	if (pid != own_pid && bpf_map_update_elem(&targets, &pid, &one, BPF_ANY))
		lose(bpf_ktime_get_ns());
}

static __always_inline bool is_named(const volatile struct comm_pattern *pattern, const char *name)
{
	for (int i = 0; i < COMM_MAX; i++) {
		if (i == pattern->len)
			return pattern->is_prefix || !name[i];
		if (name[i] != pattern->bytes[i])
			return false;
	}
	return true;
}

/* A thread of the process takes this name. */
static __always_inline void add_if_named(__u32 pid, const char *comm)
{
	char name[COMM_MAX] = {};

	if (!comm_pattern_count)
		return;
	bpf_probe_read_kernel_str(name, sizeof(name), comm);
	for (int i = 0; i < PATTERNS_MAX && i < comm_pattern_count; i++) {
		if (is_named(&comm_patterns[i], name)) {
			add_target(pid);
			return;
		}
	}
}

SEC("tp_btf/cgroup_attach_task")
int BPF_PROG(on_cgroup, struct cgroup *group, const char *path, struct task_struct *task)
{
	__u64 id = group->kn->id;

	if (group->root->hierarchy_id == cgroup_hierarchy && bpf_map_lookup_elem(&cgroups, &id))
		add_target(task->tgid);
	return 0;
}
