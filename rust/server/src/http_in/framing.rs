//! Where each request of a connection ends, read strictly: what two readers of HTTP could read in two ways is refused
//! before hyper sees it. So what a proxy took for a body is never read as a request here.
//!
//! | state | what comes | next |
//! |---|---|---|
//! | `Head` | a head, which is held until it is whole and has been checked | as its fields say: `Head`, `Length` or `Parts` |
//! | `Length` | a body of so many bytes | `Head` |
//! | `Parts` | a body in chunks | `Head`, behind the last trailer |
//!
//! After an error nothing more may be taken.

use std::mem;

use pie_host::{Error, ErrorCode};

/// Header fields of one request.
pub(super) const MAX_HEADERS: usize = 256;
/// Digits of the size of a chunk, as many as 64 bits have.
const MAX_SIZE_DIGITS: u32 = 16;
/// Characters of a value that a message shows.
const SHOWN_CHARS: usize = 80;

/// What became of the first bytes of what was given.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Taken {
    /// So many are held: the head is not whole.
    Held(usize),
    /// With so many a head is whole; this is all of it.
    Head(usize, Vec<u8>),
    /// So many are of a body.
    Body(usize),
}

/// How long the body behind a head is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BodyLength {
    Bytes(u64),
    Chunked,
}

/// The requests of one connection.
pub(super) struct Framing {
    state: State,
    /// What has come of a head.
    head: Vec<u8>,
    /// Where its last line begins.
    line: usize,
    /// Bytes that a head may have.
    most_bytes: usize,
}

#[derive(Clone, Copy)]
enum State {
    Head,
    Length(u64),
    Parts(Part),
}

/// Where a body in chunks stands.
#[derive(Clone, Copy)]
enum Part {
    /// In the size of a chunk.
    Size { n_bytes: u64, n_digits: u32 },
    /// In what may follow a size, and is not read.
    Extension { n_bytes: u64 },
    /// Before the line feed behind a size.
    SizeEnd { n_bytes: u64 },
    /// In a chunk, of which so much is to come.
    Data { n_left: u64 },
    /// Before the end of the line behind a chunk.
    DataEnd,
    /// Before the line feed behind a chunk.
    DataLineFeed,
    /// In a line behind the last chunk.
    Trailer { is_empty: bool },
    /// Before the line feed behind such a line.
    TrailerEnd { is_empty: bool },
}

impl Framing {
    /// Nothing has come yet; a head has at most so many bytes.
    pub(super) fn new(most_bytes: usize) -> Self {
        Self {
            state: State::Head,
            head: Vec::new(),
            line: 0,
            most_bytes,
        }
    }

    /// Whether what comes next is of a head.
    pub(super) fn is_in_head(&self) -> bool {
        matches!(self.state, State::Head)
    }

    /// Takes some of what comes, up to the end of a head or of a body.
    ///
    /// # Errors
    /// `protocol-error`, `limit-http-headers`.
    pub(super) fn take(&mut self, bytes: &[u8]) -> Result<Taken, Error> {
        match self.state {
            State::Head => self.take_head(bytes),
            State::Length(left) => {
                let n_bytes = at_most(bytes, left);
                self.state = State::of_length(left - n_bytes as u64);
                Ok(Taken::Body(n_bytes))
            }
            State::Parts(part) => self.take_parts(part, bytes),
        }
    }

    fn take_head(&mut self, bytes: &[u8]) -> Result<Taken, Error> {
        let mut start = 0;
        while let Some(at) = bytes[start..].iter().position(|byte| *byte == b'\n') {
            let end = start + at + 1;
            self.head.extend_from_slice(&bytes[start..end]);
            start = end;
            self.check_length()?;
            let line = &self.head[self.line..];
            let is_empty = is_empty_line(line);
            if is_empty && self.line == 0 && line.len() == 2 {
                // Some clients send an empty line behind a body, which is nothing.
                self.head.clear();
                continue;
            }
            self.line = self.head.len();
            if is_empty {
                let head = mem::take(&mut self.head);
                self.line = 0;
                self.state = match check_head(&head)? {
                    BodyLength::Bytes(n_bytes) => State::of_length(n_bytes),
                    BodyLength::Chunked => State::Parts(Part::FIRST),
                };
                return Ok(Taken::Head(start, head));
            }
        }
        let rest = &bytes[start..];
        if self.line == 0
            && rest
                .iter()
                .any(|byte| byte.is_ascii_control() && *byte != b'\r')
        {
            // Whoever speaks TLS waits for an answer before a line ends.
            return Err(violation("the first line has control characters"));
        }
        self.head.extend_from_slice(rest);
        self.check_length()?;
        Ok(Taken::Held(bytes.len()))
    }

    fn check_length(&self) -> Result<(), Error> {
        if self.head.len() <= self.most_bytes {
            return Ok(());
        }
        let message = format!(
            "the head of the request has more than {} bytes, twice server.http_header_bytes; send fewer headers, or raise the limit",
            self.most_bytes
        );
        Err(Error::new(ErrorCode::LimitHttpHeaders, message))
    }

    fn take_parts(&mut self, mut part: Part, bytes: &[u8]) -> Result<Taken, Error> {
        let mut at = 0;
        while at < bytes.len() {
            if let Part::Data { n_left } = part {
                let n_bytes = at_most(&bytes[at..], n_left);
                at += n_bytes;
                part = match n_left - n_bytes as u64 {
                    0 => Part::DataEnd,
                    n_left => Part::Data { n_left },
                };
                continue;
            }
            let Some(next) = part.next(bytes[at])? else {
                self.state = State::Head;
                return Ok(Taken::Body(at + 1));
            };
            part = next;
            at += 1;
        }
        self.state = State::Parts(part);
        Ok(Taken::Body(at))
    }
}

impl State {
    /// Before a body of so many bytes.
    fn of_length(n_bytes: u64) -> Self {
        match n_bytes {
            0 => Self::Head,
            n_bytes => Self::Length(n_bytes),
        }
    }
}

impl Part {
    /// Before the size of a chunk.
    const FIRST: Self = Self::Size {
        n_bytes: 0,
        n_digits: 0,
    };

    /// Where the body stands behind a byte that is not one of a chunk's; none at its end.
    fn next(self, byte: u8) -> Result<Option<Self>, Error> {
        let next = match (self, byte) {
            (Self::Size { n_digits: 0, .. }, b'\r' | b';' | b' ' | b'\t') => {
                return Err(violation("a chunk of the body has no size"));
            }
            (Self::Size { n_bytes, .. } | Self::Extension { n_bytes }, b'\r') => {
                Self::SizeEnd { n_bytes }
            }
            (Self::Size { n_bytes, .. }, b';' | b' ' | b'\t') => Self::Extension { n_bytes },
            (Self::Size { n_bytes, n_digits }, digit) => {
                let value = char::from(digit).to_digit(16);
                let (Some(value), true) = (value, n_digits < MAX_SIZE_DIGITS) else {
                    return Err(violation(
                        "the size of a chunk of the body is not a number of at most 16 hexadecimal digits",
                    ));
                };
                Self::Size {
                    n_bytes: (n_bytes << 4) | u64::from(value),
                    n_digits: n_digits + 1,
                }
            }
            (Self::SizeEnd { n_bytes: 0 }, b'\n') => Self::Trailer { is_empty: true },
            (Self::SizeEnd { n_bytes }, b'\n') => Self::Data { n_left: n_bytes },
            (Self::DataEnd, b'\r') => Self::DataLineFeed,
            (Self::DataLineFeed, b'\n') => Self::FIRST,
            (Self::DataEnd | Self::DataLineFeed, _) => {
                return Err(violation("a chunk of the body is longer than its size"));
            }
            (Self::Trailer { is_empty }, b'\r') => Self::TrailerEnd { is_empty },
            (Self::TrailerEnd { is_empty: true }, b'\n') => return Ok(None),
            (Self::TrailerEnd { is_empty: false }, b'\n') => Self::Trailer { is_empty: true },
            (Self::Extension { .. } | Self::Trailer { .. }, b'\n') => return Err(bare_line_feed()),
            (Self::SizeEnd { .. } | Self::TrailerEnd { .. }, _) => return Err(bare_return()),
            (Self::Trailer { .. }, _) => Self::Trailer { is_empty: false },
            (same @ (Self::Extension { .. } | Self::Data { .. }), _) => same,
        };
        Ok(Some(next))
    }
}

/// How many of `bytes` are of what has `left` bytes.
fn at_most(bytes: &[u8], left: u64) -> usize {
    usize::try_from(left).map_or(bytes.len(), |left| left.min(bytes.len()))
}

/// Checks a whole head; how long the body behind it is.
fn check_head(head: &[u8]) -> Result<BodyLength, Error> {
    check_lines(head)?;
    let mut fields = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut parsed = httparse::Request::new(&mut fields);
    match parsed.parse(head) {
        Ok(httparse::Status::Complete(_)) => {}
        Ok(httparse::Status::Partial) => return Err(violation("the head is cut off")),
        Err(httparse::Error::TooManyHeaders) => {
            let message = format!(
                "the request has more than {MAX_HEADERS} header fields; send fewer of them"
            );
            return Err(Error::new(ErrorCode::LimitHttpHeaders, message));
        }
        Err(error) => return Err(violation(&error.to_string())),
    }
    body_length(parsed.version == Some(1), parsed.headers)
}

/// Whether a line, with its end, is the empty one that ends a head, be it one of a line feed alone, which
/// [`check_lines`] refuses.
pub(crate) fn is_empty_line(line: &[u8]) -> bool {
    matches!(line, b"\r\n" | b"\n")
}

/// Checks that the lines of a head end as HTTP has it, and that each is one field.
///
/// # Errors
/// `protocol-error`.
pub(crate) fn check_lines(head: &[u8]) -> Result<(), Error> {
    for pair in head.windows(2) {
        match pair {
            [before, b'\n'] if *before != b'\r' => return Err(bare_line_feed()),
            [b'\r', after] if *after != b'\n' => return Err(bare_return()),
            [b'\n', b' ' | b'\t'] => {
                return Err(violation(
                    "a line begins with a blank; send each header field on one line",
                ));
            }
            _ => {}
        }
    }
    Ok(())
}

/// How long the body of a request is, of which its fields speak with one voice.
///
/// # Errors
/// `protocol-error`.
pub(crate) fn body_length(
    is_http_11: bool,
    fields: &[httparse::Header<'_>],
) -> Result<BodyLength, Error> {
    let mut lengths = values(fields, "content-length");
    let mut codings = values(fields, "transfer-encoding");
    if let Some(coding) = codings.next() {
        if lengths.next().is_some() {
            return Err(violation(
                "it has both Content-Length and Transfer-Encoding; send one of them",
            ));
        }
        if codings.next().is_some() {
            return Err(violation("it has Transfer-Encoding twice; send it once"));
        }
        if !is_http_11 {
            return Err(violation("HTTP/1.0 has no Transfer-Encoding"));
        }
        if !coding.trim_ascii().eq_ignore_ascii_case(b"chunked") {
            return Err(violation(&format!(
                "its Transfer-Encoding is {}; send \"chunked\", which alone is read here",
                shown(coding)
            )));
        }
        return Ok(BodyLength::Chunked);
    }
    let Some(length) = lengths.next() else {
        return Ok(BodyLength::Bytes(0));
    };
    if let Some(other) = lengths.find(|other| *other != length) {
        return Err(violation(&format!(
            "it has two values of Content-Length, {} and {}; send one",
            shown(length),
            shown(other)
        )));
    }
    let digits = length.trim_ascii();
    let number = std::str::from_utf8(digits)
        .ok()
        .filter(|_| !digits.is_empty() && digits.iter().all(u8::is_ascii_digit))
        .and_then(|digits| digits.parse().ok());
    number.map(BodyLength::Bytes).ok_or_else(|| {
        violation(&format!(
            "its Content-Length is {}, which is not a number of bytes",
            shown(length)
        ))
    })
}

/// The values of a field, as often as it stands there.
fn values<'a>(
    fields: &'a [httparse::Header<'a>],
    name: &'static str,
) -> impl Iterator<Item = &'a [u8]> {
    let named = fields
        .iter()
        .filter(move |field| field.name.eq_ignore_ascii_case(name));
    named.map(|field| field.value)
}

/// A value as a message shows it.
fn shown(value: &[u8]) -> String {
    let value = String::from_utf8_lossy(value);
    format!("{:?}", value.chars().take(SHOWN_CHARS).collect::<String>())
}

fn bare_line_feed() -> Error {
    violation("a line ends with a line feed alone; end each with CR LF")
}

fn bare_return() -> Error {
    violation("a carriage return stands without a line feed; end each line with CR LF")
}

fn violation(what: &str) -> Error {
    let message = format!("the request is not as HTTP/1.1 has it: {what}");
    Error::new(ErrorCode::ProtocolError, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOST_BYTES: usize = 1000;

    /// The messages of `bytes`, given so many at a time; what is wrong with them.
    fn read(bytes: &[u8], stride: usize) -> Result<Vec<String>, Error> {
        let mut framing = Framing::new(MOST_BYTES);
        let mut messages: Vec<String> = Vec::new();
        for mut part in bytes.chunks(stride) {
            while !part.is_empty() {
                let (n_bytes, text) = match framing.take(part)? {
                    Taken::Held(n_bytes) => (n_bytes, Vec::new()),
                    Taken::Head(n_bytes, head) => {
                        messages.push(String::new());
                        (n_bytes, head)
                    }
                    Taken::Body(n_bytes) => (n_bytes, part[..n_bytes].to_vec()),
                };
                if let Some(message) = messages.last_mut() {
                    message.push_str(&String::from_utf8(text).unwrap());
                }
                part = &part[n_bytes..];
            }
        }
        Ok(messages)
    }

    #[test]
    fn each_request_ends_where_its_fields_say() {
        let requests = [
            "GET /a HTTP/1.1\r\nHost: a\r\n\r\n",
            "POST /b HTTP/1.1\r\ncontent-length: 4\r\nContent-Length: 4\r\n\r\nGET ",
            "POST /c HTTP/1.1\r\nTransfer-Encoding: Chunked\r\n\r\n3\r\nabc\r\nA;b=\"c\"\r\n0123456789\r\n0\r\n\r\n",
            "POST /d HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n00\r\nA: b\r\nC: d\r\n\r\n",
            "POST /e HTTP/1.0\r\nContent-Length: 0\r\n\r\n",
            "GET /f HTTP/1.1\r\n\r\n",
        ];
        let all = requests.concat();
        for stride in [1, 2, 3, 7, all.len()] {
            assert_eq!(read(all.as_bytes(), stride).unwrap(), requests, "{stride}");
        }
        let behind_empty_lines = read(b"\r\n\r\nGET / HTTP/1.1\r\n\r\n", 1).unwrap();
        assert_eq!(behind_empty_lines, ["GET / HTTP/1.1\r\n\r\n"]);
    }

    #[test]
    fn what_can_be_read_in_two_ways_is_refused() {
        let chunked = "Transfer-Encoding: chunked\r\n";
        for fields in [
            "Transfer-Encoding: chunked, chunked\r\n",
            &format!("Content-Length: 3\r\n{chunked}"),
            &format!("{chunked}Content-Length: 3\r\n"),
            &format!("{chunked}{chunked}"),
            "Transfer-Encoding: gzip, chunked\r\n",
            "Transfer-Encoding: chunked, identity\r\n",
            "Transfer-Encoding: \x0bchunked\r\n",
            "Transfer-Encoding : chunked\r\n",
            "Content-Length: 3\r\nContent-Length: 4\r\n",
            "Content-Length: 3, 3\r\n",
            "Content-Length: +3\r\n",
            "Content-Length: -3\r\n",
            "Content-Length: 0x3\r\n",
            "Content-Length:\r\n",
            "Content-Length: 18446744073709551616\r\n",
            "A: b\nContent-Length: 3\r\n",
            "A: b\rContent-Length: 3\r\n",
            "A: b\r\n Content-Length: 3\r\n",
            "A: b\r\n\tContent-Length: 3\r\n",
        ] {
            let request = format!("POST / HTTP/1.1\r\n{fields}\r\n");
            for stride in [1, request.len()] {
                let error = read(request.as_bytes(), stride).unwrap_err();
                assert_eq!(error.code, ErrorCode::ProtocolError, "{request:?}");
            }
        }
        for request in [
            "GET / HTTP/1.1\nHost: a\n\n",
            "\nGET / HTTP/1.1\r\n\r\n",
            "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n",
            "GET /\r\n\r\n",
            "\u{16}\u{3}\u{1}",
        ] {
            let error = read(request.as_bytes(), 1).unwrap_err();
            assert_eq!(error.code, ErrorCode::ProtocolError, "{request:?}");
        }
    }

    #[test]
    fn chunks_that_can_be_read_in_two_ways_are_refused() {
        for body in [
            "\r\n",
            ";a\r\n",
            " 3\r\nabc\r\n",
            "x\r\n",
            "-1\r\n",
            "0x3\r\nabc\r\n",
            "3\nabc\r\n",
            "3\r\rabc",
            "3;a\nb\r\nabc\r\n",
            "3\r\nabcd\r\n",
            "3\r\nabc\n0\r\n\r\n",
            "00000000000000003\r\nabc\r\n",
            "ffffffffffffffffff\r\n",
            "0\r\nA: b\n\r\n",
            "0\r\nA: b\r\r\n",
            "0\r\n\n",
        ] {
            let request = format!("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n{body}");
            for stride in [1, request.len()] {
                let error = read(request.as_bytes(), stride).unwrap_err();
                assert_eq!(error.code, ErrorCode::ProtocolError, "{body:?}");
            }
        }
    }

    #[test]
    fn a_head_is_bounded() {
        for head in [
            "x".repeat(MOST_BYTES + 1),
            format!("GET / HTTP/1.1\r\n{}", "A: b\r\n".repeat(MOST_BYTES)),
        ] {
            let error = read(head.as_bytes(), 7).unwrap_err();
            assert_eq!(error.code, ErrorCode::LimitHttpHeaders);
        }
        let mut framing = Framing::new(1 << 20);
        let many = format!(
            "GET / HTTP/1.1\r\n{}\r\n",
            "A: b\r\n".repeat(MAX_HEADERS + 1)
        );
        let error = framing.take(many.as_bytes()).unwrap_err();
        assert_eq!(error.code, ErrorCode::LimitHttpHeaders);
    }
}
