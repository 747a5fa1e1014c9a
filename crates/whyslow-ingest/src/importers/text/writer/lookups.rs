//! DNS lookups.

use whyslow_model::event::Body;

use super::super::values::{Endpoint, Time};
use super::LineWriter;

impl LineWriter<'_> {
    pub(super) fn lookup(&mut self, body: &Body<'_>) {
        match *body {
            Body::LookupBegin {
                function,
                host,
                service,
            } => {
                self.name("lookup_begin");
                self.field("function", function.name());
                self.some_bytes("host", host);
                self.some_bytes("service", service);
            }
            Body::LookupEnd {
                begun,
                function,
                host,
                service,
                outcome,
                address,
            } => {
                self.name("lookup");
                self.field("since", Time(begun));
                self.field("function", function.name());
                self.some_bytes("host", host);
                self.some_bytes("service", service);
                self.some("code", outcome.number());
                self.some("address", address.map(|address| Endpoint(address, None)));
            }
            _ => {}
        }
    }
}
