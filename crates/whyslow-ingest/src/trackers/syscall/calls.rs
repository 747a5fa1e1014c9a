//! System call names, each looked up once in the table of calls, then by number.

use rustc_hash::FxHashMap;
use whyslow_model::syscall::{self, Call, Role};
use whyslow_model::{Sym, Symbols};

use super::super::object::FdClass;
use super::effect::{Effect, implied_class};

#[derive(Debug)]
pub(super) struct Meaning {
    pub(super) name: Sym,
    pub(super) call: &'static Call,
    pub(super) effect: Effect,
    /// Whether one of its arguments is a path.
    pub(super) takes_path: bool,
    /// Class of the descriptor, as implied by success.
    pub(super) implied_class: Option<FdClass>,
}

/// Grows to the number of calls that a source declares.
#[derive(Debug, Default)]
pub(super) struct Calls {
    by_name: FxHashMap<Box<str>, u32>,
    meanings: Vec<Meaning>,
}

impl Calls {
    pub(super) fn find(&mut self, name: &str, symbols: &mut Symbols) -> u32 {
        if let Some(&index) = self.by_name.get(name) {
            return index;
        }
        let call = syscall::call(name);
        let plain = if call.name.is_empty() {
            name
        } else {
            call.name
        };
        self.meanings.push(Meaning {
            name: symbols.intern(syscall::canonical_name(name)),
            call,
            effect: Effect::of(plain),
            takes_path: call.args.iter().any(|arg| arg.role == Some(Role::Path)),
            implied_class: implied_class(plain),
        });
        let index = (self.meanings.len() - 1) as u32;
        self.by_name.insert(name.into(), index);
        index
    }

    pub(super) fn get(&self, index: u32) -> &Meaning {
        &self.meanings[index as usize]
    }
}
