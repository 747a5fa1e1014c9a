use crate::Sym;

crate::table! {
    /// Packets passed to and received from network interfaces, retransmissions and drops.
    NetPacketRow = "net_packet", Point by id {
        /// Id, in order of time.
        id: i64 [Id],
        /// Time of the event.
        ts: i64 [Time],
        /// receive, queue (passed to the interface), transmit (with the driver's result),
        /// retransmit, retransmit_synack (no acknowledgement received), drop.
        kind: Sym,
        /// Interface; for a retransmission the one with the sender's address, for a drop null.
        netif: Option<Sym>,
        /// Length; null if the source does not report it (retransmissions, drops).
        bytes: Option<i64> [Bytes],
        /// CPU.
        cpu: Option<i32>,
        /// Thread (recording-unique id); null if the source does not identify it.
        utid: Option<i32> [Id],
        /// Process of the thread (recording-unique id).
        upid: Option<i32> [Id],
        /// Kernel thread id.
        tid: Option<i32>,
        /// Kernel process id (thread group).
        pid: Option<i32>,
        /// Thread name at that time.
        comm: Option<Sym>,
        /// Address of the packet buffer (skb), for pairing the events of a packet.
        skbaddr: Option<i64>,
        /// Result of the driver, for transmit.
        ret: Option<i32>,
        /// Protocol, if the headers were recorded: tcp, udp, icmp, …; for a drop the protocol of
        /// the frame: ipv4, ipv6, arp, …
        protocol: Option<Sym>,
        /// Sender as `address:port`.
        source: Option<Sym>,
        /// Receiver as `address:port`.
        destination: Option<Sym>,
        /// TCP sequence number.
        tcp_seq: Option<i64>,
        /// Drop reason: the number in the traced kernel (`enum skb_drop_reason`, since Linux 5.17).
        drop_reason: Option<i32>,
    }
}
