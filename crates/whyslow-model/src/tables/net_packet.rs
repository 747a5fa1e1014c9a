use crate::Sym;

crate::table! {
    /// Packets handed to and taken from network interfaces, sent again and thrown away.
    NetPacketRow = "net_packet", Point by id {
        /// Id, in order of time.
        id: i64 [Id],
        /// When.
        ts: i64 [Time],
        /// receive, queue (handed to the interface), transmit (result of the driver), retransmit, retransmit_synack (TCP had no acknowledgement), drop.
        kind: Sym,
        /// Interface; of what is sent again the one with the sender's address, of what is dropped null.
        netif: Option<Sym>,
        /// Length; null where the source does not tell: sent again, dropped.
        bytes: Option<i64> [Bytes],
        /// CPU.
        cpu: Option<i32>,
        /// Thread (recording-unique id); null where the source cannot tell.
        utid: Option<i32> [Id],
        /// Its process (recording-unique id).
        upid: Option<i32> [Id],
        /// Kernel thread id.
        tid: Option<i32>,
        /// Kernel process id (thread group).
        pid: Option<i32>,
        /// Name of the thread at that time.
        comm: Option<Sym>,
        /// Address of the packet buffer, to pair events of one packet.
        skbaddr: Option<i64>,
        /// Result of the driver for transmit.
        ret: Option<i32>,
        /// Protocol where the headers were recorded: tcp, udp, icmp, …; of what is dropped that of the frame: ipv4, ipv6, arp, …
        protocol: Option<Sym>,
        /// Sender `address:port`.
        source: Option<Sym>,
        /// Receiver `address:port`.
        destination: Option<Sym>,
        /// TCP sequence number.
        tcp_seq: Option<i64>,
        /// Why it was dropped: the number of the traced kernel (`enum skb_drop_reason`, since Linux 5.17).
        drop_reason: Option<i32>,
    }
}
