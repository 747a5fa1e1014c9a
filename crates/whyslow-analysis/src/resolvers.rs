//! Resolver configuration of each mount namespace.
//!
//! `resolv.conf` is parsed like glibc does: the last of `domain` and `search` applies, at most
//! three servers are used, numeric options are capped at their limits, and without a server the
//! local host is queried.

use std::collections::BTreeMap;

use whyslow_model::answer::{AnswerColumn, Measure, Value};
use whyslow_model::sort::IndexSort;
use whyslow_model::tables::ResolverFileRow;
use whyslow_model::{Ns, Symbols};
use whyslow_store::{StoreError, Tables, rows};

const SERVERS_MAX: usize = 3;
const WORDS_MAX: usize = 32;
/// The server if none is configured.
const SERVER_DEFAULT: &str = "127.0.0.1";

/// Resolver configuration of a mount namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolver {
    /// Number of the mount namespace.
    pub mount_ns: i64,
    servers: Vec<String>,
    search: Vec<String>,
    timeout_s: i64,
    attempts: i64,
    /// Other options, verbatim.
    options: Vec<String>,
    /// Sources of names in order, such as `files dns`; `None` if not configured.
    hosts: Option<String>,
    /// Its files changed during the recording: this is their last content.
    pub is_changed: bool,
}

impl Resolver {
    fn new(mount_ns: i64) -> Self {
        Self {
            mount_ns,
            servers: Vec::new(),
            search: Vec::new(),
            timeout_s: 5,
            attempts: 2,
            options: Vec::new(),
            hosts: None,
            is_changed: false,
        }
    }

    /// From the content of `resolv.conf`; without that file, the defaults of C libraries apply.
    pub fn of(mount_ns: i64, resolv_conf: &str) -> Self {
        let mut resolver = Self::new(mount_ns);
        resolver.configure(resolv_conf);
        resolver
    }

    /// Addresses of the name servers, in order.
    pub fn servers(&self) -> Vec<&str> {
        match self.servers.as_slice() {
            [] => vec![SERVER_DEFAULT],
            servers => servers.iter().map(String::as_str).collect(),
        }
    }

    /// Applies the content of `resolv.conf`.
    fn configure(&mut self, text: &str) {
        let new = Self::new(self.mount_ns);
        (self.servers, self.search) = (new.servers, new.search);
        (self.timeout_s, self.attempts, self.options) = (new.timeout_s, new.attempts, new.options);
        for line in text.lines() {
            let mut words = line.split_whitespace().take(WORDS_MAX);
            let of = |words: &mut dyn Iterator<Item = &str>| words.map(str::to_owned).collect();
            match words.next() {
                Some("nameserver") if self.servers.len() < SERVERS_MAX => {
                    self.servers.extend(words.next().map(str::to_owned));
                }
                Some("domain") => self.search = of(&mut words.take(1)),
                Some("search") => self.search = of(&mut words),
                Some("options") => words.for_each(|option| self.option(option)),
                _ => {}
            }
        }
    }

    fn option(&mut self, option: &str) {
        let number = |name: &str, most: i64| {
            let number = option.strip_prefix(name)?.strip_prefix(':')?;
            number
                .parse::<i64>()
                .ok()
                .map(|number| number.clamp(0, most))
        };
        if let Some(timeout) = number("timeout", 30) {
            self.timeout_s = timeout;
        } else if let Some(attempts) = number("attempts", 5) {
            self.attempts = attempts;
        } else if self.options.len() < WORDS_MAX {
            self.options.push(option.to_owned());
        }
    }

    /// Applies the `hosts` line of `nsswitch.conf`.
    fn switch(&mut self, text: &str) {
        let mut lines = text.lines().filter_map(|line| {
            let line = line.split('#').next()?;
            line.trim_start().strip_prefix("hosts:")
        });
        self.hosts = lines.next().map(|line| {
            let words: Vec<&str> = line.split_whitespace().take(WORDS_MAX).collect();
            words.join(" ")
        });
    }

    /// Whether a server with this address is used.
    pub fn uses(&self, address: &str) -> bool {
        match self.servers.as_slice() {
            [] => address == SERVER_DEFAULT,
            servers => servers.iter().any(|server| server == address),
        }
    }

    /// Timeout in seconds, and number of attempts per server.
    pub fn patience(&self) -> (i64, i64) {
        (self.timeout_s, self.attempts)
    }

    /// Columns of [`Resolver::cells`], for tables with resolvers.
    pub fn columns() -> Vec<AnswerColumn> {
        let column = AnswerColumn::new;
        vec![
            column("nameservers", "name servers", Measure::Text),
            column("search", "search", Measure::Text).priority(2),
            column("timeout_ns", "timeout", Measure::Duration),
            column("attempts", "attempts", Measure::Count),
            column("options", "options", Measure::Text).priority(2),
            column("hosts", "sources", Measure::Text).priority(1),
        ]
    }

    /// One cell for each of [`Resolver::columns`].
    pub fn cells(&self) -> Vec<Value> {
        let list = |words: &[String]| match words {
            [] => Value::Null,
            words => Value::List(words.iter().map(|word| word.as_str().into()).collect()),
        };
        let servers = match self.servers.as_slice() {
            [] => Value::List(vec![SERVER_DEFAULT.into()]),
            servers => list(servers),
        };
        let timeout: Ns = self.timeout_s * 1_000_000_000;
        vec![
            servers,
            list(&self.search),
            timeout.into(),
            self.attempts.into(),
            list(&self.options),
            self.hosts.clone().into(),
        ]
    }
}

/// Configuration of each recorded mount namespace, by its number.
pub fn resolvers(tables: &dyn Tables) -> Result<BTreeMap<i64, Resolver>, StoreError> {
    let mut symbols = Symbols::new();
    let mut files = rows::<ResolverFileRow>(tables, &mut symbols)?;
    files.index_sort_by_ints(|row| [row.id, 0, 0]);
    let mut found: BTreeMap<i64, Resolver> = BTreeMap::new();
    let mut seen = std::collections::BTreeSet::new();
    for row in files {
        let resolver = found
            .entry(row.mount_ns)
            .or_insert_with(|| Resolver::new(row.mount_ns));
        let text = row.text.map_or("", |text| symbols.get(text));
        let path = symbols.get(row.path);
        match path {
            "/etc/resolv.conf" => resolver.configure(text),
            "/etc/nsswitch.conf" => resolver.switch(text),
            _ => {}
        }
        resolver.is_changed |= !seen.insert((row.mount_ns, row.path));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Resolver {
        let mut resolver = Resolver::new(7);
        // The previous content does not apply any more.
        resolver.configure("nameserver 9.9.9.9\nsearch old\noptions timeout:9 rotate\n");
        resolver.configure(text);
        resolver
    }

    #[test]
    fn options_are_those_of_glibc() {
        let plain = of("");
        assert_eq!((plain.timeout_s, plain.attempts), (5, 2));
        assert_eq!(plain.cells()[0], Value::List(vec![SERVER_DEFAULT.into()]));
        assert!(plain.uses("127.0.0.1") && !plain.uses("9.9.9.9"));
        assert_eq!(plain.patience(), (5, 2));
        let resolver = of(
            "# nameserver 1.1.1.1\nnameserver 10.0.0.1\n nameserver 10.0.0.2\n\
             domain d\nsearch a.example b.example\noptions timeout:1 attempts:99 ndots:5\n\
             options timeout:x single-request-reopen\nnameserver ::1\nnameserver 10.0.0.4\n",
        );
        assert_eq!(resolver.servers, ["10.0.0.1", "10.0.0.2", "::1"]);
        assert_eq!(resolver.search, ["a.example", "b.example"]);
        assert_eq!((resolver.timeout_s, resolver.attempts), (1, 5));
        assert_eq!(
            resolver.options,
            ["ndots:5", "timeout:x", "single-request-reopen"]
        );
        assert_eq!(of("search a b\ndomain d e\n").search, ["d"]);
    }

    #[test]
    fn sources_are_those_of_hosts() {
        let mut resolver = Resolver::new(7);
        resolver.switch("passwd: files\n#hosts: no\n hosts:\tfiles  dns [!UNAVAIL=return] # c\n");
        assert_eq!(
            resolver.hosts.as_deref(),
            Some("files dns [!UNAVAIL=return]")
        );
        resolver.switch("passwd: files\n");
        assert_eq!(resolver.hosts, None);
    }
}
