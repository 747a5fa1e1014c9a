//! Function calls (uprobes) and USDT probe hits as events: records contain the id of a probe, and
//! each spool defines each id once.

use rustc_hash::FxHashMap;
use whyslow_model::Ns;
use whyslow_model::event::{Body, Context, Event, FunctionCall, UsdtHit};
use whyslow_model::probe::{ArgType, FUNCTION_ARGS};
use whyslow_model::spool::{Head, ProbeRecord, Record, TAIL};

/// Maximum number of probes; a recorder has fewer.
const PROBES_MAX: usize = 1 << 16;

#[derive(Debug)]
struct Probe {
    provider: Box<[u8]>,
    name: Box<[u8]>,
    module: Box<[u8]>,
    returns: Option<ArgType>,
    args: Vec<Option<ArgType>>,
}

/// Probe definitions of the spool.
#[derive(Debug, Default)]
pub(crate) struct Probes(FxHashMap<u32, Probe>);

/// Buffer for argument values of an event.
pub(crate) type Values = Vec<Option<i64>>;

impl Probes {
    pub(crate) fn learn(&mut self, record: &ProbeRecord<'_>) {
        if self.0.len() < PROBES_MAX {
            let probe = Probe {
                provider: record.provider.into(),
                name: record.name.into(),
                module: record.module.into(),
                returns: record.returns(),
                args: record.args().collect(),
            };
            self.0.insert(record.probe, probe);
        }
    }

    /// The event of a probe record; none if the probe is undefined.
    pub(crate) fn event<'a>(
        &'a self,
        head: &Head,
        record: &Record<'a>,
        ts: Ns,
        values: &'a mut Values,
    ) -> Option<Event<'a>> {
        let body = match record {
            Record::Function(call) => {
                let probe = self.0.get(&call.probe)?;
                let types = probe.args.iter().take(FUNCTION_ARGS);
                let typed = types.zip(call.args);
                // Types of later recorders are read as raw bits.
                values.extend(typed.map(|(of, bits)| {
                    let of = of.unwrap_or(ArgType::I64);
                    Some(of.value(bits))
                }));
                Body::FunctionBegin(FunctionCall {
                    probe: call.probe,
                    function: &probe.name,
                    module: &probe.module,
                    sp: call.sp,
                    is_tail: head.flags & TAIL != 0,
                    args: values,
                    texts: call.texts,
                })
            }
            Record::FunctionEnd(end) => Body::FunctionEnd {
                probe: end.probe,
                sp: end.sp,
                ret: self.0.get(&end.probe)?.returns.map(|of| of.value(end.ret)),
            },
            Record::Usdt(hit) => {
                let probe = self.0.get(&hit.probe)?;
                let typed = probe.args.iter().zip(hit.args);
                values.extend(typed.map(|(of, bits)| of.map(|of| of.value(bits))));
                Body::Usdt(UsdtHit {
                    provider: &probe.provider,
                    name: &probe.name,
                    module: &probe.module,
                    args: values,
                    texts: hit.texts,
                })
            }
            _ => return None,
        };
        Some(Event {
            ts,
            cpu: Some(i32::from(head.cpu)),
            context: Context {
                tid: Some(head.tid),
                pid: Some(head.pid),
                ..Context::default()
            },
            body,
        })
    }
}
