//! Connections of TCP, and what it sent again or threw away.

use whyslow_model::Ns;

use super::super::columns::{Field, Row, Tool};
use super::{Emit, KIB, say};

impl Emit {
    pub(super) fn connection(
        &mut self,
        (tool, row): (Tool, &Row<'_>),
        who: &str,
        (begin, end): (Ns, Ns),
        out: &mut String,
    ) {
        self.made.sockets += 1;
        let sock = self.made.sockets;
        let local = side(row, Field::Local, Field::LocalPort).map(|side| format!(" local={side}"));
        let peer = side(row, Field::Remote, Field::RemotePort).map(|side| format!(" peer={side}"));
        let sides = format!("{}{}", local.unwrap_or_default(), peer.unwrap_or_default());
        // The numbers of sockets that kernels have are addresses.
        let tcp = |from: &str, to: &str| format!("tcp sock={sock} from={from} to={to}{sides}");
        if tool == Tool::TcpAccept {
            say(end, who, format_args!("{}", tcp("close", "syn_recv")), out);
            let accepted = tcp("syn_recv", "established");
            say(end, who, format_args!("{accepted}"), out);
            return;
        }
        if tool == Tool::TcpConnect {
            say(
                begin,
                who,
                format_args!("{}", tcp("close", "syn_sent")),
                out,
            );
            // tcpconnect tells that it was asked for, and not what became of it.
            if row.latency().is_some() {
                let connected = tcp("syn_sent", "established");
                say(end, who, format_args!("{connected}"), out);
            }
            return;
        }
        let bytes = |field| row.scaled(field, KIB).unwrap_or(0).max(0);
        let (sent, received) = (bytes(Field::SentKb), bytes(Field::ReceivedKb));
        say(
            begin,
            who,
            format_args!("{}", tcp("close", "established")),
            out,
        );
        let closed = tcp("established", "close");
        say(
            end,
            who,
            format_args!("{closed} acked={sent} received={received}"),
            out,
        );
    }
}

/// What TCP sent again or threw away. Who ran then has nothing to do with it.
pub(super) fn fault(tool: Tool, row: &Row<'_>, at: Ns, out: &mut String) -> Result<(), String> {
    let end = |field| {
        let (address, port) = row.text(field)?.rsplit_once(':')?;
        let address = address.trim_matches(['[', ']']).parse().ok()?;
        Some(std::net::SocketAddr::new(address, port.parse().ok()?))
    };
    let local = end(Field::Local).ok_or("no address and port of this side")?;
    let remote = end(Field::Remote).ok_or("no address and port of the other side")?;
    let kind = if tool == Tool::TcpDrop {
        "drop"
    } else {
        "retransmit"
    };
    let sides = format!("source={local} destination={remote}");
    say(
        at,
        "",
        format_args!("net_fault kind={kind} protocol=6 {sides}"),
        out,
    );
    Ok(())
}

/// `10.0.0.1:80`, `[::1]:80`; without a port where none is told.
fn side(row: &Row<'_>, address: Field, port: Field) -> Option<String> {
    let address: std::net::IpAddr = row.text(address)?.parse().ok()?;
    let port = row.int(port).and_then(|port| u16::try_from(port).ok());
    Some(match port {
        Some(port) => std::net::SocketAddr::new(address, port).to_string(),
        None => address.to_string(),
    })
}
