//! DNS lookups, TCP state changes, and packet addresses.

use whyslow_model::event::{Body, Endpoint, NetHeaders, TcpChange, TcpState};
use whyslow_model::lookup::{Function, Outcome};

use super::super::line;
use super::{Fields, Read, endpoint};

impl<'a> Fields<'a> {
    pub(super) fn lookup_begin(&self) -> Read<Body<'a>> {
        Ok(Body::LookupBegin {
            function: self.special_required("function", Function::by_name)?,
            host: self.optional("host")?,
            service: self.optional("service")?,
        })
    }

    pub(super) fn lookup(&self) -> Read<Body<'a>> {
        let function = self.special_required("function", Function::by_name)?;
        let address = self.special("address", endpoint)?;
        Ok(Body::LookupEnd {
            begun: self.special_required("since", line::time_of)?,
            function,
            host: self.optional("host")?,
            service: self.optional("service")?,
            outcome: Outcome::of(function, self.optional("code")?),
            address: address.map(|(address, _)| address),
        })
    }

    pub(super) fn tcp(&self) -> Read<TcpChange> {
        let state = |text: &str| TcpState::ALL.into_iter().find(|state| state.name() == text);
        let side = |key: &str| -> Read<Option<Endpoint>> {
            let side = self.special(key, endpoint)?;
            Ok(side.map(|(address, port)| Endpoint { address, port }))
        };
        Ok(TcpChange {
            sock: self.required("sock")?,
            from: self.special_required("from", state)?,
            to: self.special_required("to", state)?,
            local: side("local")?,
            peer: side("peer")?,
            acked: self.optional("acked")?,
            received: self.optional("received")?,
            retransmits: self.optional("retransmits")?,
            rtt_us: self.optional("rtt_us")?,
            error: self.optional("error")?.unwrap_or(0),
        })
    }

    pub(super) fn net_headers(&self) -> Read<Option<NetHeaders>> {
        let source = self.special("source", endpoint)?;
        let destination = self.special("destination", endpoint)?;
        Ok(match (self.optional("protocol")?, source, destination) {
            (Some(protocol), Some((source, source_port)), Some((destination, port))) => {
                Some(NetHeaders {
                    protocol,
                    source,
                    destination,
                    source_port,
                    destination_port: port,
                    tcp_seq: self.optional("tcp_seq")?,
                })
            }
            _ => None,
        })
    }
}
