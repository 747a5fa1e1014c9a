//! User-defined probes in programs: functions (uprobes) and static probes (USDT), and the types of
//! their arguments.

/// Recorded arguments of a function: those in registers.
pub const FUNCTION_ARGS: usize = 6;
/// Recorded arguments of a USDT probe.
pub const USDT_ARGS: usize = 12;
/// Recorded texts that arguments point to, per call.
pub const TEXTS: usize = 2;

/// How the 64 bits of an argument are interpreted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum ArgType {
    /// Signed, lowest 8 bits.
    I8 = 1,
    /// Unsigned, lowest 8 bits.
    U8 = 2,
    /// Signed, lowest 16 bits.
    I16 = 3,
    /// Unsigned, lowest 16 bits.
    U16 = 4,
    /// Signed, lowest 32 bits.
    I32 = 5,
    /// Unsigned, lowest 32 bits.
    U32 = 6,
    /// Signed, all bits.
    I64 = 7,
    /// Unsigned, all bits; shown as signed above `i64::MAX`.
    U64 = 8,
    /// An address.
    Pointer = 9,
    /// A pointer to text, which is recorded, too.
    Text = 10,
}

impl ArgType {
    /// Type names of C and of other tracers; the first name of each type is displayed.
    pub const NAMES: [(&str, Self); 17] = [
        ("int", Self::I32),
        ("uint", Self::U32),
        ("long", Self::I64),
        ("ulong", Self::U64),
        ("ptr", Self::Pointer),
        ("str", Self::Text),
        ("short", Self::I16),
        ("ushort", Self::U16),
        ("char", Self::I8),
        ("uchar", Self::U8),
        ("bool", Self::U8),
        ("size", Self::U64),
        ("s32", Self::I32),
        ("u32", Self::U32),
        ("s64", Self::I64),
        ("u64", Self::U64),
        ("u8", Self::U8),
    ];

    /// Returns the type with one of the [`ArgType::NAMES`].
    pub fn by_name(name: &str) -> Option<Self> {
        let mut names = Self::NAMES.iter();
        let (_, found) = names.find(|(known, _)| *known == name)?;
        Some(*found)
    }

    /// Returns the type with this number in a spool; `None` for a type of a later version.
    pub fn by_number(number: u8) -> Option<Self> {
        let mut types = Self::NAMES.iter().map(|(_, of_name)| *of_name);
        types.find(|of_name| *of_name as u8 == number)
    }

    /// Returns the type of this size and signedness, as declared in the notes of USDT probes.
    pub fn of_size(bytes: u8, is_signed: bool) -> Option<Self> {
        Some(match (bytes, is_signed) {
            (1, true) => Self::I8,
            (1, false) => Self::U8,
            (2, true) => Self::I16,
            (2, false) => Self::U16,
            (4, true) => Self::I32,
            (4, false) => Self::U32,
            (8, true) => Self::I64,
            (8, false) => Self::U64,
            _ => return None,
        })
    }

    /// Returns the value; for unsigned types that use all 64 bits, the bit pattern.
    pub fn value(self, bits: u64) -> i64 {
        match self {
            Self::I8 => i64::from(bits as i8),
            Self::U8 => i64::from(bits as u8),
            Self::I16 => i64::from(bits as i16),
            Self::U16 => i64::from(bits as u16),
            Self::I32 => i64::from(bits as i32),
            Self::U32 => i64::from(bits as u32),
            Self::I64 | Self::U64 | Self::Pointer | Self::Text => bits as i64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_register_holds_what_its_type_says() {
        let check = |name: &str, bits: u64, value: i64| {
            let found = ArgType::by_name(name).expect(name);
            assert_eq!(found.value(bits), value, "{name} {bits:#x}");
            assert_eq!(ArgType::by_number(found as u8), Some(found));
        };
        check("int", 0xdead_beef_ffff_ffff, -1);
        check("uint", 0xdead_beef_ffff_ffff, 0xffff_ffff);
        check("long", u64::MAX, -1);
        check("char", 0x180, -128);
        check("bool", 0x101, 1);
        check("short", 0x1_8000, -0x8000);
        check("ushort", 0x1_8000, 0x8000);
        check("ptr", 0x7fff_0000_1000, 0x7fff_0000_1000);
        assert_eq!(ArgType::by_name("float"), None);
        assert_eq!(ArgType::by_number(0), None);
        assert_eq!(ArgType::of_size(4, true), Some(ArgType::I32));
        assert_eq!(ArgType::of_size(3, true), None);
    }
}
