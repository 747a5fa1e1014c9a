//! Finds files by name, including those that no process has mapped yet.

use std::fs;
use std::path::{Path, PathBuf};

use whyslow_model::sort::IndexSort;

use super::spec::{FileName, is_called};

/// Maximum number of directory entries read.
const ENTRIES_MAX: usize = 50_000;
const CONFIGURATION_MAX: u64 = 1 << 20;

/// The last part of a path.
pub(crate) fn base(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// The files of this machine that match, each once. For a bare name the first directory that has it
/// counts, as it does for the shell and the dynamic loader.
pub(crate) fn on_disk(file: &FileName) -> Vec<PathBuf> {
    let name = match file {
        FileName::Path { real, .. } => {
            return real.is_file().then(|| real.clone()).into_iter().collect();
        }
        FileName::Base(name) => name,
    };
    let mut found = Vec::new();
    for folders in [programs(), libraries()] {
        let mut of_folders = folders.iter().map(|folder| called(folder, name));
        let first = of_folders.find(|files| !files.is_empty());
        found.extend(first.into_iter().flatten());
    }
    found.index_sort();
    found.dedup();
    found
}

/// Lists names of programs and libraries in the standard directories.
pub(crate) fn each_name(each: &mut dyn FnMut(&str)) {
    for folder in programs().into_iter().chain(libraries()) {
        names(&folder).for_each(|name| each(&name));
    }
}

fn names(folder: &Path) -> impl Iterator<Item = String> {
    let entries = fs::read_dir(folder).into_iter().flatten().take(ENTRIES_MAX);
    entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok())
}

fn called(folder: &Path, name: &str) -> Vec<PathBuf> {
    let exact = folder.join(name);
    if let Ok(file) = exact.canonicalize()
        && file.is_file()
    {
        return vec![file];
    }
    let files = names(folder).filter(|file| is_called(name, file));
    let files = files.filter_map(|file| folder.join(file).canonicalize().ok());
    let mut files: Vec<PathBuf> = files.filter(|file| file.is_file()).collect();
    files.index_sort();
    files.dedup();
    files
}

fn programs() -> Vec<PathBuf> {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&folders).collect()
}

fn libraries() -> Vec<PathBuf> {
    let triplet = format!("{}-linux-gnu", std::env::consts::ARCH);
    let roots = ["/lib", "/usr/lib", "/lib64", "/usr/lib64", "/usr/local/lib"];
    let mut folders = Vec::new();
    for root in roots {
        folders.push(Path::new(root).join(&triplet));
        folders.push(PathBuf::from(root));
    }
    let more = fs::read_dir("/etc/ld.so.conf.d").into_iter().flatten();
    let more = more.flatten().take(1000).map(|entry| entry.path());
    for file in more {
        let is_small = file
            .metadata()
            .is_ok_and(|about| about.len() < CONFIGURATION_MAX);
        let text = if is_small {
            fs::read_to_string(file).unwrap_or_default()
        } else {
            String::new()
        };
        let of_file = text
            .lines()
            .map(str::trim)
            .filter(|line| line.starts_with('/'));
        folders.extend(of_file.map(PathBuf::from));
    }
    folders
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_found_by_name_where_nobody_has_mapped_them() {
        let sh = on_disk(&FileName::parse("sh"));
        assert!(sh.iter().all(|path| path.is_file()) && !sh.is_empty());
        assert_eq!(
            on_disk(&FileName::parse("no-such-program-anywhere")),
            [] as [PathBuf; 0]
        );
        assert_eq!(on_disk(&FileName::parse("/no/such")), [] as [PathBuf; 0]);
        let own = std::env::current_exe()
            .and_then(|path| path.canonicalize())
            .expect("it runs");
        let named = FileName::parse(own.to_str().expect("UTF-8"));
        assert_eq!(on_disk(&named), [own]);
    }
}
