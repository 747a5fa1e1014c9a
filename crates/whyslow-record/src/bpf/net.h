/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/* Packets at interfaces, TCP retransmits, dropped packets. */

#define ETH_IPV4 0x0800
#define ETH_IPV6 0x86DD
#define IP_TCP 6
#define IP_UDP 17
#define AF_INET 2
#define AF_INET6 10

static __always_inline __u16 from_wire(__u16 number)
{
	return __builtin_bswap16(number);
}

static __always_inline struct wire_net *begin_net(__u32 what, struct sk_buff *skb)
{
	struct wire_net *record = BEGIN(struct wire_net, WIRE_NET);

	if (!record)
		return 0;
	__builtin_memset((char *)record + sizeof(record->head), 0,
			 sizeof(*record) - sizeof(record->head));
	record->head.flags = context_here();
	record->skb = (__u64)skb;
	record->what = what;
	return record;
}

struct ipv4_head {
	__u8 version_words;
	__u8 skipped[8];
	__u8 protocol;
	__u16 sum;
	__u8 source[4];
	__u8 destination[4];
};

struct ipv6_head {
	__u8 skipped[6];
	__u8 next;
	__u8 hops;
	__u8 source[16];
	__u8 destination[16];
};

/* Reads the headers of a packet, the first of which is at `at`. */
static __always_inline void read_heads(struct wire_net *record, struct sk_buff *skb,
				       const unsigned char *at)
{
	__u16 ports[2] = {};
	__u32 seq = 0;

	record->ethertype = from_wire(skb->protocol);
	if (record->ethertype == ETH_IPV4) {
		struct ipv4_head ip = {};

		if (bpf_probe_read_kernel(&ip, sizeof(ip), at) || ip.version_words >> 4 != 4)
			return;
		record->family = 4;
		record->protocol = ip.protocol;
		__builtin_memcpy(record->source, ip.source, 4);
		__builtin_memcpy(record->destination, ip.destination, 4);
		at += (ip.version_words & 15) * 4;
	} else if (record->ethertype == ETH_IPV6) {
		struct ipv6_head ip = {};

		if (bpf_probe_read_kernel(&ip, sizeof(ip), at))
			return;
		record->family = 6;
		record->protocol = ip.next;
		__builtin_memcpy(record->source, ip.source, 16);
		__builtin_memcpy(record->destination, ip.destination, 16);
		at += sizeof(ip);
	}
	if (record->protocol != IP_TCP && record->protocol != IP_UDP)
		return;
	bpf_probe_read_kernel(ports, sizeof(ports), at);
	record->source_port = from_wire(ports[0]);
	record->destination_port = from_wire(ports[1]);
	if (record->protocol == IP_TCP && !bpf_probe_read_kernel(&seq, sizeof(seq), at + 4))
		record->seq = __builtin_bswap32(seq);
}

static __always_inline int put_packet(__u32 what, struct sk_buff *skb, __s32 ret)
{
	struct wire_net *record = begin_net(what, skb);
	struct net_device *device;

	if (!record)
		return 0;
	device = skb->dev;
	if (device)
		bpf_probe_read_kernel_str(record->netif, sizeof(record->netif), device->name);
	record->bytes = skb->len;
	record->ret = ret;
	/*
	 * A received packet starts with its network header; a sent one has a link-layer header
	 * before it.
	 */
	if (what == NET_RECEIVE)
		read_heads(record, skb, skb->data);
	else
		read_heads(record, skb, skb->head + skb->network_header);
	end_record(record);
	return 0;
}

SEC("tp_btf/netif_receive_skb")
int BPF_PROG(on_receive, struct sk_buff *skb)
{
	return put_packet(NET_RECEIVE, skb, 0);
}

SEC("tp_btf/net_dev_queue")
int BPF_PROG(on_queue, struct sk_buff *skb)
{
	return put_packet(NET_QUEUE, skb, 0);
}

/* The driver may have freed the packet: only its address is used. */
SEC("tp_btf/net_dev_xmit")
int BPF_PROG(on_transmit, struct sk_buff *skb, int ret, struct net_device *device,
	     unsigned int bytes)
{
	struct wire_net *record = begin_net(NET_TRANSMIT, skb);

	if (!record)
		return 0;
	bpf_probe_read_kernel_str(record->netif, sizeof(record->netif), device->name);
	record->bytes = bytes;
	record->ret = ret;
	end_record(record);
	return 0;
}

static __always_inline void read_ends(struct wire_net *record, struct sock_common *ends)
{
	__u16 family = ends->skc_family;

	record->protocol = IP_TCP;
	record->source_port = ends->skc_num;
	record->destination_port = from_wire(ends->skc_dport);
	if (family == AF_INET) {
		__u32 source = ends->skc_rcv_saddr, destination = ends->skc_daddr;

		record->family = 4;
		__builtin_memcpy(record->source, &source, 4);
		__builtin_memcpy(record->destination, &destination, 4);
	} else if (family == AF_INET6) {
		record->family = 6;
		bpf_probe_read_kernel(record->source, 16, &ends->skc_v6_rcv_saddr);
		bpf_probe_read_kernel(record->destination, 16, &ends->skc_v6_daddr);
	}
}

SEC("tp_btf/tcp_retransmit_skb")
int BPF_PROG(on_retransmit, struct sock *sock, struct sk_buff *skb)
{
	struct wire_net *record = begin_net(NET_RETRANSMIT, skb);

	if (!record)
		return 0;
	read_ends(record, &sock->__sk_common);
	/* TCP keeps the sequence number at the start of its control block. */
	bpf_probe_read_kernel(&record->seq, sizeof(record->seq), skb->cb);
	record->bytes = skb->len;
	end_record(record);
	return 0;
}

SEC("tp_btf/tcp_retransmit_synack")
int BPF_PROG(on_retransmit_synack, struct sock *sock, struct request_sock *request)
{
	struct wire_net *record = begin_net(NET_RETRANSMIT_SYNACK, 0);

	if (!record)
		return 0;
	read_ends(record, &request->__req_common);
	end_record(record);
	return 0;
}

SEC("tp_btf/kfree_skb")
int BPF_PROG(on_drop, struct sk_buff *skb, void *where, int reason)
{
	struct wire_net *record = begin_net(NET_DROP, skb);

	if (!record)
		return 0;
	record->ret = reason;
	record->bytes = skb->len;
	read_heads(record, skb, skb->head + skb->network_header);
	end_record(record);
	return 0;
}
