//! DNS lookups: the functions that make them, and their results.

use std::borrow::Cow;

/// A function of libc.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Function {
    /// One of these functions, the source does not report which.
    Unknown = 0,
    /// `getaddrinfo`.
    Getaddrinfo = 1,
    /// `gethostbyname`.
    Gethostbyname = 2,
    /// `gethostbyname2`.
    Gethostbyname2 = 3,
    /// `gethostbyname_r`.
    GethostbynameR = 4,
    /// `gethostbyname2_r`.
    Gethostbyname2R = 5,
}

impl Function {
    /// All but [`Function::Unknown`], in the order of their numbers.
    pub const ALL: [Self; 5] = [
        Self::Getaddrinfo,
        Self::Gethostbyname,
        Self::Gethostbyname2,
        Self::GethostbynameR,
        Self::Gethostbyname2R,
    ];

    /// Finds a function by name, including `unknown`.
    pub fn by_name(name: &str) -> Option<Self> {
        let mut all = Self::ALL.into_iter().chain([Self::Unknown]);
        all.find(|function| function.name() == name)
    }

    /// Name of the symbol in libc, as the column `dns_lookup.function` has it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Getaddrinfo => "getaddrinfo",
            Self::Gethostbyname => "gethostbyname",
            Self::Gethostbyname2 => "gethostbyname2",
            Self::GethostbynameR => "gethostbyname_r",
            Self::Gethostbyname2R => "gethostbyname2_r",
        }
    }

    /// Returns the function with this number in a spool; `None` for 0 and for numbers of later
    /// versions.
    pub fn by_number(number: u8) -> Option<Self> {
        let mut all = Self::ALL.into_iter();
        all.find(|function| *function as u8 == number)
    }
}

/// Outcome of a lookup. Each family of functions has its own numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// Return value of getaddrinfo.
    Eai(i32),
    /// `h_errno`, 0 if a name was found.
    HErrno(i32),
    /// `errno`, used by the functions with `_r`.
    Errno(i32),
    /// It failed, and its reason cannot be read.
    Unreported,
    /// The source does not report whether a name was found.
    Unknown,
}

impl Outcome {
    /// Converts the number that the function returned.
    pub fn of(function: Function, number: Option<i32>) -> Self {
        match (function, number) {
            (Function::Unknown, _) | (_, None) => Self::Unknown,
            (Function::Getaddrinfo, Some(number)) => Self::Eai(number),
            (Function::GethostbynameR | Function::Gethostbyname2R, Some(number)) => {
                Self::Errno(number)
            }
            (Function::Gethostbyname | Function::Gethostbyname2, Some(number)) => {
                Self::HErrno(number)
            }
        }
    }

    /// The number, in the scheme of its function.
    pub fn number(self) -> Option<i32> {
        match self {
            Self::Eai(number) | Self::HErrno(number) | Self::Errno(number) => Some(number),
            Self::Unreported | Self::Unknown => None,
        }
    }

    /// Name in the C library; `ok` if a name was found.
    pub fn name(self) -> Cow<'static, str> {
        match self {
            Self::Eai(0) | Self::HErrno(0) | Self::Errno(0) => "ok".into(),
            Self::Unreported => "failed".into(),
            Self::Unknown => "unknown".into(),
            Self::Eai(number) => {
                eai(number).map_or_else(|| format!("EAI {number}").into(), Cow::from)
            }
            Self::HErrno(number) => {
                h_errno(number).map_or_else(|| format!("h_errno {number}").into(), Cow::from)
            }
            Self::Errno(number) => {
                errno(number).map_or_else(|| format!("errno {number}").into(), Cow::from)
            }
        }
    }
}

/// Numbers of glibc and musl.
fn eai(number: i32) -> Option<&'static str> {
    Some(match number {
        -1 => "EAI_BADFLAGS",
        -2 => "EAI_NONAME",
        -3 => "EAI_AGAIN",
        -4 => "EAI_FAIL",
        -5 => "EAI_NODATA",
        -6 => "EAI_FAMILY",
        -7 => "EAI_SOCKTYPE",
        -8 => "EAI_SERVICE",
        -9 => "EAI_ADDRFAMILY",
        -10 => "EAI_MEMORY",
        -11 => "EAI_SYSTEM",
        -12 => "EAI_OVERFLOW",
        _ => return None,
    })
}

fn h_errno(number: i32) -> Option<&'static str> {
    Some(match number {
        -1 => "NETDB_INTERNAL",
        1 => "HOST_NOT_FOUND",
        2 => "TRY_AGAIN",
        3 => "NO_RECOVERY",
        4 => "NO_DATA",
        _ => return None,
    })
}

/// Error numbers that these functions return.
fn errno(number: i32) -> Option<&'static str> {
    Some(match number {
        2 => "ENOENT",
        11 => "EAGAIN",
        12 => "ENOMEM",
        22 => "EINVAL",
        34 => "ERANGE",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcomes_have_the_names_of_netdb_h() {
        let check = |outcome: Outcome, name: &str| assert_eq!(outcome.name(), name);
        check(Outcome::Eai(0), "ok");
        check(Outcome::Eai(-2), "EAI_NONAME");
        check(Outcome::Eai(-105), "EAI -105");
        check(Outcome::HErrno(1), "HOST_NOT_FOUND");
        check(Outcome::HErrno(9), "h_errno 9");
        check(Outcome::Errno(34), "ERANGE");
        check(Outcome::Unreported, "failed");
        assert_eq!(Function::by_number(3), Some(Function::Gethostbyname2));
        assert_eq!(Function::by_number(0), None);
    }
}
