use std::collections::BTreeMap;

use proptest::prelude::*;
use proptest::sample::select;
use whyslow_analysis::pattern_of;
use whyslow_explain::template_of;

use super::*;

fn redactor(scope: Scope) -> Redactor {
    Redactor::new(Key::of(b"a key of tests"), scope)
}

fn texts() -> Redactor {
    redactor(Scope::Texts)
}

#[test]
fn what_identifies_nobody_stays() {
    let check = |text: &str| assert_eq!(texts().text(Class::Object, text), text);
    for text in [
        "/",
        "",
        "/usr/lib/x86_64-linux-gnu/libc.so.6",
        "/lib/x86_64-linux-gnu/libjson-c.so.5",
        "/etc/passwd",
        "/etc/resolv.conf",
        "/etc/ld.so.cache",
        "/proc/4711/maps",
        "/proc/sys/vm/dirty_expire_centisecs",
        "/sys/block/loop7/power/autosuspend_delay_ms",
        "/dev/null",
        "/dev/pts/3",
        "/dev/nvme0n1p1",
        "/dev/sda",
        "/var/log/apache2/access.log",
        "/tmp/17.txt",
        "../.",
        "socket:[1506316]",
        "socket:inet6",
        "pipe:#7",
        "pipe:[11390]",
        "anon_inode:[eventpoll]",
        "anon_inode:bpf-prog",
        "inode:[8:1/4711]",
        "127.0.0.1:80",
        "[::1]:443",
        "[::ffff:127.0.0.1]:22",
        "0.0.0.0:53",
        "/memfd:shared (deleted)",
        "[heap]",
    ] {
        check(text);
    }
}

/// Checks a replacement: the parts that stay, with `*` for those that do not.
fn check(class: Class, text: &str, expected: &str) {
    let new = texts().text(class, text);
    let parts: Vec<&str> = expected.split('*').collect();
    let mut rest = new.as_str();
    for (place, part) in parts.iter().enumerate() {
        let found = rest.find(part);
        let at = found.unwrap_or_else(|| panic!("{text} became {new}, not {expected}"));
        assert!(
            place == 0 || at > 0 || part.is_empty(),
            "{text} became {new}"
        );
        assert!(place > 0 || at == 0, "{text} became {new}, not {expected}");
        rest = &rest[at + part.len()..];
    }
    assert!(
        rest.is_empty() || expected.ends_with('*'),
        "{text} became {new}"
    );
    assert_ne!(new, text);
}

#[test]
fn paths_keep_their_structure() {
    for (path, expected) in [
        ("/home/alice/report.txt", "/home/*/report.txt"),
        (
            "/home/alice/tax2025.xls (deleted)",
            "/home/*/*.xls (deleted)",
        ),
        ("/srv/acme/orders.log", "/srv/*/*.log"),
        ("/srv/acmelog/1", "/srv/*log/1"),
        ("/usr/share/acme", "/usr/share/*"),
        ("/proc/17/cwd/home/alice", "/proc/17/cwd/home/*"),
        ("/proc/../home/alice", "/proc/../home/*"),
        ("/sys/fs/cgroup/acme.slice", "/sys/fs/cgroup/*.slice"),
        ("/sys/class/net/wgacme/mtu", "/sys/class/net/*/mtu"),
        ("/dev/mapper/vg-acme", "/dev/mapper/vg-*"),
        ("/dev/shm/acme", "/dev/shm/*"),
        ("/opt/acme/libacme.so.1", "/opt/*/*.so.1"),
        ("@/tmp/.acme/X0", "@/tmp/.*/X0"),
        ("/memfd:acme", "/memfd:*"),
        ("relative/acme.c", "*/*.c"),
        ("/straße", "/*"),
        ("/backup/10.1.2.3/x", "/backup/10.*/x"),
        ("/backup/ip-10-1-2-3", "/backup/ip-10-*"),
    ] {
        check(Class::Object, path, expected);
    }
}

#[test]
fn other_texts_keep_theirs() {
    for (class, text, expected) in [
        (Class::Address, "10.213.0.1:55714", "10.*:*"),
        (Class::Address, "192.168.7.4:443", "192.168.*:443"),
        (Class::Address, "8.8.8.8:53", "2*:53"),
        (Class::Address, "[2a00:1450::7]:443", "[2001:db8:*]:443"),
        (Class::Address, "[fe80::7%eth0]:443", "[fe80::*%eth0]:443"),
        (Class::Address, "02:42:ac:11:00:02", "02:*"),
        (Class::Host, "db7.acme.com", "*7.*.com"),
        (Class::Host, "10.1.2.3", "10.*"),
        (Class::Host, "data", "*"),
        (
            Class::Command,
            "/usr/bin/python3 -m acme --data-dir=/srv/acme --pass hunter2",
            "/usr/bin/python3 -m * --data-dir=/srv/* --pass *",
        ),
        (Class::Command, "sshd: alice [priv]", "sshd: * *"),
        (Class::Command, "sh -c 'psql -p 5432 acme'", "sh -c *"),
        (Class::Argument, "SELECT 1", "*"),
        (Class::Name, "alice", "*"),
        (Class::Name, "br-acme", "br-*"),
        (
            Class::Text,
            "user=alice at /home/alice from 10.1.2.3,",
            "user=* at /home/* from 10.*,",
        ),
        (Class::Log, "boom in /home/alice/x", "* in /home/*/x"),
        (
            Class::MountSource,
            "nas.acme.com:/export/acme",
            "*.com:/export/*",
        ),
        (Class::MountSource, "//nas/acme", "//*/*"),
        (
            Class::MountOptions,
            "rw,lowerdir=/srv/a1:/srv/acme,addr=10.1.2.3,size=65536k",
            "rw,lowerdir=/srv/a1:/srv/*,addr=10.*,size=65536k",
        ),
        (
            Class::ResolverFile,
            "# acme\nnameserver 10.1.2.3\nsearch acme.com\noptions timeout:9 ndots:2\n",
            "\nnameserver 10.*\nsearch *.com\noptions timeout:9 ndots:2\n",
        ),
        (
            Class::ResolverFile,
            "10.1.2.3 db.acme.com db\n",
            "10.* *.com *\n",
        ),
    ] {
        check(class, text, expected);
    }
    let same = |class, text: &str| assert_eq!(texts().text(class, text), text);
    same(Class::Comm, "acme-worker");
    same(Class::Function, "acme::charge");
    same(
        Class::Log,
        "17 times: an event id that the metadata does not declare",
    );
    same(Class::Log, "sched_stat_runtime: 16265 events");
    same(Class::ResolverFile, "hosts: files dns\n");
    same(Class::Name, "root");
    same(Class::Host, "localhost");
}

#[test]
fn names_are_hidden_where_that_is_asked_for() {
    let redactor = redactor(Scope::Names).with_kernel(BTreeSet::from(["vfs_read".to_owned()]));
    let stays = |class, text: &str| redactor.text(class, text) == text;
    assert!(!stays(Class::Comm, "acme-worker") && !stays(Class::Function, "acme::charge"));
    assert!(!stays(Class::Event, "acme:charge") && stays(Class::Event, "sched_switch"));
    assert!(stays(Class::Comm, "kworker/u8:3-ev") && stays(Class::Comm, "postgres"));
    assert!(stays(Class::Function, "vfs_read") && stays(Class::Public, "acme"));
    assert!(
        stays(Class::Comm, "whyslow"),
        "the recorder is known by its name"
    );
}

#[test]
fn what_stands_for_a_word_is_the_same_wherever_it_is() {
    let redactor = texts();
    let user = redactor.text(Class::Name, "alice");
    let home = redactor.text(Class::Object, "/home/alice/mail");
    assert_eq!(home, format!("/home/{user}/mail"));
    let id = "0b2c4d6e8f0a1b3c5d7e9f0a1b2c3d4e5f60718293a4b5c6d7e8f90a1b2c3d4e";
    let container = redactor.text(Class::Name, id);
    let cgroup = redactor.text(Class::Object, &format!("/docker/{id}"));
    assert_eq!(cgroup, format!("/docker/{container}"));
    let address = redactor.text(Class::Address, "10.1.2.3:50000");
    assert_eq!(redactor.text(Class::Object, "10.1.2.3:50000"), address);
}

#[test]
fn no_number_becomes_that_of_a_processor() {
    let new = |path: &str| texts().text(Class::Object, path);
    for number in 100..9999 {
        let path = format!("/tmp/i{number}/x");
        let is_processor = matches!(number, 386 | 686);
        assert_eq!(new(&path) == path && is_processor, is_processor, "{path}");
        assert_eq!(
            pattern_of(&new(&path)) == new(&path),
            is_processor,
            "{path}"
        );
    }
}

#[test]
fn another_key_gives_other_words() {
    let other = Redactor::new(Key::of(b"another one of tests"), Scope::Texts);
    for (class, text) in [
        (Class::Object, "/home/alice"),
        (Class::Address, "10.1.2.3:50000"),
        (Class::Host, "db7.acme.com"),
        (Class::Argument, "hunter2"),
    ] {
        assert_ne!(other.text(class, text), texts().text(class, text));
    }
}

/// Components as programs create them: words, numbers, ids, temporary names.
fn component() -> impl Strategy<Value = String> {
    let word = prop_oneof![
        Just("log".to_owned()),
        Just("cache".to_owned()),
        "[a-z]{1,12}",
        "[A-Z]{1,5}",
        "[0-9]{1,7}",
        "[a-f0-9]{2,20}",
        "[A-F0-9]{2,20}",
        "[a-zA-Z0-9]{2,26}",
        "[a-z]{1,6}[0-9]{1,5}",
        "[a-f]{1,6}[0-9]{1,5}",
        "[0-9]{1,4}[a-z]{1,4}",
        "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
        "[äöü]{1,3}",
    ];
    let mark = select(vec!["-", "_", ".", " ", ":", "--", "~"]);
    let more = proptest::collection::vec((mark, word.clone()), 0..3);
    (word, more).prop_map(|(first, more)| {
        let more = more.into_iter().map(|(mark, word)| format!("{mark}{word}"));
        std::iter::once(first).chain(more).collect()
    })
}

fn path() -> impl Strategy<Value = String> {
    let root = select(vec![
        "/tmp", "/srv/x", "/usr/lib", "/proc", "/dev", "/home", "",
    ]);
    let parts = proptest::collection::vec(component(), 1..4);
    let end = select(vec!["", ".log", ".so.6", ".so", ".1", " (deleted)", ".txt"]);
    (root, parts, end).prop_map(|(root, parts, end)| format!("{root}/{}{end}", parts.join("/")))
}

/// Paths of which many are similar: their parts come from a small set.
fn paths() -> impl Strategy<Value = Vec<String>> {
    let digits = |path: String| {
        let other = path.replace('1', "7").replace('4', "0").replace('b', "d");
        [path, other]
    };
    let paths = proptest::collection::vec(path(), 1..12);
    paths.prop_map(move |paths| paths.into_iter().flat_map(digits).collect())
}

/// Groups the paths by a key.
fn groups<'p>(paths: &'p [String], key: impl Fn(&'p str) -> String) -> Vec<usize> {
    let mut numbers: BTreeMap<String, usize> = BTreeMap::new();
    let number = |path: &'p String| {
        let next = numbers.len();
        *numbers.entry(key(path)).or_insert(next)
    };
    paths.iter().map(number).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn patterns_survive(paths in paths()) {
        let redactor = texts();
        let new = |path: &str| redactor.text(Class::Object, path);
        let same = |path: &str| path.to_owned();
        prop_assert_eq!(groups(&paths, same), groups(&paths, new));
        let before = groups(&paths, |path| pattern_of(path).into_owned());
        prop_assert_eq!(before, groups(&paths, |path| pattern_of(&new(path)).into_owned()));
        let before = groups(&paths, template_of);
        prop_assert_eq!(before, groups(&paths, |path| template_of(&new(path))));
        for path in &paths {
            prop_assert_eq!(template_of(path).contains('*'), template_of(&new(path)).contains('*'));
        }
    }

    #[test]
    fn what_is_below_a_folder_stays_below_it(parent in path(), child in component()) {
        let new = texts().text(Class::Object, &format!("{parent}/{child}"));
        let above = texts().text(Class::Object, &parent);
        let above = if parent.ends_with(" (deleted)") {
            // Only at the end of a path does this mean that the file is deleted.
            texts().text(Class::Object, &format!("{parent}/"))
        } else {
            format!("{above}/")
        };
        prop_assert!(new.starts_with(&above), "{new} is not below {above}");
    }

    #[test]
    fn any_text_of_any_class_has_something_that_stands_for_it(text in any::<String>()) {
        for (_, columns) in class::COLUMNS {
            for (_, class) in *columns {
                redactor(Scope::Names).text(*class, &text);
            }
        }
    }

    #[test]
    fn addresses_of_one_kind_are_told_apart(
        a in any::<[u8; 4]>(),
        b in any::<[u8; 4]>(),
        ports in any::<(u16, u16)>(),
    ) {
        let redactor = texts();
        let of = |ip: [u8; 4], port: u16| {
            redactor.text(Class::Address, &format!("10.{}.{}.{}:{port}", ip[1], ip[2], ip[3]))
        };
        let (first, second) = (of(a, ports.0), of(b, ports.1));
        prop_assert_eq!(first == second, a[1..] == b[1..] && ports.0 == ports.1);
        let port: u16 = first.rsplit(':').next().and_then(|port| port.parse().ok()).unwrap_or(0);
        prop_assert_eq!(port < 1024, ports.0 < 1024);
        prop_assert_eq!(port < 32768, ports.0 < 32768);
    }
}

/// Words of consonants only, which have no public word as a part.
fn secret() -> impl Strategy<Value = String> {
    prop_oneof!["[bcdfghjkmnpqrtvwxz]{9,14}", "[BCDFGHJKMNPQRTVWXZ]{9,14}"]
}

proptest! {
    #[test]
    fn no_part_of_a_secret_is_shown(secret in secret(), other in secret()) {
        // Replacement letters may have four in common by chance, but not under each key.
        let keys: [&[u8]; 2] = [b"a key of tests", b"another"];
        let redactors = keys.map(|key| Redactor::new(Key::of(key), Scope::Names));
        let planted = [
            (Class::Object, format!("/home/{secret}/{other}.txt")),
            (Class::Object, format!("/opt/{secret}-{other}/lib{secret}.so.1 (deleted)")),
            (Class::Object, format!("/usr/share/{secret}/x.{other}")),
            (Class::Object, format!("{secret}/{other}")),
            (Class::Object, format!("@{secret}")),
            (Class::Object, format!("/memfd:{secret} (deleted)")),
            (Class::Object, format!("pipe:[{secret}]")),
            (Class::Object, format!("anon_inode:[{secret}]")),
            (Class::Object, format!("/dev/{secret}/{other}")),
            (Class::Object, format!("/dev/sd{secret}")),
            (Class::Object, format!("/proc/self/cwd/{secret}")),
            (Class::Object, format!("/proc/../{secret}")),
            (Class::Object, format!("/sys/fs/cgroup/{secret}.slice/{other}17")),
            (Class::Object, format!("/lib/../{secret}/{other}.so")),
            (Class::Object, format!("/tmp/{secret}1234{other}")),
            (Class::Address, format!("{secret}:80")),
            (Class::Host, format!("{secret}.{other}.com")),
            (Class::Host, format!("db-{secret}17")),
            (Class::Command, format!("{secret} --{other} --file={secret} '{other} {secret}' -p{other}")),
            (Class::Command, format!("'/srv/{secret}/x' /{other} \"{secret}\\\" {other}")),
            (Class::Argument, format!("{secret}={other}")),
            (Class::Argument, format!("/{secret}?{other}")),
            (Class::Name, format!("{secret}@{other}")),
            (Class::Comm, secret.clone()),
            (Class::Function, format!("{secret}::{other}<T>")),
            (Class::Event, format!("{secret}:{other}")),
            (Class::Text, format!("key={secret}, ({other}) /{secret}/{other} http://{secret}/{other}")),
            (Class::Fact, format!("5.10.0-{secret} {other}")),
            (Class::Log, format!("3 times: {secret}")),
            (Class::Log, format!("{secret}: 3 {other}")),
            (Class::ResolverFile, format!("search {secret}.com\n# {other}\n10.0.0.1 {other}\n{secret} {other}\n")),
            (Class::MountSource, format!("{secret}:/{other}")),
            (Class::MountSource, format!("/dev/mapper/{secret}-{other}")),
            (Class::MountOptions, format!("{secret},lowerdir=/{secret}:/{other},user={other}")),
        ];
        for (class, text) in planted {
            let new = redactors.each_ref().map(|redactor| redactor.text(class, &text));
            for part in [&secret, &other] {
                for begin in 0..=part.len() - 4 {
                    let part = &part[begin..begin + 4];
                    let is_shown = new.iter().all(|new| new.contains(part));
                    prop_assert!(!is_shown || part == "http", "{text} became {new:?}, with {part} in it");
                }
            }
        }
    }
}
