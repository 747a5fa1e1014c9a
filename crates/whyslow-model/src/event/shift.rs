//! Timestamps in event payloads.

use super::{Body, CacheFill, FilledPages, LockWait, ProcessAbout, Stack, WallSample};
use crate::Ns;

impl Body<'_> {
    /// Returns the payload with all of its timestamps shifted by `by`.
    #[must_use]
    // tidy: long because it names all kinds of events
    pub fn shifted(self, by: Ns) -> Self {
        let later = |ts: Ns| ts.saturating_add(by);
        // No wildcard arm: a new kind of event has to be classified here.
        match self {
            Self::LookupEnd {
                begun,
                function,
                host,
                service,
                outcome,
                address,
            } => Self::LookupEnd {
                begun: later(begun),
                function,
                host,
                service,
                outcome,
                address,
            },
            Self::ProcessAbout(about) => Self::ProcessAbout(ProcessAbout {
                ts_created: about.ts_created.map(later),
                ..about
            }),
            Self::Stack(stack) => Self::Stack(Stack {
                since: later(stack.since),
                ..stack
            }),
            Self::Wall(look) => Self::Wall(WallSample {
                since: later(look.since),
                ..look
            }),
            Self::LockWait(wait) => Self::LockWait(LockWait {
                since: later(wait.since),
                ..wait
            }),
            Self::CacheFill(CacheFill::Pages(pages)) => {
                Self::CacheFill(CacheFill::Pages(FilledPages {
                    since: later(pages.since),
                    until: later(pages.until),
                    ..pages
                }))
            }
            Self::CacheFill(CacheFill::Place { .. })
            | Self::SchedSwitch { .. }
            | Self::SchedWakeup { .. }
            | Self::SchedMigrate { .. }
            | Self::Fork { .. }
            | Self::Exec { .. }
            | Self::Exit { .. }
            | Self::Free { .. }
            | Self::CommChange { .. }
            | Self::PrioChange { .. }
            | Self::SyscallEnter { .. }
            | Self::SyscallExit { .. }
            | Self::BlockBioQueue(_)
            | Self::BlockBioBackmerge(_)
            | Self::BlockBioFrontmerge(_)
            | Self::BlockBioComplete { .. }
            | Self::BlockBioRemap { .. }
            | Self::BlockSplit { .. }
            | Self::BlockGetRq(_)
            | Self::BlockRqInsert(_)
            | Self::BlockRqIssue(_)
            | Self::BlockRqMerge(_)
            | Self::BlockRqRequeue(_)
            | Self::BlockRqComplete { .. }
            | Self::IrqEnter { .. }
            | Self::IrqExit { .. }
            | Self::SoftirqRaise { .. }
            | Self::IpiRaise { .. }
            | Self::Net { .. }
            | Self::NetFault { .. }
            | Self::LookupBegin { .. }
            | Self::FunctionBegin(_)
            | Self::FunctionEnd { .. }
            | Self::Usdt(_)
            | Self::PageAlloc { .. }
            | Self::PageFree { .. }
            | Self::Memory { .. }
            | Self::ReclaimBegin { .. }
            | Self::ReclaimEnd { .. }
            | Self::Work(_)
            | Self::Signal(_)
            | Self::SignalDelivered(_)
            | Self::Tcp(_)
            | Self::WorkItem(_)
            | Self::StateProcess(_)
            | Self::StateFd { .. }
            | Self::StateDirectory { .. }
            | Self::StateBlockDevice { .. }
            | Self::StateDevice(_)
            | Self::StateDeviceLink { .. }
            | Self::StateMount(_)
            | Self::StateResolverFile(_)
            | Self::StateCounters(_)
            | Self::ReportedCounters(_)
            | Self::StateNetInterface { .. }
            | Self::StateIrq { .. }
            | Self::StateEnd
            | Self::Marker { .. }
            | Self::Other => self,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{FillCause, LockKind, StackKind};
    use crate::lookup::{Function, Outcome};
    use crate::spool::WallEnd;

    #[test]
    fn all_times_of_an_event_are_shifted() {
        let at = 1_000_000_007;
        let bodies = [
            Body::LookupEnd {
                begun: at,
                function: Function::Unknown,
                host: None,
                service: None,
                outcome: Outcome::Unknown,
                address: None,
            },
            Body::ProcessAbout(ProcessAbout {
                ts_created: Some(at),
                ..ProcessAbout::default()
            }),
            Body::Stack(Stack {
                kind: StackKind::Sample,
                since: at,
                cpu: None,
                frames: &[],
            }),
            Body::Wall(WallSample {
                since: at,
                state: None,
                credits: 1,
                syscall: None,
                cpu: None,
                end: WallEnd::Whole,
                frames: &[],
            }),
            Body::LockWait(LockWait {
                kind: LockKind::Mutex,
                is_write: None,
                slept: true,
                lock: 1,
                since: at,
                ret: 0,
                frames: &[],
            }),
            Body::CacheFill(CacheFill::Pages(FilledPages {
                since: at,
                until: at,
                dev: 1,
                inode: 2,
                pages: 1,
                bytes: 4096,
                cause: FillCause::Read,
                fd: None,
            })),
        ];
        for body in bodies {
            let before = format!("{body:?}");
            let after = format!("{:?}", body.shifted(500));
            assert_eq!(after, before.replace("1000000007", "1000000507"));
            assert_ne!(after, before);
        }
    }
}
