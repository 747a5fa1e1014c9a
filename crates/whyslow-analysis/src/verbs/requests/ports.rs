//! Likely protocols by port: IANA's registry, and the defaults of programs.

const KNOWN: [(u16, &str); 37] = [
    (22, "ssh"),
    (25, "smtp"),
    (53, "dns"),
    (80, "http"),
    (88, "kerberos"),
    (111, "rpcbind"),
    (143, "imap"),
    (389, "ldap"),
    (443, "https"),
    (465, "smtps"),
    (587, "smtp"),
    (636, "ldaps"),
    (853, "dns"),
    (1433, "mssql"),
    (1521, "oracle"),
    (1883, "mqtt"),
    (2049, "nfs"),
    (2181, "zookeeper"),
    (2379, "etcd"),
    (3128, "http proxy"),
    (3306, "mysql"),
    (4222, "nats"),
    (4317, "otlp"),
    (4318, "otlp"),
    (5432, "postgresql"),
    (5672, "amqp"),
    (6379, "redis"),
    (6432, "postgresql"),
    (8080, "http"),
    (8125, "statsd"),
    (8443, "https"),
    (8500, "consul"),
    (9042, "cassandra"),
    (9092, "kafka"),
    (9200, "elasticsearch"),
    (11211, "memcached"),
    (27017, "mongodb"),
];

/// For `10.0.0.5:5432`, `[::1]:80`, or the path of a socket.
pub(super) fn protocol(peer: &str) -> Option<&'static str> {
    if peer.starts_with(['/', '@']) {
        return of_path(peer);
    }
    let port: u16 = peer.rsplit_once(':')?.1.parse().ok()?;
    let known = KNOWN.iter().find(|(known, _)| *known == port);
    known.map(|(_, protocol)| *protocol)
}

fn of_path(path: &str) -> Option<&'static str> {
    let known = [
        (".s.PGSQL.", "postgresql"),
        ("mysqld", "mysql"),
        ("mariadb", "mysql"),
        ("redis", "redis"),
        ("memcached", "memcached"),
        ("php", "fastcgi"),
        ("nscd", "names"),
        ("systemd/resolve", "names"),
        ("dev/log", "syslog"),
        ("docker.sock", "http"),
    ];
    let known = known.iter().find(|(part, _)| path.contains(part));
    known.map(|(_, protocol)| *protocol)
}

#[cfg(test)]
mod tests {
    use super::protocol;

    #[test]
    fn protocols_are_guessed_by_port_and_path() {
        for (peer, want) in [
            ("10.0.0.5:5432", Some("postgresql")),
            ("[::1]:80", Some("http")),
            ("/run/postgresql/.s.PGSQL.5432", Some("postgresql")),
            ("10.0.0.5:4711", None),
            ("10.0.0.5:x", None),
            ("socket:inet", None),
        ] {
            assert_eq!(protocol(peer), want, "{peer}");
        }
    }
}
