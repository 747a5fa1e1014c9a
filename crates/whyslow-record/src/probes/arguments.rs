//! Arguments of static probes (USDT): `-4@%eax 8@-16(%rbp) 4@$5`, as in their ELF notes.
//!
//! Each argument is a size in bytes, negative if it is signed, and an operand in the syntax of the
//! machine's assembler. Operands that are not integers or cannot be located by registers alone are
//! left out.

use whyslow_model::probe::{ArgType, USDT_ARGS};

/// Bytes of an argument in the BPF map (`usdt.h`).
const WIRE_BYTES: usize = 16;

/// Location of an argument. Registers are offsets into the saved registers of the thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operand {
    Constant(i64),
    Register(u16),
    /// In memory, `distance` bytes from the address in a register.
    Memory {
        base: u16,
        distance: i64,
    },
    /// The same, plus another register times a power of two.
    Indexed {
        base: u16,
        index: u16,
        shift: u8,
        distance: i64,
    },
}

/// `None` if it cannot be read.
pub(crate) type Argument = Option<(Operand, ArgType)>;

/// The arguments of an ELF note.
pub(crate) fn parse(text: &str) -> Vec<Argument> {
    words(text)
        .into_iter()
        .take(USDT_ARGS)
        .map(argument)
        .collect()
}

/// In the layout that the BPF programs read.
pub(crate) fn wire(argument: Argument) -> [u8; WIRE_BYTES] {
    let (how, base, index, shift, distance) = match argument.map(|(operand, _)| operand) {
        None => (0, 0, 0, 0, 0),
        Some(Operand::Constant(value)) => (1, 0, 0, 0, value),
        Some(Operand::Register(base)) => (2, base, 0, 0, 0),
        Some(Operand::Memory { base, distance }) => (3, base, 0, 0, distance),
        Some(Operand::Indexed {
            base,
            index,
            shift,
            distance,
        }) => (4, base, index, shift, distance),
    };
    let size = argument.map_or(0, |(_, of)| size_of_type(of));
    let mut bytes = [0; WIRE_BYTES];
    bytes[..8].copy_from_slice(&distance.to_ne_bytes());
    bytes[8..10].copy_from_slice(&u16::to_ne_bytes(base));
    bytes[10..12].copy_from_slice(&u16::to_ne_bytes(index));
    bytes[12..15].copy_from_slice(&[how, shift, size]);
    bytes
}

fn size_of_type(of: ArgType) -> u8 {
    match of {
        ArgType::I8 | ArgType::U8 => 1,
        ArgType::I16 | ArgType::U16 => 2,
        ArgType::I32 | ArgType::U32 => 4,
        _ => 8,
    }
}

/// Splits at spaces, except within brackets.
fn words(text: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let (mut begin, mut depth) = (0, 0usize);
    for (place, letter) in text.char_indices() {
        match letter {
            '[' | '(' => depth += 1,
            ']' | ')' => depth = depth.saturating_sub(1),
            ' ' if depth == 0 => {
                words.push(&text[begin..place]);
                begin = place + 1;
            }
            _ => {}
        }
    }
    words.push(&text[begin..]);
    words.retain(|word| !word.is_empty());
    words
}

fn argument(word: &str) -> Argument {
    let (size, operand) = word.split_once('@')?;
    let (size, is_signed) = match size.strip_prefix('-') {
        Some(size) => (size, true),
        None => (size, false),
    };
    let of = ArgType::of_size(size.parse().ok()?, is_signed)?;
    Some((machine::operand(operand)?, of))
}

fn number(text: &str) -> Option<i64> {
    let (text, sign) = match text.strip_prefix('-') {
        Some(text) => (text, -1),
        None => (text.strip_prefix('+').unwrap_or(text), 1),
    };
    let value = match text.strip_prefix("0x") {
        Some(digits) => i64::from_str_radix(digits, 16).ok()?,
        None => text.parse().ok()?,
    };
    Some(value * sign)
}

#[cfg(target_arch = "x86_64")]
mod machine {
    use super::{Operand, number};

    pub(super) fn operand(text: &str) -> Option<Operand> {
        if let Some(value) = text.strip_prefix('$') {
            return number(value).map(Operand::Constant);
        }
        let Some((distance, place)) = text.split_once('(') else {
            return register(text).map(Operand::Register);
        };
        let distance = if distance.is_empty() {
            0
        } else {
            number(distance)?
        };
        let parts: Vec<&str> = place.strip_suffix(')')?.split(',').collect();
        let base = register(parts[0].trim())?;
        if let [_] = parts.as_slice() {
            return Some(Operand::Memory { base, distance });
        }
        let shift = match parts.get(2).map(|scale| scale.trim()) {
            None | Some("1") => 0,
            Some("2") => 1,
            Some("4") => 2,
            Some("8") => 3,
            Some(_) => return None,
        };
        Some(Operand::Indexed {
            base,
            index: register(parts[1].trim())?,
            shift,
            distance,
        })
    }

    /// Names of each register by size, in the order of `struct pt_regs`.
    const REGISTERS: [&[&str]; 15] = [
        &["r15", "r15d", "r15w", "r15b"],
        &["r14", "r14d", "r14w", "r14b"],
        &["r13", "r13d", "r13w", "r13b"],
        &["r12", "r12d", "r12w", "r12b"],
        &["rbp", "ebp", "bp", "bpl"],
        &["rbx", "ebx", "bx", "bl"],
        &["r11", "r11d", "r11w", "r11b"],
        &["r10", "r10d", "r10w", "r10b"],
        &["r9", "r9d", "r9w", "r9b"],
        &["r8", "r8d", "r8w", "r8b"],
        &["rax", "eax", "ax", "al"],
        &["rcx", "ecx", "cx", "cl"],
        &["rdx", "edx", "dx", "dl"],
        &["rsi", "esi", "si", "sil"],
        &["rdi", "edi", "di", "dil"],
    ];
    /// After the system call number, the instruction pointer, its segment and flags.
    const STACK_POINTER: u16 = 19 * 8;

    fn register(text: &str) -> Option<u16> {
        let name = text.strip_prefix('%')?;
        if matches!(name, "rsp" | "esp" | "sp" | "spl") {
            return Some(STACK_POINTER);
        }
        let place = REGISTERS.iter().position(|names| names.contains(&name))?;
        Some(place as u16 * 8)
    }
}

#[cfg(target_arch = "aarch64")]
mod machine {
    use super::{Operand, number};

    pub(super) fn operand(text: &str) -> Option<Operand> {
        let Some(place) = text.strip_prefix('[') else {
            let constant = || number(text).map(Operand::Constant);
            return register(text).map(Operand::Register).or_else(constant);
        };
        let parts: Vec<&str> = place.strip_suffix(']')?.split(',').map(str::trim).collect();
        let base = register(parts[0])?;
        match parts.as_slice() {
            [_] => Some(Operand::Memory { base, distance: 0 }),
            [_, second] => match register(second) {
                Some(index) => Some(Operand::Indexed {
                    base,
                    index,
                    shift: 0,
                    distance: 0,
                }),
                None => number(second).map(|distance| Operand::Memory { base, distance }),
            },
            _ => None,
        }
    }

    fn register(text: &str) -> Option<u16> {
        const STACK_POINTER: u16 = 31;
        if text == "sp" {
            return Some(STACK_POINTER * 8);
        }
        let place: u16 = text.strip_prefix(['x', 'w'])?.parse().ok()?;
        (place < STACK_POINTER).then_some(place * 8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn arguments_are_where_the_note_says() {
        let found = parse("-4@%eax 8@-16(%rbp) 4@$-5 1@%r10b 8@(%rax,%rbx,8) 8f@%xmm0 8@4(%rsp)");
        let expected = [
            Some((Operand::Register(80), ArgType::I32)),
            Some((
                Operand::Memory {
                    base: 32,
                    distance: -16,
                },
                ArgType::U64,
            )),
            Some((Operand::Constant(-5), ArgType::U32)),
            Some((Operand::Register(56), ArgType::U8)),
            Some((
                Operand::Indexed {
                    base: 80,
                    index: 40,
                    shift: 3,
                    distance: 0,
                },
                ArgType::U64,
            )),
            None,
            Some((
                Operand::Memory {
                    base: 152,
                    distance: 4,
                },
                ArgType::U64,
            )),
        ];
        assert_eq!(found, expected);
        assert_eq!(wire(found[1])[..8], (-16i64).to_ne_bytes());
        assert_eq!(wire(found[1])[12..], [3, 0, 8, 0]);
        assert_eq!(wire(None), [0; WIRE_BYTES]);
    }

    #[test]
    #[cfg(target_arch = "aarch64")]
    fn arguments_are_where_the_note_says() {
        let found = parse("-4@w3 8@[sp, 16] 4@5 8@[x1] 8@x30");
        let memory = |base, distance| Operand::Memory { base, distance };
        let expected = [
            Some((Operand::Register(24), ArgType::I32)),
            Some((memory(248, 16), ArgType::U64)),
            Some((Operand::Constant(5), ArgType::U32)),
            Some((memory(8, 0), ArgType::U64)),
            Some((Operand::Register(240), ArgType::U64)),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn what_makes_no_sense_is_left_out() {
        for text in [
            "8@",
            "@%rax",
            "9@%rax",
            "8@%nothing",
            "8@(%rax",
            "8@()",
            "8@(,)",
            "8@$",
            "8@counter(%rip",
            "8@(%rax,%rbx,3)",
            "x",
            "8@$99999999999999999999",
            "8@[",
            "8@[]",
        ] {
            assert!(parse(text).iter().all(Option::is_none), "{text}");
        }
        assert_eq!(parse(""), []);
        assert_eq!(parse(&"8@$1 ".repeat(100)).len(), USDT_ARGS);
    }
}
