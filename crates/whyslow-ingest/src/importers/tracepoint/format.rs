//! `format` files of tracefs: locations of the fields in the bytes of an event.
//!
//! ```text
//! name: sched_wakeup
//! ID: 374
//! format:
//!  field:unsigned short common_type; offset:0; size:2; signed:0;
//!
//!  field:char comm[16]; offset:8; size:16; signed:0;
//!
//! print fmt: …
//! ```

/// Maximum number of fields of an event.
const FIELDS_MAX: usize = 256;
/// Maximum size of a field.
const FIELD_BYTES_MAX: usize = 64 << 10;

/// Type of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::importers) enum Kind {
    Number {
        is_signed: bool,
    },
    /// Characters up to a NUL.
    Text,
    /// Array of integers of this size.
    Numbers {
        each: usize,
    },
    /// Offset and length of data elsewhere in the event: relative to its start, or to the end of
    /// the field.
    Elsewhere {
        is_relative: bool,
        is_text: bool,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::importers) struct Field {
    pub(in crate::importers) name: String,
    pub(in crate::importers) offset: usize,
    pub(in crate::importers) size: usize,
    pub(in crate::importers) kind: Kind,
}

/// A class of events.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::importers) struct Format {
    pub(in crate::importers) system: String,
    pub(in crate::importers) name: String,
    pub(in crate::importers) id: u64,
    pub(in crate::importers) fields: Vec<Field>,
}

impl Format {
    /// None without a name or id; fields that cannot be parsed are left out.
    pub(in crate::importers) fn parse(system: &str, text: &str) -> Option<Self> {
        let mut format = Self {
            system: system.to_owned(),
            ..Self::default()
        };
        let mut id = None;
        for line in text.lines() {
            if let Some(name) = line.strip_prefix("name:") {
                name.trim().clone_into(&mut format.name);
            } else if let Some(number) = line.strip_prefix("ID:") {
                id = number.trim().parse().ok();
            } else if let Some(field) = line.trim_start().strip_prefix("field:")
                && format.fields.len() < FIELDS_MAX
            {
                format.fields.extend(Field::parse(field));
            }
        }
        format.id = id?;
        (!format.name.is_empty()).then_some(format)
    }

    pub(in crate::importers) fn field(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|field| field.name == name)
    }
}

impl Field {
    /// Parses the text after `field:`.
    pub(in crate::importers) fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split(';').map(str::trim);
        let declared = parts.next()?;
        let (mut offset, mut size, mut is_signed) = (None, None, false);
        for part in parts {
            match part.split_once(':') {
                Some(("offset", number)) => offset = number.trim().parse().ok(),
                Some(("size", number)) => size = number.trim().parse().ok(),
                Some(("signed", number)) => is_signed = number.trim() != "0",
                _ => {}
            }
        }
        let size = size.filter(|size| *size <= FIELD_BYTES_MAX)?;
        let (name, kind) = kind_of(declared, size, is_signed)?;
        Some(Self {
            name: name.to_owned(),
            offset: offset?,
            size,
            kind,
        })
    }
}

/// Name and kind of `char comm[16]`, `__data_loc char[] filename`, `unsigned long args[6]`, `pid_t pid`.
fn kind_of(declared: &str, size: usize, is_signed: bool) -> Option<(&str, Kind)> {
    let elsewhere = |rest: &'_ str, is_relative| Kind::Elsewhere {
        is_relative,
        is_text: rest.contains("char"),
    };
    for (prefix, is_relative) in [("__data_loc ", false), ("__rel_loc ", true)] {
        if let Some(rest) = declared.strip_prefix(prefix) {
            let name = rest.rsplit(' ').next()?;
            return Some((name, elsewhere(rest, is_relative)));
        }
    }
    let (rest, count) = match declared.split_once('[') {
        Some((rest, count)) => (rest.trim_end(), Some(count.split(']').next()?.trim())),
        None => (declared, None),
    };
    let name = rest.rsplit([' ', '*']).next()?;
    let kind = match count {
        None => Kind::Number { is_signed },
        Some(_) if rest.starts_with("char ") => Kind::Text,
        Some(count) => match count.parse::<usize>() {
            Ok(count @ 1..) if size.is_multiple_of(count) => Kind::Numbers { each: size / count },
            // The count is a kernel constant.
            _ => Kind::Numbers {
                each: each_of(rest, size),
            },
        },
    };
    Some((name, kind)).filter(|(name, _)| !name.is_empty())
}

fn each_of(declared: &str, size: usize) -> usize {
    let each = if declared.contains("long") || declared.contains("64") {
        8
    } else if declared.contains("32") || declared.contains("int") {
        4
    } else {
        1
    };
    if size.is_multiple_of(each) { each } else { 1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORMAT: &str = "name: made_up\nID: 374\nformat:\n\
        \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
        \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
        \tfield:char comm[16];\toffset:8;\tsize:16;\tsigned:0;\n\
        \tfield:__data_loc char[] filename;\toffset:24;\tsize:4;\tsigned:0;\n\
        \tfield:unsigned long args[6];\toffset:32;\tsize:48;\tsigned:0;\n\
        \tfield:const char * path;\toffset:80;\tsize:8;\tsigned:0;\n\
        \tfield:__u8 saddr[4];\toffset:88;\tsize:4;\tsigned:0;\n\
        \tfield:broken;\n\nprint fmt: \"x\"\n";

    #[test]
    fn fields_are_where_the_kernel_says() {
        let format = Format::parse("sched", FORMAT).expect("a format");
        assert_eq!((format.name.as_str(), format.id), ("made_up", 374));
        let kind = |name| format.field(name).map(|field| (field.offset, field.kind));
        assert_eq!(
            kind("common_pid"),
            Some((4, Kind::Number { is_signed: true }))
        );
        assert_eq!(kind("comm"), Some((8, Kind::Text)));
        let elsewhere = Kind::Elsewhere {
            is_relative: false,
            is_text: true,
        };
        assert_eq!(kind("filename"), Some((24, elsewhere)));
        assert_eq!(kind("args"), Some((32, Kind::Numbers { each: 8 })));
        assert_eq!(kind("path"), Some((80, Kind::Number { is_signed: false })));
        assert_eq!(kind("saddr"), Some((88, Kind::Numbers { each: 1 })));
        assert_eq!(format.fields.len(), 7);
    }

    #[test]
    fn what_is_no_format_is_none() {
        for text in ["", "name: x", "ID: 4", "name:\nID: 4\n", "ID: x\nname: y"] {
            assert_eq!(Format::parse("s", text), None, "{text:?}");
        }
    }
}
