// SPDX-License-Identifier: MIT OR Apache-2.0
/* Two empty programs at every system call: the minimum overhead of any BPF-based recorder. */
__attribute__((section("tp_btf/sys_enter"), used)) int on_enter(void *context)
{
	(void)context;
	return 0;
}

__attribute__((section("tp_btf/sys_exit"), used)) int on_exit(void *context)
{
	(void)context;
	return 0;
}

char LICENSE[] __attribute__((section("license"), used)) = "Dual MIT/GPL";
