use std::fs::{self, File};
use std::path::{Path, PathBuf};

/// The directory that `./dev test` creates for a run and deletes afterwards.
const VARIABLE: &str = "WHYSLOW_TEST_FOLDER";

/// The directory `name` of this run, which `make` fills for the first test that needs it.
/// cargo-nextest runs each test in its own process; this way, expensive setup is still done only
/// once. `None` outside of such a run: the caller then shares within its process.
///
/// # Panics
/// If the directory cannot be written, or `make` panics; the next test then tries again.
pub fn made_once(name: &str, make: impl FnOnce(&Path)) -> Option<PathBuf> {
    let base = std::env::var_os(VARIABLE).filter(|base| !base.is_empty())?;
    Some(made_below(Path::new(&base), name, make))
}

fn made_below(base: &Path, name: &str, make: impl FnOnce(&Path)) -> PathBuf {
    let lock = File::create(base.join(format!("{name}.lock"))).expect("writable");
    lock.lock().expect("lockable");
    let folder = base.join(name);
    let done = base.join(format!("{name}.done"));
    if !done.exists() {
        // Remove the leftovers of an unfinished test.
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir(&folder).expect("writable");
        make(&folder);
        File::create(done).expect("writable");
    }
    folder
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;

    #[test]
    fn it_is_made_once_and_again_after_a_failure() {
        let base = std::env::temp_dir().join(format!("whyslow-testkit-{}", std::process::id()));
        fs::create_dir(&base).expect("a temporary folder");
        let mut made = 0;
        let failed = catch_unwind(AssertUnwindSafe(|| {
            made_below(&base, "x", |folder| {
                File::create(folder.join("half")).expect("a file");
                panic!("on purpose");
            })
        }));
        assert!(failed.is_err());
        for _ in 0..2 {
            let folder = made_below(&base, "x", |folder| {
                made += 1;
                assert!(!folder.join("half").exists());
                File::create(folder.join("whole")).expect("a file");
            });
            assert!(folder.join("whole").exists());
        }
        assert_eq!(made, 1);
        fs::remove_dir_all(&base).expect("removable");
    }
}
