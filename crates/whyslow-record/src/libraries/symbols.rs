//! All functions of a program.

use std::io;

use super::elf::{
    DYNSYM, NAMES_MAX, Program, SYMBOL, SYMBOLS_MAX, SYMTAB, Section, read_up_to, u16_at, u32_at,
    u64_at,
};

const STRTAB: u32 = 3;
/// Maximum length of a function name.
const NAME_MAX: usize = 4096;

/// A function symbol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Symbol<'n> {
    pub(super) name: &'n str,
    /// File offset of its code.
    pub(super) offset: u64,
    /// An indirect function (IFUNC): its code selects the implementation at program start, and is
    /// not called later.
    pub(super) is_choice: bool,
}

impl Program<'_> {
    /// Calls `each` with every function defined here; some more than once.
    pub(super) fn each_function(&self, each: &mut dyn FnMut(Symbol<'_>)) -> io::Result<()> {
        let tables = self.sections.iter();
        let tables = tables.filter(|table| table.kind == DYNSYM || table.kind == SYMTAB);
        for table in tables {
            let texts = self.sections.get(table.link as usize);
            let Some(texts) = texts.filter(|texts| texts.kind == STRTAB) else {
                continue;
            };
            let texts = self.bytes(texts, NAMES_MAX)?;
            let symbols = self.bytes(table, SYMBOLS_MAX)?;
            for symbol in symbols.chunks_exact(SYMBOL) {
                if let Some(symbol) = self.symbol(symbol, &texts) {
                    each(symbol);
                }
            }
        }
        Ok(())
    }

    fn symbol<'n>(&self, symbol: &[u8], texts: &'n [u8]) -> Option<Symbol<'n>> {
        const FUNCTION: u8 = 2;
        const CHOICE: u8 = 10;
        let kind = symbol[4] & 0xf;
        let is_defined = u16_at(symbol, 6) != 0;
        if !is_defined || kind != FUNCTION && kind != CHOICE {
            return None;
        }
        let address = u64_at(symbol, 8);
        let mut segments = self.segments.iter();
        let offset = segments.find_map(|segment| segment.offset_of(address))?;
        let name = texts.get(u32_at(symbol, 0) as usize..)?;
        let name = &name[..name.len().min(NAME_MAX)];
        let end = name.iter().position(|byte| *byte == 0)?;
        let name = std::str::from_utf8(&name[..end]).ok()?;
        // `memcpy@@GLIBC_2.14`
        let name = name.split('@').next().filter(|name| !name.is_empty())?;
        Some(Symbol {
            name,
            offset,
            is_choice: kind == CHOICE,
        })
    }

    /// The existing bytes of a section.
    pub(super) fn bytes(&self, section: &Section, most: u64) -> io::Result<Vec<u8>> {
        // A corrupt size must not make us allocate more than the file has.
        let there = self.file.metadata()?.len().saturating_sub(section.offset);
        let mut bytes = vec![0; section.size.min(most).min(there) as usize];
        let count = read_up_to(self.file, section.offset, &mut bytes)?;
        bytes.truncate(count);
        Ok(bytes)
    }
}
