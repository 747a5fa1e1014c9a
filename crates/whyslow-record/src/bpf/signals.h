/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * Signals that stop, continue or terminate processes, or request it. Others may be arbitrarily
 * frequent.
 */

#define SIGS_MAX 64
#define BIT(number) (1ULL << (number))
/* Signals ignored by default: child status, urgent data, window size. */
#define SIGS_IGNORED (BIT(17) | BIT(23) | BIT(28))
/* Signals that are requests to programs, even if handled: HUP INT QUIT TERM CONT TSTP. */
#define SIGS_ASKING (BIT(1) | BIT(2) | BIT(3) | BIT(15) | BIT(18) | BIT(20))
#define SIG_CONTINUE 18
#define HANDLER_DEFAULT 0
#define HANDLER_IGNORE 1
/* Sender code if there is no siginfo structure. */
#define SI_USER 0
#define SI_KERNEL 0x80

enum signal_result {
	SIGNAL_IGNORED = 1,
};

static __always_inline bool is_relevant(__u32 number, __u64 handler)
{
	if (!number || number > SIGS_MAX)
		return false;
	if (number == SIG_CONTINUE)
		return true;
	if (handler == HANDLER_DEFAULT)
		return number == SIGS_MAX || !(BIT(number) & SIGS_IGNORED);
	return handler != HANDLER_IGNORE && number < SIGS_MAX && BIT(number) & SIGS_ASKING;
}

static __always_inline __u64 handler_of(struct task_struct *task, __u32 number)
{
	char *actions = (char *)BPF_CORE_READ(task, sighand);
	struct k_sigaction *action;

	if (!actions || !number || number > SIGS_MAX)
		return HANDLER_DEFAULT;
	actions += bpf_core_field_offset(struct sighand_struct, action);
	action = (void *)(actions + (number - 1) * bpf_core_type_size(struct k_sigaction));
	return (__u64)BPF_CORE_READ(action, sa.sa_handler);
}

/* The first two addresses are special values, not structures. */
static __always_inline __s32 code_of(struct kernel_siginfo *info)
{
	__u64 place = (__u64)info;

	if (place <= 1)
		return place ? SI_KERNEL : SI_USER;
	return BPF_CORE_READ(info, si_code);
}

SEC("tp_btf/signal_generate")
int BPF_PROG(on_signal, int number, struct kernel_siginfo *info, struct task_struct *task,
	     int is_group, int result)
{
	__u64 handler = handler_of(task, number);
	struct wire_signal *record;

	/* SIGCONT continues a process even if it is ignored. */
	if (!is_relevant(number, handler) || (result == SIGNAL_IGNORED && number != SIG_CONTINUE))
		return 0;
	record = BEGIN(struct wire_signal, WIRE_SIGNAL);
	if (!record)
		return 0;
	record->number = number;
	record->code = code_of(info);
	record->tid = task->pid;
	record->pid = task->tgid;
	record->result = result;
	record->is_group = is_group;
	record->has_handler = handler > HANDLER_IGNORE;
	record->zero = 0;
	end_record(record);
	return 0;
}

SEC("tp_btf/signal_deliver")
int BPF_PROG(on_signal_deliver, int number, struct kernel_siginfo *info,
	     struct k_sigaction *action)
{
	__u64 handler = (__u64)action->sa.sa_handler;
	struct wire_signal *record;

	if (!is_relevant(number, handler))
		return 0;
	record = BEGIN(struct wire_signal, WIRE_SIGNAL_DELIVERED);
	if (!record)
		return 0;
	record->number = number;
	record->code = code_of(info);
	record->tid = record->head.tid;
	record->pid = record->head.pid;
	record->result = 0;
	record->is_group = 0;
	record->has_handler = handler > HANDLER_IGNORE;
	record->zero = 0;
	end_record(record);
	return 0;
}
