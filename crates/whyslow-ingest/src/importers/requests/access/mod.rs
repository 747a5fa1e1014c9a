//! Access logs of nginx and Apache.
//!
//! Lines of the formats that servers have built in are known by their looks, with the host in front or not. nginx's
//! `$request_time` (and `$upstream_response_time`) behind them is known, too, as it has three places behind the point;
//! a whole number there may be anything, and is used only if a format says what it is.
//!
//! Times of whole seconds are those of the begin (Apache) or of the end (nginx); without a length nobody can tell which,
//! and a request is known with its end unknown. Built-in lines with a length are nginx's.

mod field;
mod format;
mod reader;

use std::collections::VecDeque;

use whyslow_model::stat::{self, Stat};

use super::lines::Parse;
use super::request::Request;
use crate::importers::stamp::{Clock, Shift};
use format::{Format, Server};
use reader::Reader;

/// A log whose lines have this format.
#[derive(Debug)]
pub(super) struct Access {
    reader: Reader,
    /// Formats that a line may have, too, where nobody named one.
    known: Vec<Format>,
    requests: u64,
}

/// Formats that are known by their looks, the likeliest first.
const KNOWN: [&str; 9] = [
    "combined",
    "common",
    "vhost_combined",
    "$remote_addr - $remote_user [$time_local] \"$request\" $status $body_bytes_sent \"$http_referer\" \"$http_user_agent\" \"$http_x_forwarded_for\"",
    "$remote_addr - $remote_user [$time_local] \"$request\" $status $body_bytes_sent \"$http_referer\" \"$http_user_agent\" $request_time",
    "$remote_addr - $remote_user [$time_local] \"$request\" $status $body_bytes_sent \"$http_referer\" \"$http_user_agent\" $request_time $upstream_response_time",
    "$remote_addr - $remote_user [$time_local] \"$request\" $status $body_bytes_sent \"$http_referer\" \"$http_user_agent\" \"$http_x_forwarded_for\" $request_time",
    "$remote_addr - $remote_user [$time_local] \"$request\" $status $body_bytes_sent \"$http_referer\" \"$http_user_agent\" \"$http_x_forwarded_for\" rt=$request_time uct=\"$upstream_connect_time\" uht=\"$upstream_header_time\" urt=\"$upstream_response_time\"",
    "$remote_addr - $remote_user [$time_local] \"$request\" $status $body_bytes_sent \"$http_referer\" \"$http_user_agent\" rt=$request_time uct=\"$upstream_connect_time\" uht=\"$upstream_header_time\" urt=\"$upstream_response_time\"",
];
/// The first lines that are looked at: what a client sent may be no request at all.
const LOOKED_AT: usize = 8;

/// Whether these first lines are of an access log in a format that is known by its looks.
pub(super) fn is_log(head: &str) -> bool {
    // The last line may be cut.
    let lines = head
        .split_inclusive('\n')
        .filter(|line| line.ends_with('\n') || !head.contains('\n'));
    let lines = lines.map(|line| line.trim_end_matches(['\n', '\r']));
    let known = known();
    let mut lines = lines.take(LOOKED_AT);
    lines.any(|line| known.iter().any(|format| Reader::fits(format, line)))
}

fn known() -> Vec<Format> {
    let formats = KNOWN.iter().filter_map(|text| match *text {
        "combined" | "common" | "vhost_combined" => Format::built_in(text),
        text => Format::compile(text).ok(),
    });
    formats.collect()
}

impl Access {
    /// Of the format that somebody named, or of one that is known by its looks.
    pub(super) fn new(format: Option<&str>, shift: Shift) -> Result<Access, String> {
        let (format, known) = match format {
            Some(format) => (Format::compile(format)?, Vec::new()),
            None => (Format::built_in(KNOWN[0]).ok_or("no format")?, known()),
        };
        Ok(Access {
            reader: Reader::new(format, shift),
            known,
            requests: 0,
        })
    }
}

impl Parse for Access {
    fn line(&mut self, line: &str, found: &mut VecDeque<Request>) -> Result<bool, String> {
        let request = match self.reader.read(line) {
            Ok(request) => request,
            Err(what) => {
                // Lines of virtual hosts may have another format than those before.
                let mut known = self.known.iter();
                let format = known.find(|format| Reader::fits(format, line));
                self.reader.format = format.ok_or(what)?.clone();
                self.reader.read(line)?
            }
        };
        self.requests += 1;
        found.push_back(request);
        Ok(true)
    }

    fn clock(&self) -> Option<&Clock> {
        Some(&self.reader.clock)
    }

    fn remarks(&self) -> Vec<(&'static Stat, u64)> {
        let lacks = &self.reader.lacks;
        vec![
            (&stat::REQUEST_NO_DURATION, lacks.durations),
            (&stat::REQUEST_TIME_COARSE, lacks.coarse),
            (&stat::REQUEST_NOT_ASKED, lacks.garbage),
            (
                &stat::REQUEST_ZONE_GUESSED,
                u64::from(self.reader.shift.is_guessed && self.requests > 0),
            ),
        ]
    }

    fn facts(&self) -> Vec<(&'static str, String)> {
        let server = match self.reader.format.server {
            Server::Nginx => "nginx",
            Server::Apache => "apache",
            Server::Either => return Vec::new(),
        };
        vec![("access_log_of", server.to_owned())]
    }
}
