//! Parser of `FILE:FUNCTION#TYPES` and `FILE:PROVIDER:NAME#TYPES`.

use std::path::{Path, PathBuf};

use whyslow_model::probe::{ArgType, FUNCTION_ARGS, TEXTS, USDT_ARGS};

use super::arguments::Argument;
use super::names::fits;
use super::places::base;

/// A probe requested on the command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProbeSpec {
    /// As written on the command line.
    pub text: String,
    pub(crate) file: FileName,
    pub(crate) what: What,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum What {
    Function {
        /// Name or pattern.
        symbol: String,
        args: Vec<ArgType>,
        returns: Option<ArgType>,
    },
    /// A static probe (USDT).
    Usdt {
        /// Name or pattern.
        provider: String,
        /// Name or pattern.
        name: String,
        /// Types that override those of the ELF note.
        args: Vec<Option<ArgType>>,
    },
}

/// Which files match.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FileName {
    /// This file, and the same path in other mount namespaces.
    Path { given: PathBuf, real: PathBuf },
    /// Any file with this name, with or without a version.
    Base(String),
}

impl FileName {
    pub(crate) fn parse(text: &str) -> Self {
        if text.contains('/') {
            let given = PathBuf::from(text);
            let given = std::path::absolute(&given).unwrap_or(given);
            let real = given.canonicalize().unwrap_or_else(|_| given.clone());
            Self::Path { given, real }
        } else {
            Self::Base(text.to_owned())
        }
    }

    /// Without directories.
    pub(crate) fn shown(&self) -> &str {
        match self {
            Self::Path { given, .. } => base(given.to_str().unwrap_or_default()),
            Self::Base(name) => name,
        }
    }

    /// Whether a mapped file matches.
    pub(crate) fn fits(&self, mapped: &str) -> bool {
        let mapped = mapped.strip_suffix(" (deleted)").unwrap_or(mapped);
        match self {
            Self::Path { given, real } => {
                let mapped = Path::new(mapped);
                mapped == given || mapped == real
            }
            Self::Base(name) => is_called(name, base(mapped)),
        }
    }
}

/// `libssl` and `libssl.so` are `libssl.so.3`, `python3` is `python3.11`.
pub(crate) fn is_called(name: &str, file: &str) -> bool {
    if fits(name, file) {
        return true;
    }
    let Some(rest) = file.strip_prefix(name) else {
        return false;
    };
    let is_version = |rest: &str| {
        let mut letters = rest.chars();
        letters.all(|letter| letter.is_ascii_digit() || letter == '.' || letter == '-')
    };
    let (before, after) = rest.split_once(".so").unwrap_or((rest, ""));
    is_version(before) && is_version(after)
}

impl ProbeSpec {
    /// `FILE:FUNCTION#TYPES`. Returns a message if the text is invalid.
    pub fn function(text: &str) -> Result<Self, String> {
        let (what, types) = split_types(text);
        let (file, symbol) = split_file(what).ok_or_else(|| {
            format!(
                "invalid probe `{text}`: no file (use FILE:FUNCTION, e.g. libssl.so.3:SSL_read)"
            )
        })?;
        if symbol.is_empty() {
            return Err(format!("invalid probe `{text}`: no function"));
        }
        let (args, returns) = match types {
            Some(types) => parse_types(types)?,
            None => (vec![ArgType::I64; FUNCTION_ARGS], Some(ArgType::I64)),
        };
        Ok(Self {
            text: text.to_owned(),
            file: FileName::parse(file),
            what: What::Function {
                symbol: symbol.to_owned(),
                args,
                returns,
            },
        })
    }

    /// `FILE:PROVIDER:NAME#TYPES`; each type may be omitted.
    pub fn usdt(text: &str) -> Result<Self, String> {
        let (what, types) = split_types(text);
        let parts = split_file(what).and_then(|(file, rest)| Some((file, rest.split_once(':')?)));
        let (file, (provider, name)) = parts
            .filter(|(_, (provider, name))| !provider.is_empty() && !name.is_empty())
            .ok_or_else(|| {
                format!("invalid probe `{text}`: use FILE:PROVIDER:NAME, e.g. libstdc++.so.6:libstdcxx:throw")
            })?;
        let args = types.unwrap_or_default().split(',').map(str::trim);
        let args = args.map(|name| match name {
            "" => Ok(None),
            name => type_of(name).map(Some),
        });
        let args = args.collect::<Result<Vec<_>, _>>()?;
        check_args(args.len(), USDT_ARGS, args.iter().flatten())?;
        Ok(Self {
            text: text.to_owned(),
            file: FileName::parse(file),
            what: What::Usdt {
                provider: provider.to_owned(),
                name: name.to_owned(),
                args,
            },
        })
    }

    /// Name of the probe, without its file.
    pub(crate) fn name(&self) -> String {
        match &self.what {
            What::Function { symbol, .. } => symbol.clone(),
            What::Usdt { provider, name, .. } => format!("{provider}:{name}"),
        }
    }

    /// Whether it can match several probes.
    pub(crate) fn is_pattern(&self) -> bool {
        self.name().contains(['*', '?'])
    }

    /// BPF cookie of the probe with this number (`functions.h`).
    pub(crate) fn cookie(&self, number: u32) -> u64 {
        let is_text = |of: Option<ArgType>| of == Some(ArgType::Text);
        let texts: Vec<usize> = match &self.what {
            What::Function { args, .. } => {
                let args = args.iter().enumerate();
                let texts = args.filter(|(_, of)| is_text(Some(**of)));
                texts.map(|(arg, _)| arg).collect()
            }
            What::Usdt { args, .. } => {
                let args = args.iter().enumerate();
                let texts = args.filter(|(_, of)| is_text(**of));
                texts.map(|(arg, _)| arg).collect()
            }
        };
        let texts = texts.into_iter().take(TEXTS).enumerate();
        texts.fold(u64::from(number), |cookie, (place, arg)| {
            cookie | (arg as u64 + 1) << (32 + 4 * place)
        })
    }

    /// Type numbers for the spool, given the arguments in the ELF note.
    pub(crate) fn types(&self, from_note: &[Argument]) -> Vec<u8> {
        let of_type = |of: Option<ArgType>| of.map_or(0, |of| of as u8);
        match &self.what {
            What::Function { args, returns, .. } => {
                let args = args.iter().map(|of| of_type(Some(*of)));
                std::iter::once(of_type(*returns)).chain(args).collect()
            }
            What::Usdt { args, .. } => {
                let from_note = from_note.iter().enumerate();
                let types = from_note.map(|(place, argument)| {
                    // An argument that cannot be read is no text either.
                    let requested = args.get(place).copied().flatten();
                    of_type(argument.map(|(_, of)| requested.unwrap_or(of)))
                });
                std::iter::once(0).chain(types).collect()
            }
        }
    }
}

/// File, and the rest.
fn split_file(text: &str) -> Option<(&str, &str)> {
    let (file, rest) = text.split_once(':')?;
    (!file.is_empty() && !rest.starts_with(':')).then_some((file, rest))
}

/// The part after the last `#`, unless that belongs to a name (`{closure#0}`).
fn split_types(text: &str) -> (&str, Option<&str>) {
    match text.rsplit_once('#') {
        Some((what, types)) if !types.contains(['}', ')', ':', '>']) => (what, Some(types)),
        _ => (text, None),
    }
}

/// `str,int=long`
fn parse_types(text: &str) -> Result<(Vec<ArgType>, Option<ArgType>), String> {
    let (args, returns) = match text.split_once('=') {
        Some((args, "void")) => (args, None),
        Some((args, returns)) => (args, Some(type_of(returns.trim())?)),
        None => (text, Some(ArgType::I64)),
    };
    let args = args.split(',').map(str::trim).filter(|arg| !arg.is_empty());
    let args = args.map(type_of).collect::<Result<Vec<_>, _>>()?;
    check_args(args.len(), FUNCTION_ARGS, args.iter())?;
    if returns == Some(ArgType::Text) {
        return Err("cannot record a returned string: use `ptr` for its address".into());
    }
    Ok((args, returns))
}

fn type_of(name: &str) -> Result<ArgType, String> {
    ArgType::by_name(name).ok_or_else(|| {
        let names = ArgType::NAMES.iter().map(|(known, _)| *known);
        let names: Vec<&str> = names.collect();
        format!("unknown type `{name}`: use one of {}", names.join(", "))
    })
}

fn check_args<'t>(
    count: usize,
    most: usize,
    types: impl Iterator<Item = &'t ArgType>,
) -> Result<(), String> {
    if count > most {
        return Err(format!(
            "too many arguments: {count}, the maximum is {most}"
        ));
    }
    let texts = types.filter(|of| **of == ArgType::Text).count();
    if texts > TEXTS {
        return Err(format!(
            "too many `str` arguments: {texts}, the maximum is {TEXTS}"
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_is_named_with_its_file_and_its_types() {
        let check = |text: &str, symbol: &str, types: &[u8], cookie: u64| {
            let spec = ProbeSpec::function(text).expect(text);
            assert_eq!(spec.name(), symbol, "{text}");
            assert_eq!(spec.types(&[]), types, "{text}");
            assert_eq!(spec.cookie(9), cookie, "{text}");
        };
        check("libssl.so.3:SSL_read", "SSL_read", &[7; 7], 9);
        check(
            "libssl:SSL_read#ptr,ptr,int=int",
            "SSL_read",
            &[5, 9, 9, 5],
            9,
        );
        check(
            "libc:fopen#str,str=ptr",
            "fopen",
            &[9, 10, 10],
            0x21_0000_0009,
        );
        check("libc:free#ptr=void", "free", &[0, 9], 9);
        check("libc:abort#", "abort", &[7], 9);
        check("mysqld:*dispatch*", "*dispatch*", &[7; 7], 9);
        check("/usr/bin/x:ns::f(int)", "ns::f(int)", &[7; 7], 9);
        check("x:a::b::{closure#0}", "a::b::{closure#0}", &[7; 7], 9);
        check("x:a::{closure#0}#int", "a::{closure#0}", &[7, 5], 9);
    }

    #[test]
    fn what_means_nothing_is_told() {
        let check = |text: &str, part: &str| {
            let message = ProbeSpec::function(text).expect_err(text);
            assert!(message.contains(part), "{text}: {message}");
        };
        check("malloc", "no file");
        check("ns::f", "no file");
        check(":malloc", "no file");
        check("libc:", "no function");
        check("libc:f#float", "unknown type `float`");
        check("libc:f#int,int,int,int,int,int,int", "too many");
        check("libc:f#str,str,str", "too many");
        check("libc:f#int=str", "cannot record");
    }

    #[test]
    fn arguments_of_static_probes_are_read_as_told_unless_asked_otherwise() {
        use super::super::arguments::parse;
        let from_note = parse("-4@$1 8@$2 8f@$3 8@$4");
        let check = |text: &str, name: &str, types: &[u8], cookie: u64| {
            let spec = ProbeSpec::usdt(text).expect(text);
            assert_eq!(spec.name(), name, "{text}");
            assert_eq!(spec.types(&from_note), types, "{text}");
            assert_eq!(spec.cookie(9), cookie, "{text}");
        };
        check("libc:libc:setjmp", "libc:setjmp", &[0, 5, 8, 0, 8], 9);
        check("x:a:b#,str,,str", "a:b", &[0, 5, 10, 0, 10], 0x42_0000_0009);
        check("x:a:b#uint,long", "a:b", &[0, 6, 7, 0, 8], 9);
        for (text, part) in [
            ("libc:setjmp", "use FILE:PROVIDER:NAME"),
            ("setjmp", "use FILE:PROVIDER:NAME"),
            ("x:a:", "use FILE:PROVIDER:NAME"),
            ("x:a:b#float", "unknown type `float`"),
            ("x:a:b#str,str,str", "too many"),
            ("x:a:b#,,,,,,,,,,,,", "too many"),
        ] {
            let message = ProbeSpec::usdt(text).expect_err(text);
            assert!(message.contains(part), "{text}: {message}");
        }
    }

    #[test]
    fn files_are_called_with_or_without_their_version() {
        let check = |name: &str, file: &str, expected: bool| {
            assert_eq!(is_called(name, file), expected, "{name} {file}");
        };
        check("libssl.so.3", "libssl.so.3", true);
        check("libssl", "libssl.so.3", true);
        check("libssl.so", "libssl.so.1.1", true);
        check("libc", "libc-2.31.so", true);
        check("libc", "libcrypto.so.3", false);
        check("python3", "python3.11", true);
        check("libssl*", "libssl.so.3", true);
        check("mysqld", "mysqld", true);
        check("mysqld", "mysqld_safe", false);
        check("libssl.so.3", "libssl.so.1", false);
        let path = FileName::parse("/no/such/file");
        assert!(path.fits("/no/such/file") && path.fits("/no/such/file (deleted)"));
        assert!(!path.fits("/other/such/file"));
        assert!(FileName::parse("libssl").fits("/usr/lib/x86_64-linux-gnu/libssl.so.3"));
    }
}
