//! TCP connections, retransmits and drops.

use whyslow_model::Ns;

use super::super::columns::{Field, Row, Tool};
use super::{Emit, KIB, write_event};

impl Emit {
    pub(super) fn connection(
        &mut self,
        (tool, row): (Tool, &Row<'_>),
        context: &str,
        (begin, end): (Ns, Ns),
        out: &mut String,
    ) {
        self.made.sockets += 1;
        let sock = self.made.sockets;
        let local = side(row, Field::Local, Field::LocalPort).map(|side| format!(" local={side}"));
        let peer = side(row, Field::Remote, Field::RemotePort).map(|side| format!(" peer={side}"));
        let sides = format!("{}{}", local.unwrap_or_default(), peer.unwrap_or_default());
        // Socket ids of kernels are addresses.
        let tcp = |from: &str, to: &str| format!("tcp sock={sock} from={from} to={to}{sides}");
        if tool == Tool::TcpAccept {
            write_event(
                end,
                context,
                format_args!("{}", tcp("close", "syn_recv")),
                out,
            );
            let accepted = tcp("syn_recv", "established");
            write_event(end, context, format_args!("{accepted}"), out);
            return;
        }
        if tool == Tool::TcpConnect {
            write_event(
                begin,
                context,
                format_args!("{}", tcp("close", "syn_sent")),
                out,
            );
            // tcpconnect reports the attempt, not its result.
            if row.latency().is_some() {
                let connected = tcp("syn_sent", "established");
                write_event(end, context, format_args!("{connected}"), out);
            }
            return;
        }
        let bytes = |field| row.scaled(field, KIB).unwrap_or(0).max(0);
        let (sent, received) = (bytes(Field::SentKb), bytes(Field::ReceivedKb));
        write_event(
            begin,
            context,
            format_args!("{}", tcp("close", "established")),
            out,
        );
        let closed = tcp("established", "close");
        write_event(
            end,
            context,
            format_args!("{closed} acked={sent} received={received}"),
            out,
        );
    }
}

/// Retransmits and drops. The thread running at that time is unrelated.
pub(super) fn fault(tool: Tool, row: &Row<'_>, at: Ns, out: &mut String) -> Result<(), String> {
    let end = |field| {
        let (address, port) = row.text(field)?.rsplit_once(':')?;
        let address = address.trim_matches(['[', ']']).parse().ok()?;
        Some(std::net::SocketAddr::new(address, port.parse().ok()?))
    };
    let local = end(Field::Local).ok_or("missing local address and port")?;
    let remote = end(Field::Remote).ok_or("missing remote address and port")?;
    let kind = if tool == Tool::TcpDrop {
        "drop"
    } else {
        "retransmit"
    };
    let sides = format!("source={local} destination={remote}");
    write_event(
        at,
        "",
        format_args!("net_fault kind={kind} protocol=6 {sides}"),
        out,
    );
    Ok(())
}

/// `10.0.0.1:80`, `[::1]:80`; without the port if it is not printed.
fn side(row: &Row<'_>, address: Field, port: Field) -> Option<String> {
    let address: std::net::IpAddr = row.text(address)?.parse().ok()?;
    let port = row.int(port).and_then(|port| u16::try_from(port).ok());
    Some(match port {
        Some(port) => std::net::SocketAddr::new(address, port).to_string(),
        None => address.to_string(),
    })
}
