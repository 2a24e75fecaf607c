//! As much HTTP/1.1 as one answer per connection takes: what a request asks for, and how an answer is written.

use std::time::SystemTime;

use crate::scrape::Format;

/// Lines of a request's head.
const MOST_HEADERS: usize = 64;

/// What a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Page {
    /// What there is here.
    Index,
    /// The counters.
    Counters(Format),
}

/// A request that was understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// What it asks for.
    pub page: Page,
    /// Whether the body is left out: the method is HEAD.
    pub only_head: bool,
}

/// Why there is no page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It is no request of HTTP/1.
    BadRequest,
    /// The format is unknown.
    BadFormat,
    /// There is no such page.
    NotFound,
    /// Only GET and HEAD are allowed.
    BadMethod,
    /// The request did not come in time.
    TooSlow,
    /// The head is too long.
    TooLong,
    /// The counters cannot be read now.
    Unreadable,
    /// Another version of HTTP.
    BadVersion,
}

impl Refusal {
    fn status(self) -> &'static str {
        match self {
            Refusal::BadRequest | Refusal::BadFormat => "400 Bad Request",
            Refusal::NotFound => "404 Not Found",
            Refusal::BadMethod => "405 Method Not Allowed",
            Refusal::TooSlow => "408 Request Timeout",
            Refusal::TooLong => "431 Request Header Fields Too Large",
            Refusal::Unreadable => "503 Service Unavailable",
            Refusal::BadVersion => "505 HTTP Version Not Supported",
        }
    }

    fn text(self) -> &'static str {
        match self {
            Refusal::BadRequest => "this is no request of HTTP/1.1\n",
            Refusal::BadFormat => "format is shoal or vpp\n",
            Refusal::NotFound => "there are / and /metrics\n",
            Refusal::BadMethod => "only GET and HEAD are allowed\n",
            Refusal::TooSlow => "the request did not come in time\n",
            Refusal::TooLong => "the request's head is too long\n",
            Refusal::Unreadable => "the counters cannot be read now\n",
            Refusal::BadVersion => "only HTTP/1.0 and HTTP/1.1 are spoken\n",
        }
    }
}

/// Reads a head; nothing if it has not ended yet.
///
/// # Errors
/// What to answer instead of a page.
pub fn parse(head: &[u8]) -> Result<Option<Request>, Refusal> {
    let mut headers = [httparse::EMPTY_HEADER; MOST_HEADERS];
    let mut request = httparse::Request::new(&mut headers);
    match request.parse(head) {
        Ok(httparse::Status::Complete(_)) => {}
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(httparse::Error::TooManyHeaders) => return Err(Refusal::TooLong),
        Err(httparse::Error::Version) => return Err(Refusal::BadVersion),
        Err(_) => return Err(Refusal::BadRequest),
    }
    // RFC 9112 3.2: a request of HTTP/1.1 has exactly one Host.
    let hosts = request.headers.iter().filter(|h| h.name.eq_ignore_ascii_case("host")).count();
    if hosts > 1 || (hosts == 0 && request.version == Some(1)) {
        return Err(Refusal::BadRequest);
    }
    let (Some(method), Some(target)) = (request.method, request.path) else {
        return Err(Refusal::BadRequest);
    };
    let page = page(target)?;
    match method {
        "GET" => Ok(Some(Request { page, only_head: false })),
        "HEAD" => Ok(Some(Request { page, only_head: true })),
        _ => Err(Refusal::BadMethod),
    }
}

fn page(target: &str) -> Result<Page, Refusal> {
    // RFC 9112 3.2.2: also the absolute form is understood.
    let target = match target.split_once("://") {
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http") => {
            rest.find(['/', '?']).map_or("/", |at| rest.split_at(at).1)
        }
        _ => target,
    };
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    match path {
        "" | "/" => Ok(Page::Index),
        "/metrics" => format(query).map(Page::Counters),
        _ => Err(Refusal::NotFound),
    }
}

/// The words behind the question mark; the last one counts.
fn format(query: &str) -> Result<Format, Refusal> {
    query.split('&').filter(|word| !word.is_empty()).try_fold(Format::Shoal, |_, word| match word {
        "format=shoal" => Ok(Format::Shoal),
        "format=vpp" => Ok(Format::Vpp),
        _ => Err(Refusal::BadFormat),
    })
}

/// The head of an answer with a page.
pub fn head(content_type: &str, length: usize) -> String {
    lines("200 OK", "", content_type, length)
}

/// A whole answer without a page.
pub fn refusal(why: Refusal) -> String {
    let allow = if why == Refusal::BadMethod { "Allow: GET, HEAD\r\n" } else { "" };
    let text = why.text();
    lines(why.status(), allow, TEXT, text.len()) + text
}

/// What is no page of counters.
pub const TEXT: &str = "text/plain; charset=utf-8";

fn lines(status: &str, more: &str, content_type: &str, length: usize) -> String {
    // RFC 9110 6.6.1: a server with a clock sends the date.
    let date = httpdate::fmt_http_date(SystemTime::now());
    format!(
        "HTTP/1.1 {status}\r\nDate: {date}\r\n{more}Content-Type: {content_type}\r\nContent-Length: {length}\r\n\
         Connection: close\r\n\r\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(target: &str) -> Result<Page, Refusal> {
        let head = format!("GET {target} HTTP/1.1\r\nHost: x\r\n\r\n");
        parse(head.as_bytes()).map(|request| request.unwrap().page)
    }

    #[test]
    fn targets_lead_to_pages() {
        for (target, page) in [
            ("/", Ok(Page::Index)),
            ("/metrics", Ok(Page::Counters(Format::Shoal))),
            ("/metrics?", Ok(Page::Counters(Format::Shoal))),
            ("/metrics?format=vpp", Ok(Page::Counters(Format::Vpp))),
            ("/metrics?format=vpp&&format=shoal", Ok(Page::Counters(Format::Shoal))),
            ("http://router:9482/metrics?format=vpp", Ok(Page::Counters(Format::Vpp))),
            ("HTTP://router", Ok(Page::Index)),
            ("/metrics?format=xml", Err(Refusal::BadFormat)),
            ("/metrics?%ff&&==", Err(Refusal::BadFormat)),
            ("/metrics/", Err(Refusal::NotFound)),
            ("/metricsformat=vpp", Err(Refusal::NotFound)),
            ("*", Err(Refusal::NotFound)),
        ] {
            assert_eq!(of(target), page, "{target}");
        }
    }

    #[test]
    fn what_is_no_request_is_refused() {
        for (text, why) in [
            ("nonsense\r\n\r\n", Refusal::BadRequest),
            ("GET  / HTTP/1.1\r\nHost: x\r\n\r\n", Refusal::BadRequest),
            ("GET / HTTP/1.1\r\n\r\n", Refusal::BadRequest),
            ("GET / HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n", Refusal::BadRequest),
            ("GET / HTTP/1.1\r\nHost : x\r\n\r\n", Refusal::BadRequest),
            ("\0GET / HTTP/1.1\r\nHost: x\r\n\r\n", Refusal::BadRequest),
            ("GET / HTTP/3.7\r\nHost: x\r\n\r\n", Refusal::BadVersion),
            ("DELETE /metrics HTTP/1.1\r\nHost: x\r\n\r\n", Refusal::BadMethod),
        ] {
            assert_eq!(parse(text.as_bytes()), Err(why), "{text:?}");
        }
        let many = format!("GET / HTTP/1.1\r\nHost: x\r\n{}\r\n", "a: b\r\n".repeat(MOST_HEADERS));
        assert_eq!(parse(many.as_bytes()), Err(Refusal::TooLong));
    }

    #[test]
    fn a_head_in_pieces_is_waited_for_and_the_oldest_version_is_spoken() {
        let head = b"HEAD /metrics HTTP/1.0\r\nAccept: */*\r\n\r\n";
        for end in 0..head.len() {
            assert_eq!(parse(&head[..end]), Ok(None), "{end}");
        }
        let whole = Request { page: Page::Counters(Format::Shoal), only_head: true };
        assert_eq!(parse(head), Ok(Some(whole)));
    }

    #[test]
    fn answers_say_how_long_they_are() {
        let answer = refusal(Refusal::BadMethod);
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 405 ") && head.contains("\r\nAllow: GET, HEAD\r\n"), "{head}");
        assert!(head.contains(&format!("\r\nContent-Length: {}\r\n", body.len())), "{head}");
        assert!(head.contains(" GMT\r\n") && head.ends_with("Connection: close"), "{head}");
    }
}
