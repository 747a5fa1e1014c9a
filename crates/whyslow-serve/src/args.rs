use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use whyslow_base::time::{parse_duration, parse_size};

/// Shown above the flags in the help.
pub const EXAMPLES: &str = "\
Examples:
  whyslow serve web.wsl                        serve a recording; open the printed address
  whyslow serve monday.wsl tuesday.wsl         serve several recordings for comparison
  whyslow serve --port 7000 trace/             serve a trace of another tool on a fixed port
  whyslow serve --listen unix:/run/user/1000/w.sock web.wsl
  whyslow serve --lake s3://traces/lake web.wsl   also serve a lake of many hosts
  sudo whyslow serve @live                     serve the last minute of this machine, live";

const ENGINE: &str = "duckdb";

#[derive(Debug, Args)]
#[allow(missing_docs, reason = "clap would show comments as help")]
pub struct ServeArgs {
    /// Recordings or traces [default: @last]
    #[arg(value_name = "RECORDING")]
    pub recordings: Vec<String>,
    /// Listen on a loopback address or a Unix socket
    #[arg(
        long,
        value_name = "127.0.0.1:PORT|unix:PATH",
        default_value = "127.0.0.1:0",
        value_parser = ListenArg::parse
    )]
    pub listen: ListenArg,
    /// Listen on PORT of 127.0.0.1 [default: a free port]
    #[arg(long, value_name = "PORT", conflicts_with = "listen")]
    pub port: Option<u16>,
    /// Keep the access token in FILE across restarts; FILE is created if missing
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// Serve LAKE on the Fleet page (see `fleet`)
    #[arg(long, value_name = "LAKE")]
    pub lake: Option<String>,
    /// Run fleet queries with ENGINE: duckdb, or a Spark address
    #[arg(long, value_name = "ENGINE", default_value = ENGINE)]
    pub engine: String,
    /// Stop queries that take longer than DURATION
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = parse_length)]
    pub query_time: Duration,
    /// Stop queries if the server uses more than SIZE of memory
    #[arg(long, value_name = "SIZE", default_value = "4GiB", value_parser = parse_size)]
    pub query_memory: i64,
}

impl Default for ServeArgs {
    fn default() -> Self {
        Self {
            recordings: Vec::new(),
            listen: ListenArg::Address(SocketAddr::from(([127, 0, 0, 1], 0))),
            port: None,
            token_file: None,
            lake: None,
            engine: ENGINE.to_owned(),
            query_time: Duration::from_secs(30),
            query_memory: 4 << 30,
        }
    }
}

/// Address to listen on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ListenArg {
    /// A TCP socket on a loopback address.
    Address(SocketAddr),
    /// A Unix socket.
    Unix(PathBuf),
}

impl ListenArg {
    fn parse(text: &str) -> Result<Self, String> {
        if let Some(path) = text.strip_prefix("unix:") {
            return match path {
                "" => Err("missing path after `unix:`".to_owned()),
                path => Ok(Self::Unix(path.into())),
            };
        }
        let named = match text.strip_prefix("localhost") {
            Some(port) => format!("127.0.0.1{port}"),
            None => text.to_owned(),
        };
        let address: SocketAddr = named.parse().map_err(|_| {
            format!("cannot parse `{text}`: use 127.0.0.1:7000, [::1]:7000 or unix:PATH")
        })?;
        if address.ip().is_loopback() {
            return Ok(Self::Address(address));
        }
        Err(format!(
            "cannot listen on `{text}`, which other machines can reach: recordings show files and arguments \
             of all users. For remote access use ssh -L 7000:127.0.0.1:7000 HOST"
        ))
    }
}

fn parse_length(text: &str) -> Result<Duration, String> {
    let ns = parse_duration(text)?;
    match u64::try_from(ns) {
        Ok(ns) if ns > 0 => Ok(Duration::from_nanos(ns)),
        _ => Err("the duration must be greater than 0".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_machine_can_be_listened_at() {
        let check = |text: &str, is_taken: bool| {
            assert_eq!(ListenArg::parse(text).is_ok(), is_taken, "{text}");
        };
        check("127.0.0.1:0", true);
        check("127.8.9.1:80", true);
        check("localhost:7000", true);
        check("[::1]:0", true);
        check("unix:/run/w.sock", true);
        check("0.0.0.0:80", false);
        check("[::]:80", false);
        check("192.168.1.2:80", false);
        check("[::ffff:192.168.1.2]:80", false);
        check("example.org:80", false);
        check("localhost.example.org:80", false);
        check("unix:", false);
        check("127.0.0.1", false);
        check("", false);
    }
}
