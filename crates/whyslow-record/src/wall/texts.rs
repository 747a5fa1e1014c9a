//! Frames that are no addresses: functions of languages with a runtime, and those of the kernel where
//! it tells their names alone. Each has a number above all addresses of programs, and below those of
//! the kernel.

use std::collections::HashMap;

use whyslow_model::spool::{CodeKind, Encoder, Kind, NO_ADDRESS};

use super::managed::ManagedFrame;

/// More have none.
const TEXTS_MAX: usize = 1 << 18;

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Text {
    kind: CodeKind,
    function: Vec<u8>,
    file: Vec<u8>,
    line: Option<i32>,
}

#[derive(Debug, Default)]
pub(super) struct Texts {
    numbers: HashMap<Text, u64>,
    all: Vec<Text>,
    /// Those that the spool was told.
    told: Vec<bool>,
    over: u64,
}

impl Texts {
    pub(super) fn managed(&mut self, frame: ManagedFrame) -> Option<u64> {
        self.number(Text {
            kind: CodeKind::Managed,
            function: frame.function,
            file: frame.file,
            line: frame.line,
        })
    }

    pub(super) fn kernel(&mut self, function: &[u8]) -> Option<u64> {
        self.number(Text {
            kind: CodeKind::Kernel,
            function: function.to_vec(),
            file: Vec::new(),
            line: None,
        })
    }

    fn number(&mut self, text: Text) -> Option<u64> {
        if let Some(number) = self.numbers.get(&text) {
            return Some(*number);
        }
        if self.all.len() >= TEXTS_MAX {
            self.over += 1;
            return None;
        }
        let number = NO_ADDRESS + self.all.len() as u64;
        self.numbers.insert(text.clone(), number);
        self.all.push(text);
        self.told.push(false);
        Some(number)
    }

    /// Another spool begins, which knows none.
    pub(super) fn begin_spool(&mut self) {
        self.told.fill(false);
    }

    /// Tells what the number is, if that was not told.
    pub(super) fn tell(&mut self, number: u64, encoder: &mut Encoder) {
        let Some(place) = number.checked_sub(NO_ADDRESS) else {
            return;
        };
        let place = place as usize;
        let (Some(text), Some(told)) = (self.all.get(place), self.told.get_mut(place)) else {
            return;
        };
        if std::mem::replace(told, true) {
            return;
        }
        encoder
            .begin(Kind::Code, 0, (0, 0))
            .u64(number)
            .u32(text.kind as u32)
            .u32(text.line.unwrap_or(-1) as u32)
            .text(&text.function)
            .text(&text.file)
            .end();
    }
}
