//! Clients that send anything: bytes instead of a handshake, frames that are none, messages that no client says.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use arbitrary::Unstructured;
use pie_host::{Component, Host, HostConfig, Numbering, runtime_name};
use pie_server::{Server, ServerConfig};
use tempfile::TempDir;

use crate::guest;
use crate::talking::{HELLO, PATIENCE, Step, frame, framed, holds, spoiled, talk};
use crate::written::{expanded, filled, written};

const LAUNCH: &str = r#"{"type":"launch","id":4,"program":"echo@1.0.0","input":{"n":1},"args":["a"],"seed":7,"limits":{"cpu_s":1},"attach":true}"#;
const SEND: &str = r#"{"type":"send","id":12,"pid":PID,"text":"x"}"#;
const INSTALL: &str = r#"{"type":"install","id":9,"name":"a","version":"0.1.0","digest":"DIGEST","manifest":"[package]\nname = \"a\"\nversion = \"0.1.0\"\n"}"#;
/// Messages that are right, for the bytes to spoil: of a process that runs, of a program that is installed, and of an
/// upload.
const MESSAGES: &[&str] = &[
    r#"{"type":"ping","id":1}"#,
    r#"{"type":"processes","id":2,"all":true}"#,
    r#"{"type":"programs","id":3}"#,
    LAUNCH,
    r#"{"type":"launch","id":20,"program":"DIGEST","input":94.52706955539223,"detached":true,"attach":true,"window_bytes":10}"#,
    r#"{"type":"attach","id":5,"pid":PID,"window_bytes":100}"#,
    r#"{"type":"terminate","id":6,"pid":PID}"#,
    r#"{"type":"signal","id":7,"pid":PID,"text":"x"}"#,
    SEND,
    r#"{"type":"close_input","id":13,"pid":PID}"#,
    r#"{"type":"detach","id":14,"pid":PID}"#,
    r#"{"type":"stats","id":15}"#,
    r#"{"type":"logs","id":8,"pid":PID,"tail_bytes":10,"follow":true}"#,
    INSTALL,
    r#"{"type":"uninstall","id":10,"name":"a","version":"0.1.0"}"#,
    r#"{"type":"ack","pid":PID,"seq":1}"#,
    r#"{"type":"outcome","id":17,"pid":PID}"#,
];
/// Headers of binary messages that are right, each with the part of the program that is its payload; the last two are
/// an upload.
const HEADERS: &[(&str, Part)] = &[
    (r#"{"type":"file","id":16,"pid":PID}"#, Part::First),
    (
        r#"{"type":"upload","id":11,"digest":"DIGEST","bytes":N_BYTES,"offset":0,"last":false}"#,
        Part::First,
    ),
    (
        r#"{"type":"upload","id":11,"digest":"DIGEST","bytes":N_BYTES,"offset":FIRST_BYTES,"last":true}"#,
        Part::Rest,
    ),
];

/// What a conversation that is written down may have, in bytes. It fits into the buffers of a socket.
const MAX_BYTES: usize = 64 << 10;
/// What stands between the steps of a conversation that is written down, and between header and payload of a message.
const END_OF_STEP: u8 = 0x1e;
const END_OF_HEADER: u8 = 0x1f;

#[derive(Clone, Copy)]
enum Part {
    First,
    Rest,
}

/// A server that all inputs share.
struct Served {
    server: Server,
    /// The bytes of the installed program, and its digest.
    program: Vec<u8>,
    digest: String,
    /// The number of the process that was launched last.
    last_pid: AtomicU64,
    _folder: TempDir,
}

fn served() -> &'static Served {
    static SERVED: OnceLock<Served> = OnceLock::new();
    SERVED.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let mut config = ServerConfig::new(folder.path().to_owned());
        config.port = 0;
        config.handshake_timeout = Duration::from_secs(2);
        config.max_frame_bytes = 16 << 10;
        config.max_upload_bytes = 16 << 10;
        config.max_installed_bytes = 1 << 20;
        config.grace = Duration::from_millis(10);
        config.max_ended_processes = 20;
        let mut host = HostConfig::default();
        // Echoes to which nobody speaks end by themselves.
        host.limits.wall = Some(Duration::from_secs(1));
        let program = guest::talking_bytes(guest::ECHO);
        let host = Arc::new(Host::new(host).unwrap());
        let server = Server::start(host.clone(), config).unwrap();
        // Processes by their counts, so that messages meet some of them.
        host.number_by(Numbering::default());
        let served = Served {
            server,
            digest: runtime_name(&Component::new(program.clone()).digest()),
            program,
            last_pid: AtomicU64::new(0),
            _folder: folder,
        };
        served.prepare();
        served
    })
}

impl Served {
    /// Installs the program, launches it and hears its echo: all that the messages speak of exists then, and they were
    /// right.
    fn prepare(&self) {
        let install =
            r#"{"type":"install","id":9,"name":"echo","version":"1.0.0","digest":"DIGEST"}"#;
        let launch = r#"{"type":"launch","id":4,"program":"echo@1.0.0","attach":true}"#;
        let said = r#"{"type":"send","id":12,"pid":PID,"text":"hello?"}"#;
        let steps = vec![
            Step::upgrade(),
            Step::hello(),
            self.upload(),
            Step::new(
                frame(1, self.filled(install, 0).as_bytes()),
                "\"replaced\":false}}",
            ),
            Step::new(
                frame(1, self.filled(launch, 0).as_bytes()),
                "\"launch_seed\":",
            ),
            Step::new(
                frame(1, self.filled(said, 1).as_bytes()),
                "\"kind\":\"return\",\"value\":\"true\"}",
            ),
        ];
        let heard = talk(self.server.address(), &steps);
        assert!(
            holds(
                &heard,
                br#""seq":1,"kind":"stdout","form":"text","text":"hello?""#
            ),
            "{}",
            String::from_utf8_lossy(&heard)
        );
    }

    /// The whole program, in two parts.
    fn upload(&self) -> Step {
        let parts = HEADERS[HEADERS.len() - 2..].iter();
        let sent = parts.flat_map(|(header, part)| {
            frame(
                2,
                &framed(self.filled(header, 0).as_bytes(), self.part(*part)),
            )
        });
        Step::new(
            sent.collect(),
            &format!("\"bytes\":{}}}}}", self.program.len()),
        )
    }

    /// An upload, an install, and a launched program that is spoken to: what comes after them has something to meet.
    fn scene(&self) -> Vec<Step> {
        let next_pid = self.last_pid.load(Ordering::Relaxed) + 1;
        let text = |message: &str, pid: u64| frame(1, self.filled(message, pid).as_bytes());
        let mut said: Vec<u8> = (next_pid..next_pid + 3)
            .flat_map(|pid| text(SEND, pid))
            .collect();
        said.extend(text(r#"{"type":"ping","id":77}"#, 0));
        vec![
            self.upload(),
            Step::new(text(INSTALL, 0), "\"replaced\":"),
            Step::new(text(LAUNCH, 0), "\"launch_seed\":"),
            Step::new(said, r#"{"id":77,"ok":{}}"#),
        ]
    }

    /// A conversation that is written down, step by step. The first byte of each says what it is. It may begin with
    /// `^`, the upgrade, then `h`, the hello, then `s`, the scene: each is answered, and the answer is waited for.
    fn steps(&self, text: &[u8]) -> Vec<Step> {
        let mut parts = text.split(|&byte| byte == END_OF_STEP).peekable();
        let mut steps = Vec::new();
        for beginning in [b"^", b"h", b"s"] {
            if parts.next_if_eq(&&beginning[..]).is_none() {
                break;
            }
            match beginning {
                b"^" => steps.push(Step::upgrade()),
                b"h" => steps.push(Step::hello()),
                _ => steps.extend(self.scene()),
            }
        }
        let sent = parts.filter_map(|part| part.split_first());
        steps.extend(sent.map(|(&kind, rest)| Step::new(self.step(kind, rest), "")));
        steps
    }

    /// The bytes of a step.
    fn step(&self, kind: u8, rest: &[u8]) -> Vec<u8> {
        let binary = |header: &[u8], payload| frame(2, &framed(&self.known(header), payload));
        match kind {
            // A message in a text frame.
            b'>' => frame(1, &self.known(rest)),
            // A binary message: with the first part of the program, its rest, or what stands behind the header.
            b'1' => binary(rest, self.part(Part::First)),
            b'2' => binary(rest, self.part(Part::Rest)),
            b'#' => {
                let mut parts = rest.splitn(2, |&byte| byte == END_OF_HEADER);
                let header = parts.next().unwrap_or_default();
                binary(header, parts.next().unwrap_or_default())
            }
            // A frame whose opcode is the next byte.
            b'!' => {
                let (opcode, payload) = rest.split_first().unwrap_or((&0, &[]));
                frame(*opcode, payload)
            }
            // Anything, as it is.
            _ => rest.to_vec(),
        }
    }

    fn part(&self, part: Part) -> &[u8] {
        let (first, rest) = self.program.split_at(self.program.len() / 2);
        match part {
            Part::First => first,
            Part::Rest => rest,
        }
    }

    /// A message with what is known only here.
    fn filled(&self, message: &str, pid: u64) -> String {
        let bytes = self.with_pid(message.as_bytes(), pid);
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// One that is written down, about the process that is launched next.
    fn known(&self, message: &[u8]) -> Vec<u8> {
        self.with_pid(message, self.last_pid.load(Ordering::Relaxed) + 1)
    }

    fn with_pid(&self, message: &[u8], pid: u64) -> Vec<u8> {
        let names = [
            ("DIGEST", self.digest.as_str()),
            ("FIRST_BYTES", &self.part(Part::First).len().to_string()),
            ("N_BYTES", &self.program.len().to_string()),
            ("PID", &pid.to_string()),
        ];
        filled(message, &names)
    }
}

/// Connects, sends what the bytes say and closes its side; the server closes the other, and a client that comes then is
/// served.
pub fn protocol(data: &[u8]) {
    let served = served();
    let steps = match written(data) {
        Some(text) => served.steps(&expanded(text, MAX_BYTES)),
        None => match conversation(served, &mut Unstructured::new(data)) {
            Ok(steps) => steps,
            Err(_) => return,
        },
    };
    served.note_launches(&talk(served.server.address(), &steps));
    let answer = r#"{"id":1,"ok":{}}"#;
    let ping = Step::new(frame(1, MESSAGES[0].as_bytes()), answer);
    let steps = [Step::upgrade(), Step::hello(), ping];
    let heard = talk(served.server.address(), &steps);
    assert!(
        holds(&heard, answer.as_bytes()),
        "{}",
        String::from_utf8_lossy(&heard)
    );
    let ends_before = Instant::now() + PATIENCE;
    while served.server.n_connections() > 0 {
        assert!(Instant::now() < ends_before, "a connection is left");
        std::thread::yield_now();
    }
}

impl Served {
    /// Looks for the numbers of new processes among the answers.
    fn note_launches(&self, heard: &[u8]) {
        let heard = String::from_utf8_lossy(heard);
        for answer in heard.split("\"ok\":{\"pid\":").skip(1) {
            let digits = answer
                .split(|character: char| !character.is_ascii_digit())
                .next();
            let pid = digits.and_then(|digits| digits.parse().ok()).unwrap_or(0);
            self.last_pid.fetch_max(pid, Ordering::Relaxed);
        }
    }
}

/// What goes over the wire.
fn conversation(served: &Served, bytes: &mut Unstructured<'_>) -> arbitrary::Result<Vec<Step>> {
    // A handshake is sometimes left out, spoiled, or not waited for.
    let upgrade = match bytes.int_in_range(0..=9)? {
        0 => Step::new(Vec::new(), ""),
        1 => Step::new(spoiled(&Step::upgrade().sent, bytes)?, ""),
        _ => Step::upgrade(),
    };
    let mut steps = vec![upgrade];
    let is_let_in = !steps[0].answer.is_empty();
    let mut sent = match bytes.int_in_range(0..=9)? {
        0 => Vec::new(),
        1 => frame(1, &spoiled(HELLO.as_bytes(), bytes)?),
        _ if is_let_in => {
            steps.push(Step::hello());
            if bytes.ratio(1, 2)? {
                steps.extend(served.scene());
            }
            Vec::new()
        }
        _ => frame(1, HELLO.as_bytes()),
    };
    for _ in 0..bytes.int_in_range(0..=20)? {
        // A process of before, or one that this conversation launches.
        let pid = served.last_pid.load(Ordering::Relaxed) + bytes.int_in_range(0..=2)?;
        let message = served.filled(bytes.choose(MESSAGES)?, pid);
        let message = message.as_bytes();
        match bytes.int_in_range(0..=9)? {
            0..=4 => sent.extend(frame(1, message)),
            5 => sent.extend(frame(1, &spoiled(message, bytes)?)),
            6 | 7 => sent.extend(frame(2, &binary(served, pid, bytes)?)),
            8 if bytes.ratio(1, 4)? => sent.extend(spoiled(&frame(1, message), bytes)?),
            _ if bytes.ratio(1, 4)? => {
                sent.extend(frame(bytes.arbitrary()?, &bytes.arbitrary::<Vec<u8>>()?));
            }
            _ => {}
        }
    }
    if bytes.ratio(1, 4)? {
        sent.extend(bytes.arbitrary::<Vec<u8>>()?);
    }
    steps.push(Step::new(sent, ""));
    if bytes.ratio(1, 16)? {
        // Everything at once, without hearing anything.
        let sent = steps.into_iter().flat_map(|step| step.sent).collect();
        steps = vec![Step::new(sent, "")];
    }
    Ok(steps)
}

/// A binary message, some of them spoiled.
fn binary(served: &Served, pid: u64, bytes: &mut Unstructured<'_>) -> arbitrary::Result<Vec<u8>> {
    let (header, part) = bytes.choose(HEADERS)?;
    let mut header = served.filled(header, pid).into_bytes();
    if bytes.ratio(1, 4)? {
        header = spoiled(&header, bytes)?;
    }
    let mut payload = served.part(*part).to_vec();
    if bytes.ratio(1, 4)? {
        payload = spoiled(&payload, bytes)?;
    }
    let mut message = framed(&header, &payload);
    if bytes.ratio(1, 8)? {
        message[..4].copy_from_slice(&bytes.arbitrary::<[u8; 4]>()?);
    }
    Ok(message)
}
