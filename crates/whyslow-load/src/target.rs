//! Requests, prepared once so that sending one costs as little as possible.

use std::sync::Arc;

use bytes::Bytes;
use hyper::header::{ACCEPT, CONTENT_LENGTH, HOST, HeaderMap, HeaderName, HeaderValue, USER_AGENT};
use hyper::{Method, Uri};

use crate::LoadError;
use crate::line::Part;

/// A URL to request.
#[derive(Debug)]
pub struct Target {
    /// The URL as given, without the fragment.
    pub url: String,
    /// Request method.
    pub method: Method,
    /// The path without its query.
    pub endpoint: String,
    pub(crate) origin: Origin,
    /// Path and query, for HTTP/1.1.
    pub(crate) path: Uri,
    /// The whole URI, for HTTP/2.
    pub(crate) whole: Uri,
    /// Headers of every request; HTTP/2 uses no `host`.
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    pub(crate) weight: u32,
    pub(crate) part: Part,
    /// Method and URL without its query: requests with the same group are aggregated.
    pub(crate) group: Arc<str>,
}

/// The server of a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Origin {
    pub(crate) is_tls: bool,
    /// IPv6 addresses without brackets.
    pub(crate) host: String,
    pub(crate) port: u16,
}

/// What all requests have in common.
#[derive(Debug, Clone)]
pub struct RequestTemplate {
    /// Method of requests; redirects may change it.
    pub method: Method,
    /// Headers of every request, in addition to those that the client sets itself.
    pub headers: HeaderMap,
    /// Body of every request; `None` for none.
    pub body: Option<Bytes>,
}

impl RequestTemplate {
    /// `headers` are lines like `Name: value`; a name followed by `;` sends an empty value.
    pub fn new(
        method: Option<&str>,
        headers: &[String],
        body: Option<Bytes>,
    ) -> Result<Self, LoadError> {
        let method = method.unwrap_or(if body.is_some() { "POST" } else { "GET" });
        let mut template = Self {
            method: method
                .parse()
                .ok()
                .filter(|method| *method != Method::CONNECT)
                .ok_or_else(|| LoadError::Method {
                    text: method.to_owned(),
                })?,
            headers: HeaderMap::new(),
            body,
        };
        let agent = concat!("whyslow/", env!("CARGO_PKG_VERSION"));
        template
            .headers
            .insert(USER_AGENT, HeaderValue::from_static(agent));
        template
            .headers
            .insert(ACCEPT, HeaderValue::from_static("*/*"));
        let mut seen: Vec<HeaderName> = Vec::new();
        for line in headers {
            let (name, value) = header(line)?;
            if seen.contains(&name) {
                template.headers.append(name, value);
            } else {
                template.headers.insert(name.clone(), value);
                seen.push(name);
            }
        }
        Ok(template)
    }

    /// Parses a URL. Without a scheme it is `http://`.
    pub fn target(&self, text: &str, weight: u32) -> Result<Target, LoadError> {
        let wrong = |reason: &str| LoadError::Url {
            text: text.to_owned(),
            reason: reason.to_owned(),
        };
        let url = text.split('#').next().unwrap_or_default();
        let url = if url.contains("://") {
            url.to_owned()
        } else {
            format!("http://{url}")
        };
        let uri: Uri = url
            .parse()
            .map_err(|error: hyper::http::uri::InvalidUri| wrong(&error.to_string()))?;
        let is_tls = match uri.scheme_str() {
            Some("http") => false,
            Some("https") => true,
            _ => return Err(wrong("only http:// and https:// are supported")),
        };
        let authority = uri.authority().ok_or_else(|| wrong("it has no host"))?;
        if authority.as_str().contains('@') {
            return Err(wrong(
                "send user names and passwords with -H 'Authorization: …'",
            ));
        }
        let host = authority.host();
        if host.is_empty() {
            return Err(wrong("it has no host"));
        }
        let port = match authority.as_str().strip_prefix(host) {
            None | Some("") => None,
            Some(_) => Some(authority.port_u16().ok_or_else(|| wrong("invalid port"))?),
        };
        let path = uri.path_and_query().map_or("/", |path| path.as_str());
        let path: Uri = if path.starts_with('/') {
            path.parse()
        } else {
            format!("/{path}").parse()
        }
        .map_err(|_| wrong("invalid path"))?;
        let mut headers = self.headers.clone();
        if !headers.contains_key(HOST) {
            let name = HeaderValue::from_str(authority.as_str());
            headers.insert(HOST, name.map_err(|_| wrong("invalid host"))?);
        }
        if self.body.is_some() {
            // The length is derived from the body itself.
            headers.remove(CONTENT_LENGTH);
        }
        Ok(Target {
            group: group(&self.method, &url),
            part: Part::of_target(self.method.as_str(), &url, path.path()),
            endpoint: path.path().to_owned(),
            method: self.method.clone(),
            origin: Origin {
                is_tls,
                host: host.trim_matches(['[', ']']).to_owned(),
                port: port.unwrap_or(if is_tls { 443 } else { 80 }),
            },
            path,
            whole: uri,
            headers,
            body: self.body.clone().unwrap_or_default(),
            weight,
            url,
        })
    }
}

/// The key of the totals.
fn group(method: &Method, url: &str) -> Arc<str> {
    let address = url.split('?').next().unwrap_or_default();
    format!("{method} {address}").into()
}

impl Target {
    /// Whether it is this machine, by a loopback address or `localhost`.
    pub fn is_loopback(&self) -> bool {
        let host = self.origin.host.as_str();
        let by_address = host.parse().map(|ip: std::net::IpAddr| ip.is_loopback());
        by_address.unwrap_or(host.eq_ignore_ascii_case("localhost"))
    }

    /// A copy that shares no data with the original.
    pub(crate) fn apart(&self) -> Self {
        let uri = |uri: &Uri| uri.to_string().parse().unwrap_or_else(|_| uri.clone());
        let mut headers = HeaderMap::with_capacity(self.headers.len());
        for (name, value) in &self.headers {
            let copy = HeaderValue::from_bytes(value.as_bytes());
            headers.append(name.clone(), copy.unwrap_or_else(|_| value.clone()));
        }
        Self {
            url: self.url.clone(),
            method: self.method.clone(),
            endpoint: self.endpoint.clone(),
            origin: self.origin.clone(),
            path: uri(&self.path),
            whole: uri(&self.whole),
            headers,
            // Never modified, so it can be shared.
            body: self.body.clone(),
            weight: self.weight,
            part: self.part.clone(),
            group: self.group.as_ref().into(),
        }
    }

    /// Name or address of the host, as in the URL; an IPv6 address without brackets.
    pub fn host(&self) -> &str {
        &self.origin.host
    }

    /// The request that a browser would send after a redirect with this status.
    pub(crate) fn redirected(
        &self,
        status: u16,
        location: &str,
        template: &RequestTemplate,
    ) -> Result<Target, LoadError> {
        let is_kept = matches!(status, 307 | 308) || self.method == Method::HEAD;
        let url = self.join(location).unwrap_or_default();
        let template = RequestTemplate {
            method: if is_kept {
                self.method.clone()
            } else {
                Method::GET
            },
            headers: template.headers.clone(),
            body: template.body.clone().filter(|_| is_kept),
        };
        template.target(&url, 0)
    }

    /// The URL of a redirect; `None` if it is invalid.
    pub(crate) fn join(&self, location: &str) -> Option<String> {
        if location.contains("://") {
            return Some(location.to_owned());
        }
        let (scheme, rest) = self.url.split_once("://")?;
        let authority = rest.split(['/', '?']).next()?;
        if let Some(rest) = location.strip_prefix("//") {
            return Some(format!("{scheme}://{rest}"));
        }
        if location.starts_with('/') {
            return Some(format!("{scheme}://{authority}{location}"));
        }
        let folder = self
            .endpoint
            .rsplit_once('/')
            .map_or("", |(folder, _)| folder);
        Some(format!("{scheme}://{authority}{folder}/{location}"))
    }
}

fn header(line: &str) -> Result<(HeaderName, HeaderValue), LoadError> {
    let wrong = |reason| LoadError::Header {
        text: line.to_owned(),
        reason,
    };
    let (name, value) = match (line.split_once(':'), line.strip_suffix(';')) {
        (Some((name, value)), _) => (name, value.trim()),
        (None, Some(name)) => (name, ""),
        (None, None) => return Err(wrong("the form is `Name: value`")),
    };
    let name = HeaderName::from_bytes(name.trim().as_bytes())
        .map_err(|_| wrong("its name has invalid characters"))?;
    let value = HeaderValue::from_bytes(value.as_bytes())
        .map_err(|_| wrong("its value has invalid characters"))?;
    Ok((name, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_taken_apart_or_refused_with_the_reason() {
        let template = RequestTemplate::new(None, &[], None).expect("GET");
        let check = |text: &str, expected: Result<(&str, u16, &str), &str>| match (
            template.target(text, 1),
            expected,
        ) {
            (Ok(target), Ok((host, port, endpoint))) => {
                assert_eq!(target.origin.host, host, "{text}");
                assert_eq!(target.origin.port, port, "{text}");
                assert_eq!(target.endpoint, endpoint, "{text}");
            }
            (Err(error), Err(part)) => {
                assert!(error.to_string().contains(part), "{text}: {error}");
            }
            (got, want) => panic!("{text}: {got:?}, not {want:?}"),
        };
        check("http://a.b/c?d#e", Ok(("a.b", 80, "/c")));
        check("https://a", Ok(("a", 443, "/")));
        check("localhost:8080/x", Ok(("localhost", 8080, "/x")));
        check("http://[::1]:81?q", Ok(("::1", 81, "/")));
        check("ftp://a/", Err("only http"));
        check("http://u:p@a/", Err("Authorization"));
        check("http://a:99999/", Err("invalid port"));
        check("http://", Err("is not a valid URL"));
        check("http://a/b c", Err("is not a valid URL"));
        check("", Err("is not a valid URL"));
    }

    #[test]
    fn a_redirect_is_read_from_where_it_came() {
        let template = RequestTemplate::new(None, &[], None).expect("GET");
        let from = template.target("http://a:81/b/c?d", 1).expect("a URL");
        let check = |location: &str, whole: &str| {
            assert_eq!(from.join(location).as_deref(), Some(whole));
        };
        check("/x?y", "http://a:81/x?y");
        check("x", "http://a:81/b/x");
        check("//e/x", "http://e/x");
        check("https://e/", "https://e/");
    }

    #[test]
    fn a_header_replaces_what_is_sent_by_default_and_may_come_twice() {
        let lines = [
            "Accept: a".to_owned(),
            "accept: b".to_owned(),
            "X-Empty;".to_owned(),
        ];
        let template =
            RequestTemplate::new(None, &lines, Some(Bytes::from_static(b"abc"))).expect("headers");
        let accepted: Vec<_> = template.headers.get_all(ACCEPT).iter().collect();
        assert_eq!(accepted, ["a", "b"]);
        assert_eq!(template.headers["x-empty"], "");
        assert_eq!(template.method, Method::POST);
        for wrong in ["none", "a b: c", "a: b\nc"] {
            assert!(
                RequestTemplate::new(None, &[wrong.to_owned()], None).is_err(),
                "{wrong}"
            );
        }
    }
}
