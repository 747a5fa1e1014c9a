// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * attached PINNED_PROGRAM... -- COMMAND...: runs the command while the programs are attached to
 * their tracepoints. It inherits the descriptors that keep them attached.
 */
#include <linux/bpf.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static int bpf(int command, union bpf_attr *attr)
{
	return (int)syscall(SYS_bpf, command, attr, sizeof *attr);
}

int main(int argc, char **argv)
{
	int at = 1;
	for (; at < argc && strcmp(argv[at], "--") != 0; at++) {
		union bpf_attr attr;
		memset(&attr, 0, sizeof attr);
		attr.pathname = (uint64_t)(uintptr_t)argv[at];
		int program = bpf(BPF_OBJ_GET, &attr);
		memset(&attr, 0, sizeof attr);
		attr.raw_tracepoint.prog_fd = (uint32_t)program;
		int link = program < 0 ? -1 : bpf(BPF_RAW_TRACEPOINT_OPEN, &attr);
		/* BPF descriptors are close-on-exec; their duplicates are not. */
		if (link < 0 || dup(link) < 0) {
			perror(argv[at]);
			return 1;
		}
	}
	if (at + 1 >= argc) {
		fprintf(stderr, "usage: attached PINNED_PROGRAM... -- COMMAND...\n");
		return 2;
	}
	execvp(argv[at + 1], argv + at + 1);
	perror(argv[at + 1]);
	return 1;
}
