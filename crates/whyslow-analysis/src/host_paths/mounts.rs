//! Resolves paths of a mount namespace by its mounts.

use std::collections::BTreeMap;

/// A mount of a namespace.
#[derive(Debug, Clone)]
pub(super) struct Mount {
    pub(super) id: i32,
    pub(super) parent: i32,
    pub(super) dev: i64,
    /// The directory of the file system that is mounted.
    pub(super) root: String,
    pub(super) point: String,
}

/// The mounts of a namespace.
#[derive(Debug, Default)]
pub(super) struct Mounts {
    all: Vec<Mount>,
    /// Mounts by parent mount id, in the order in which they were recorded.
    inside: BTreeMap<i32, Vec<usize>>,
    /// The mount without a parent.
    first: Option<usize>,
    by_dev: BTreeMap<i64, Vec<usize>>,
}

impl Mounts {
    pub(super) fn new(all: Vec<Mount>) -> Self {
        let ids: std::collections::BTreeSet<i32> = all.iter().map(|mount| mount.id).collect();
        let mut mounts = Self::default();
        for (place, mount) in all.iter().enumerate() {
            mounts.by_dev.entry(mount.dev).or_default().push(place);
            if mount.parent != mount.id && ids.contains(&mount.parent) {
                mounts.inside.entry(mount.parent).or_default().push(place);
            } else if mount.point == "/" {
                mounts.first = mounts.first.or(Some(place));
            }
        }
        mounts.all = all;
        mounts
    }

    /// The mount that contains a path, and the path within its file system.
    fn resolve(&self, path: &str) -> Option<(usize, String)> {
        let mut at = self.first?;
        // Each step goes to another mount, unless damaged input makes them circular.
        for _ in 0..=self.all.len() {
            let inside = self.inside.get(&self.all[at].id).into_iter().flatten();
            let on_the_way = inside.filter(|place| below(path, &self.all[**place].point).is_some());
            // The first mount point on the path hides everything below; of two mounts at one point
            // the later is on top.
            let next = on_the_way.min_by_key(|place| {
                let mount = &self.all[**place];
                (mount.point.len(), std::cmp::Reverse(**place))
            });
            let Some(next) = next else {
                let mount = &self.all[at];
                let rest = below(path, &mount.point)?;
                return Some((at, joined(&mount.root, rest)));
            };
            at = *next;
        }
        None
    }

    /// The shortest path to a location in a file system.
    fn path_to(&self, dev: i64, inner: &str) -> Option<String> {
        let places = self.by_dev.get(&dev).into_iter().flatten();
        let paths = places.filter_map(|place| {
            let mount = &self.all[*place];
            let path = joined(&mount.point, below(inner, &mount.root)?);
            // Another mount may hide it.
            let is_seen = self.resolve(&path).is_some_and(|(at, _)| at == *place);
            is_seen.then_some(path)
        });
        paths.min_by(|a, b| a.len().cmp(&b.len()).then_with(|| a.cmp(b)))
    }

    /// The path in another namespace.
    pub(super) fn translate(&self, path: &str, other: &Mounts) -> Option<String> {
        let (place, inner) = self.resolve(path)?;
        other.path_to(self.all[place].dev, &inner)
    }
}

/// The part of a path below a directory: `/b` for `/a/b` in `/a`, empty for `/a`.
fn below<'p>(path: &'p str, folder: &str) -> Option<&'p str> {
    let path = path.trim_end_matches('/');
    let rest = path.strip_prefix(folder.trim_end_matches('/'))?;
    (rest.is_empty() || rest.starts_with('/')).then_some(rest)
}

fn joined(folder: &str, rest: &str) -> String {
    let path = format!("{}{rest}", folder.trim_end_matches('/'));
    if path.is_empty() { "/".into() } else { path }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mounts(all: &[(i32, i32, i64, &str, &str)]) -> Mounts {
        let mount = |(id, parent, dev, root, point): &(i32, i32, i64, &str, &str)| Mount {
            id: *id,
            parent: *parent,
            dev: *dev,
            root: (*root).into(),
            point: (*point).into(),
        };
        Mounts::new(all.iter().map(mount).collect())
    }

    fn host() -> Mounts {
        mounts(&[
            (1, 0, 8, "/", "/"),
            (2, 1, 9, "/", "/srv"),
            (3, 1, 50, "/", "/var/lib/docker/overlay2/x/merged"),
            (4, 1, 7, "/", "/run"),
        ])
    }

    #[test]
    fn paths_of_a_container_have_one_of_the_host() {
        let container = mounts(&[
            (20, 19, 50, "/", "/"),
            (21, 20, 9, "/volumes/v", "/data"),
            (22, 20, 99, "/", "/proc"),
            (
                23,
                20,
                8,
                "/var/lib/docker/c/resolv.conf",
                "/etc/resolv.conf",
            ),
        ]);
        let check = |path: &str, expected: Option<&str>| {
            let found = container.translate(path, &host());
            assert_eq!(found.as_deref(), expected, "{path}");
        };
        check("/", Some("/var/lib/docker/overlay2/x/merged"));
        check(
            "/etc/passwd",
            Some("/var/lib/docker/overlay2/x/merged/etc/passwd"),
        );
        check("/data", Some("/srv/volumes/v"));
        check("/data/a/b", Some("/srv/volumes/v/a/b"));
        check(
            "/database",
            Some("/var/lib/docker/overlay2/x/merged/database"),
        );
        check("/etc/resolv.conf", Some("/var/lib/docker/c/resolv.conf"));
        check("/proc/1/maps", None);
        check("relative", None);
    }

    #[test]
    fn what_is_mounted_over_something_hides_it() {
        let space = mounts(&[
            (20, 19, 8, "/", "/"),
            (21, 20, 9, "/", "/a"),
            (22, 20, 7, "/", "/a/b"),
            (23, 21, 7, "/c", "/a"),
        ]);
        // /a/b is below the first /a, which two other mounts cover.
        assert_eq!(
            space.translate("/a/b", &host()).as_deref(),
            Some("/run/c/b")
        );
        // On the host, /srv is covered.
        let host = mounts(&[
            (1, 0, 8, "/", "/"),
            (2, 1, 9, "/", "/srv"),
            (3, 2, 5, "/", "/srv"),
        ]);
        let space = mounts(&[(20, 19, 9, "/", "/")]);
        assert_eq!(space.translate("/x", &host), None);
    }

    #[test]
    fn circles_end() {
        let space = mounts(&[
            (1, 0, 8, "/", "/"),
            (2, 3, 8, "/", "/a"),
            (3, 2, 8, "/", "/a"),
        ]);
        assert_eq!(space.translate("/a", &host()).as_deref(), Some("/a"));
        let none = mounts(&[(2, 3, 8, "/", "/"), (3, 2, 8, "/", "/")]);
        assert_eq!(none.translate("/a", &host()), None);
    }
}
