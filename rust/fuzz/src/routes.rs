//! Clients that ask programs by any bytes: request lines, paths, headers and framing that are right, spoiled, or none.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use arbitrary::Unstructured;
use pie_host::{Component, Host, HostConfig, runtime_name};
use pie_server::{Server, ServerConfig};
use tempfile::TempDir;

use crate::guest;
use crate::talking::{Ending, PATIENCE, Step, frame, framed, holds, spoiled, talk, talk_and};
use crate::written::{expanded, written};

/// What a connection that is written down may have, in bytes. It fits into the buffers of a socket.
const MAX_BYTES: usize = 64 << 10;
/// What stands between the parts that are sent one after the other.
const END_OF_PART: u8 = 0x1e;
/// What begins a connection that the server has to close.
const WAITS: u8 = b'~';
/// How an answer begins.
const VERSIONS: [&[u8]; 2] = [b"HTTP/1.1 ", b"HTTP/1.0 "];
const END_OF_HEAD: &[u8] = b"\r\n\r\n";
/// The statuses of a server whose programs answer nothing: that it goes on, its probes, and what it refuses.
const STATUSES: &[u16] = &[
    100, 101, 200, 400, 401, 403, 404, 405, 408, 413, 414, 426, 429, 431, 500, 501, 503, 504,
];
/// The status behind which HTTP ends.
const SWITCHING: u16 = 101;
/// Asked after each connection, by somebody else; there is no such program.
const HONEST: &str = "GET /http/absent/ HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";

const METHODS: &[&str] = &[
    "GET", "GET", "POST", "POST", "HEAD", "PUT", "OPTIONS", "CONNECT", "TRACE", "get", "",
];
const PATHS: &[&str] = &[
    "/http/open/",
    "/http/open@1/a?b=c",
    "/http/~fuzzer/open/a/../b?c=/d",
    "/http/~fuzzer/closed/",
    "/http/~other/open/",
    "/http/~/open/",
    "/http/~fuzzer/sha256:00/",
    "/http/",
    "/http//open",
    "/http/%2e%2e/%00",
    "/http/absent",
    "http://localhost/http/open/",
    "*",
    "/healthz",
    "/",
];
const HEADERS: &[&str] = &[
    "Content-Length: 3",
    "Content-Length: 3",
    "Content-Length: 4",
    "Content-Length: +3",
    "Content-Length: 3, 3",
    "Content-Length: 18446744073709551616",
    "Transfer-Encoding: chunked",
    "Transfer-Encoding: chunked",
    "Transfer-Encoding: gzip, chunked",
    "Transfer-Encoding : chunked",
    "Transfer-Encoding: identity",
    "Expect: 100-continue",
    "Connection: close",
    "Connection: keep-alive, Content-Length",
    "Upgrade: websocket",
    "Authorization: Bearer pie_0",
    "X-Pie-User: other",
    "Origin: https://evil.example",
    "Sec-Fetch-Site: cross-site",
    "Host: evil.example",
    " folded: line",
    "no colon",
    "A: \u{0}",
];
const BODIES: &[&str] = &[
    "",
    "abc",
    "3\r\nabc\r\n0\r\n\r\n",
    "3;a=\"b\"\r\nabc\r\n0\r\nA: b\r\n\r\n",
    "ffffffffffffffff\r\nabc",
    "-1\r\n",
    "0x3\r\nabc\r\n",
    "0\r\n\r\nGET /http/open/ HTTP/1.1\r\nHost: localhost\r\n\r\n",
];

/// A server that all inputs share.
struct Served {
    server: Server,
    _folder: TempDir,
}

fn served() -> &'static Served {
    static SERVED: OnceLock<Served> = OnceLock::new();
    SERVED.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let mut config = ServerConfig::new(folder.path().to_owned());
        config.port = 0;
        config.handshake_timeout = Duration::from_millis(200);
        config.http_header_bytes = 8 << 10;
        config.http_body_bytes = 4 << 10;
        config.http_idle = Duration::from_millis(100);
        config.http_answer = Duration::from_secs(2);
        config.max_ended_processes = 20;
        let mut host = HostConfig::default();
        host.limits.wall = Some(Duration::from_secs(2));
        let host = Arc::new(Host::new(host).unwrap());
        let server = Server::start(host, config).unwrap();
        let served = Served {
            server,
            _folder: folder,
        };
        served.prepare();
        served
    })
}

impl Served {
    /// Installs a program that anybody may ask, and one that is its user's alone. They answer nothing by HTTP.
    fn prepare(&self) {
        let program = guest::talking_bytes(guest::ECHO);
        let digest = runtime_name(&Component::new(program.clone()).digest());
        let n_bytes = program.len();
        let header = format!(
            r#"{{"type":"upload","id":1,"digest":"{digest}","bytes":{n_bytes},"offset":0,"last":true}}"#
        );
        let mut steps = vec![
            Step::upgrade(),
            Step::hello(),
            Step::new(
                frame(2, &framed(header.as_bytes(), &program)),
                &format!("\"bytes\":{n_bytes}}}}}"),
            ),
        ];
        for (name, http) in [("open", "public = true"), ("closed", "")] {
            let manifest =
                format!("[package]\nname = \"{name}\"\nversion = \"1\"\n[http]\n{http}\n");
            let install = serde_json::json!({
                "type": "install", "id": 2, "name": name, "version": "1", "digest": digest, "manifest": manifest,
            });
            let sent = frame(1, install.to_string().as_bytes());
            steps.push(Step::new(sent, "\"replaced\":false}}"));
        }
        talk(self.server.address(), &steps);
        let asked = Step::new(
            b"GET /http/~fuzzer/open/ HTTP/1.1\r\nHost: localhost\r\n\r\n".to_vec(),
            "",
        );
        let heard = talk_and(self.server.address(), &[asked], Ending::Waits);
        assert!(
            holds(&heard, b"\"code\":\"http-no-answer\""),
            "{}",
            String::from_utf8_lossy(&heard)
        );
    }
}

/// Connects, and sends what the bytes say. Each answer is one of HTTP, none tells of a fault of the engine, a client
/// that comes then is served, and no process is left.
pub fn routes(data: &[u8]) {
    let served = served();
    let (steps, ending) = match written(data) {
        Some(text) => written_down(&expanded(text, MAX_BYTES)),
        None => match made_up(&mut Unstructured::new(data)) {
            Ok(made_up) => made_up,
            Err(_) => return,
        },
    };
    let address = served.server.address();
    check(&talk_and(address, &steps, ending), &steps);
    let honest = Step::new(HONEST.as_bytes().to_vec(), "");
    let heard = talk_and(address, &[honest], Ending::Waits);
    assert_eq!(
        statuses(&heard),
        [404],
        "{}",
        String::from_utf8_lossy(&heard)
    );
    let ends_before = Instant::now() + PATIENCE;
    while served.server.n_live() > 0 || served.server.n_connections() > 0 {
        assert!(Instant::now() < ends_before, "something is left");
        std::thread::yield_now();
    }
}

fn check(heard: &[u8], steps: &[Step]) {
    let shown = || String::from_utf8_lossy(heard);
    for status in statuses(heard) {
        assert!(STATUSES.contains(&status), "{status} in {}", shown());
        let is_upgrade = status == SWITCHING;
        assert!(
            !is_upgrade || asks_beside_programs(steps),
            "a program's path was upgraded"
        );
    }
    assert!(!holds(heard, b"\"code\":\"internal\""), "{}", shown());
}

/// Whether a line of what was sent asks for a path that is not a program's.
fn asks_beside_programs(steps: &[Step]) -> bool {
    let sent: Vec<u8> = steps.iter().flat_map(|step| step.sent.clone()).collect();
    sent.split(|&byte| byte == b'\n').any(|line| {
        let mut words = line.split(|&byte| byte == b' ').skip(1);
        let path = words.next();
        words.next().is_some_and(|word| word.starts_with(b"HTTP/"))
            && path.is_some_and(|path| !path.starts_with(b"/http/"))
    })
}

/// The statuses of the answers, one behind the other; of the last one a part may be missing.
fn statuses(mut heard: &[u8]) -> Vec<u16> {
    let mut statuses = Vec::new();
    while !heard.is_empty() {
        let Some(line) = VERSIONS
            .iter()
            .find_map(|version| heard.strip_prefix(*version))
        else {
            panic!("this is no answer: {}", heard.escape_ascii());
        };
        let digits = std::str::from_utf8(&line[..line.len().min(3)]).unwrap_or_default();
        let Ok(status) = digits.parse() else {
            panic!("this is no status: {}", heard.escape_ascii());
        };
        statuses.push(status);
        // Beside the paths of programs a client may come, whose messages these are from here on.
        if status == SWITCHING {
            break;
        }
        let Some(end) = heard.windows(4).position(|window| window == END_OF_HEAD) else {
            break;
        };
        let (head, rest) = heard.split_at(end + END_OF_HEAD.len());
        let n_bytes = body_bytes(head).min(rest.len());
        // The answer to HEAD announces a body and has none.
        let is_next = VERSIONS.iter().any(|version| rest.starts_with(version));
        heard = if is_next { rest } else { &rest[n_bytes..] };
    }
    statuses
}

/// What a head says of its body; none where it says nothing.
fn body_bytes(head: &[u8]) -> usize {
    let head = String::from_utf8_lossy(head).to_ascii_lowercase();
    let mut lines = head.lines();
    let length = lines.find_map(|line| line.strip_prefix("content-length:"));
    length.map_or(0, |length| length.trim().parse().unwrap())
}

/// A connection that is written down, part by part. It may begin with `~`: the server has to close it.
fn written_down(text: &[u8]) -> (Vec<Step>, Ending) {
    let (text, ending) = match text.split_first() {
        Some((&WAITS, text)) => (text, Ending::Waits),
        _ => (text, Ending::Closes),
    };
    let parts = text.split(|&byte| byte == END_OF_PART);
    let steps = parts.map(|part| Step::new(part.to_vec(), "")).collect();
    (steps, ending)
}

/// Some requests, of which some are spoiled.
fn made_up(bytes: &mut Unstructured<'_>) -> arbitrary::Result<(Vec<Step>, Ending)> {
    let ending = match bytes.ratio(1, 4)? {
        true => Ending::Waits,
        false => Ending::Closes,
    };
    let mut steps = Vec::new();
    for _ in 0..bytes.int_in_range(1..=4)? {
        let (method, path) = (bytes.choose(METHODS)?, bytes.choose(PATHS)?);
        let version =
            bytes.choose(&["HTTP/1.1", "HTTP/1.1", "HTTP/1.1", "HTTP/1.0", "HTTP/2.0"])?;
        let mut request = format!("{method} {path} {version}\r\nHost: localhost\r\n");
        for _ in 0..bytes.int_in_range(0..=4)? {
            request.push_str(bytes.choose(HEADERS)?);
            request.push_str("\r\n");
        }
        request.push_str("\r\n");
        request.push_str(bytes.choose(BODIES)?);
        let mut request = request.into_bytes();
        if bytes.ratio(1, 3)? {
            request = spoiled(&request, bytes)?;
        }
        steps.push(Step::new(request, ""));
    }
    if bytes.ratio(1, 8)? {
        steps.push(Step::new(bytes.arbitrary()?, ""));
    }
    Ok((steps, ending))
}
