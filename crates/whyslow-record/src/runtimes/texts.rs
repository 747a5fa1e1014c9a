//! Function names, each stored once per process.

use std::collections::HashMap;
use std::sync::Arc;

/// A function of a program.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Function {
    pub(crate) name: String,
    pub(crate) file: String,
}

/// Functions beyond this number share one name: programs that generate code endlessly are not named
/// completely.
const FUNCTIONS_MAX: usize = 1 << 16;
/// Longer strings are truncated.
pub(super) const TEXT_MAX: usize = 512;

/// Overhead per function.
const EACH_BYTES: usize = 128;

#[derive(Debug, Default)]
pub(crate) struct Names {
    known: HashMap<Arc<Function>, u32>,
    functions: Vec<Arc<Function>>,
    /// Memory of the names.
    pub(super) bytes: usize,
}

impl Names {
    pub(super) fn intern(&mut self, name: String, file: String) -> u32 {
        let function = if self.functions.len() < FUNCTIONS_MAX {
            Function { name, file }
        } else {
            let (name, file) = ("(more)".to_owned(), String::new());
            Function { name, file }
        };
        if let Some(known) = self.known.get(&function) {
            return *known;
        }
        let number = self.functions.len() as u32;
        self.bytes += function.name.len() + function.file.len() + EACH_BYTES;
        let function = Arc::new(function);
        self.functions.push(Arc::clone(&function));
        self.known.insert(function, number);
        number
    }

    pub(crate) fn get(&self, number: u32) -> Option<&Function> {
        self.functions.get(number as usize).map(Arc::as_ref)
    }
}
