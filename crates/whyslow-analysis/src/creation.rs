//! Whether a file was created in the recording.

/// What is known of the creation of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Creation {
    /// It was created.
    Known,
    /// The first operation was an open that creates a missing file (`O_CREAT`), and the file was
    /// written to: most likely it was created, but it may have existed.
    Inferred,
    /// It existed before, or nothing shows that it was created.
    NotShown,
}

impl Creation {
    /// From the columns `created` and `bytes_written` of table `file_life`.
    pub fn of(created: Option<bool>, bytes_written: i64) -> Self {
        match created {
            Some(true) => Self::Known,
            None if bytes_written > 0 => Self::Inferred,
            None | Some(false) => Self::NotShown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Creation;

    #[test]
    fn a_creating_open_with_writes_is_inferred_to_create() {
        assert_eq!(Creation::of(Some(true), 0), Creation::Known);
        assert_eq!(Creation::of(None, 4096), Creation::Inferred);
        assert_eq!(Creation::of(None, 0), Creation::NotShown);
        assert_eq!(Creation::of(Some(false), 4096), Creation::NotShown);
    }
}
