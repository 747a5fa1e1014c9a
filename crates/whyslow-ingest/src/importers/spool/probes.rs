//! Calls of functions, and passes of static probes, as events: probes are told by number, and by name once in each spool.

use rustc_hash::FxHashMap;
use whyslow_model::Ns;
use whyslow_model::event::{Body, Context, Event, FunctionCall, UsdtHit};
use whyslow_model::probe::{ArgType, FUNCTION_ARGS};
use whyslow_model::spool::{Head, ProbeRecord, Record, TAIL};

/// Probes that are known; a recorder has fewer.
const PROBES_MAX: usize = 1 << 16;

#[derive(Debug)]
struct Probe {
    provider: Box<[u8]>,
    name: Box<[u8]>,
    module: Box<[u8]>,
    returns: Option<ArgType>,
    args: Vec<Option<ArgType>>,
}

/// What the spool tells of its probes.
#[derive(Debug, Default)]
pub(crate) struct Probes(FxHashMap<u32, Probe>);

/// Values of arguments, while there is an event of them.
pub(crate) type Values = Vec<Option<i64>>;

impl Probes {
    pub(crate) fn learn(&mut self, told: &ProbeRecord<'_>) {
        if self.0.len() < PROBES_MAX {
            let probe = Probe {
                provider: told.provider.into(),
                name: told.name.into(),
                module: told.module.into(),
                returns: told.returns(),
                args: told.args().collect(),
            };
            self.0.insert(told.probe, probe);
        }
    }

    /// The event of a record that is about a probe; none if nothing told of that one.
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
                let known = types.zip(call.args);
                // Of a type of a later recorder the bits.
                values.extend(known.map(|(of, bits)| {
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
                let known = probe.args.iter().zip(hit.args);
                values.extend(known.map(|(of, bits)| of.map(|of| of.value(bits))));
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
