//! Access logs of nginx and Apache.
//!
//! Predefined formats are detected, with or without the host in front. A following `$request_time`
//! (and `$upstream_response_time`) of nginx is detected by its three decimals; an integer there may
//! be anything, and is used only if a format defines it.
//!
//! A timestamp in whole seconds is the start of the request (Apache) or its end (nginx). Without a
//! duration the two cannot be distinguished, and the end of the request is unknown. Predefined
//! formats with a duration are nginx's.

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

/// A log in this format.
#[derive(Debug)]
pub(super) struct Access {
    reader: Reader,
    /// Alternative formats of a line, unless a format was specified.
    candidates: Vec<Format>,
    requests: u64,
}

/// Detected formats, the most frequent first.
const DETECTED: [&str; 9] = [
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
/// Number of first lines that are checked: a client may send arbitrary data instead of a request.
const HEAD_LINES_MAX: usize = 8;

/// Whether a file starting with `head` is an access log in a detected format.
pub(super) fn is_log(head: &str) -> bool {
    // The last line may be truncated.
    let lines = head
        .split_inclusive('\n')
        .filter(|line| line.ends_with('\n') || !head.contains('\n'));
    let lines = lines.map(|line| line.trim_end_matches(['\n', '\r']));
    let candidates = candidates();
    let mut lines = lines.take(HEAD_LINES_MAX);
    lines.any(|line| candidates.iter().any(|format| Reader::fits(format, line)))
}

fn candidates() -> Vec<Format> {
    let formats = DETECTED.iter().filter_map(|text| match *text {
        "combined" | "common" | "vhost_combined" => Format::built_in(text),
        text => Format::compile(text).ok(),
    });
    formats.collect()
}

impl Access {
    /// With a specified format, or with a detected one.
    pub(super) fn new(format: Option<&str>, shift: Shift) -> Result<Access, String> {
        let (format, candidates) = match format {
            Some(format) => (Format::compile(format)?, Vec::new()),
            None => (
                Format::built_in(DETECTED[0]).ok_or("unknown format")?,
                candidates(),
            ),
        };
        Ok(Access {
            reader: Reader::new(format, shift),
            candidates,
            requests: 0,
        })
    }
}

impl Parse for Access {
    fn line(&mut self, line: &str, found: &mut VecDeque<Request>) -> Result<bool, String> {
        let request = match self.reader.read(line) {
            Ok(request) => request,
            Err(what) => {
                // Lines of virtual hosts may have a different format.
                let mut candidates = self.candidates.iter();
                let format = candidates.find(|format| Reader::fits(format, line));
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
            (&stat::REQUEST_NOT_HTTP, lacks.garbage),
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
