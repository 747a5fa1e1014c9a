/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/* States of TCP connections: few records per connection, each with everything known about it. */

#define TCP_SYN_RECV 3
#define TCP_LISTEN 10

static __always_inline void read_sides(struct wire_tcp *record, struct sock *sock)
{
	struct sock_common *ends = &sock->__sk_common;
	/* A closed socket has lost skc_num. */
	__u16 port = BPF_CORE_READ((struct inet_sock *)sock, inet_sport);
	__u16 family = ends->skc_family;

	record->local_port = port ? from_wire(port) : ends->skc_num;
	record->peer_port = from_wire(ends->skc_dport);
	if (family == AF_INET) {
		__u32 local = ends->skc_rcv_saddr, peer = ends->skc_daddr;

		record->family = 4;
		__builtin_memcpy(record->local, &local, 4);
		__builtin_memcpy(record->peer, &peer, 4);
	} else if (family == AF_INET6) {
		record->family = 6;
		bpf_probe_read_kernel(record->local, 16, &ends->skc_v6_rcv_saddr);
		bpf_probe_read_kernel(record->peer, 16, &ends->skc_v6_daddr);
	}
}

SEC("tp_btf/inet_sock_set_state")
int BPF_PROG(on_tcp_state, struct sock *sock, int from, int to)
{
	struct tcp_sock *tcp = (struct tcp_sock *)sock;
	struct wire_tcp *record;

	if (sock->sk_protocol != IP_TCP || (from == TCP_LISTEN && to != TCP_SYN_RECV) ||
	    to == TCP_LISTEN)
		return 0;
	record = BEGIN(struct wire_tcp, WIRE_TCP);
	if (!record)
		return 0;
	__builtin_memset((char *)record + sizeof(record->head), 0,
			 sizeof(*record) - sizeof(record->head));
	record->sock = (__u64)sock;
	record->from = from;
	record->to = to;
	record->error = sock->sk_err;
	record->acked = BPF_CORE_READ(tcp, bytes_acked);
	record->received = BPF_CORE_READ(tcp, bytes_received);
	record->retransmits = BPF_CORE_READ(tcp, total_retrans);
	/* The kernel stores the RTT times eight. */
	record->rtt_us = BPF_CORE_READ(tcp, srtt_us) >> 3;
	read_sides(record, sock);
	end_record(record);
	return 0;
}
