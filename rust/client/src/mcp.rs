//! The MCP servers that a client offers to the programs that it launches. The server of Pie speaks to them; the client
//! starts the process of one when it is asked to, and carries its lines.
//!
//! What a process prints that is not a message of the protocol is dropped here.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;

use crate::error::Error;
use crate::error_codes::ErrorCode;
use crate::sync::lock;
use crate::wire::{Fields, encode, fields, number_of, text_of};

const PIECE_BYTES: usize = 64 << 10;
/// What is kept of a line that is too long: its beginning, which may tell whose it is.
const HEAD_BYTES: usize = 4 << 10;
/// JSON may write a byte of a line as six; most are written as they are.
const ESCAPED: usize = 2;
/// Links at once: at least as many as a server of Pie opens, and as many that are ending.
const MAX_LINKS: usize = 1024;
/// Lines that wait for a process that does not read: of one link, and their bytes of one link and of all.
const MAX_LINES: usize = 1024;
const MAX_LINK_BYTES: usize = 16 << 20;
const MAX_WAITING_BYTES: usize = 64 << 20;
const MAX_ID_DIGITS: usize = 20;
const END: Duration = Duration::from_secs(2);
const INTERNAL_ERROR: i64 = -32603;
/// Variables that hold the key of the user, which no program of others is given.
const KEYS: [&str; 2] = ["PIE_KEY", "PIE_CLIENT__KEY"];
const WAS_ENDED: &str = "it was ended";

/// How an MCP server is started.
#[derive(Clone, Debug, Default)]
pub struct McpCommand {
    /// The program.
    pub command: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Variables beside those of this process, of which it gets all but the user's key.
    pub env: BTreeMap<String, String>,
    /// The folder in which it runs; that of this process if left out.
    pub cwd: Option<PathBuf>,
}

/// The servers of one connection: those that are registered, and a link for each that runs.
pub(crate) struct McpServers {
    /// Weak, so that servers do not keep a connection open that nobody holds.
    frames: mpsc::WeakSender<Message>,
    line_bytes: usize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    commands: HashMap<String, McpCommand>,
    links: HashMap<u64, Link>,
    /// Bytes of all lines that no process has read yet.
    waiting_bytes: Arc<AtomicUsize>,
}

/// A process that runs.
struct Link {
    lines: mpsc::Sender<WaitingLine>,
    waiting: Arc<Waiting>,
    /// Ends the process, and says why; none once that is done.
    stop: Option<oneshot::Sender<String>>,
    running: JoinHandle<()>,
}

impl Link {
    fn stop(&mut self, why: &str) {
        if let Some(stop) = self.stop.take() {
            // One that has ended by itself hears nothing.
            let _ = stop.send(why.to_owned());
        }
    }

    /// A line for the process. One more than may wait ends it.
    fn put(&mut self, text: &str) {
        let bound = match self.waiting.enter(text) {
            Err(bound) => bound,
            Ok(line) => match self.lines.try_send(line) {
                Err(mpsc::error::TrySendError::Full(_)) => {
                    format!(
                        "{MAX_LINES} lines wait, the most of one server at this client (limit-mcp-calls)"
                    )
                }
                // Of one that has ended, the server of Pie is about to hear.
                Ok(()) | Err(mpsc::error::TrySendError::Closed(_)) => return,
            },
        };
        self.stop(&format!("it does not read what it is sent: {bound}"));
    }
}

/// Bytes of the lines that wait for one process, beside those of all.
struct Waiting {
    own: AtomicUsize,
    all: Arc<AtomicUsize>,
}

impl Waiting {
    /// A further line waits; else which bound it would be beyond. Only one at a time enters.
    fn enter(self: &Arc<Self>, text: &str) -> Result<WaitingLine, String> {
        let n_bytes = text.len() + 1;
        for (held, most, whose) in [
            (&self.own, MAX_LINK_BYTES, "one server"),
            (&*self.all, MAX_WAITING_BYTES, "all servers"),
        ] {
            let n = held.load(Ordering::Relaxed) + n_bytes;
            if n > most {
                return Err(format!(
                    "{n} bytes would wait, of at most {most} of {whose} at this client (limit-mcp-bytes)"
                ));
            }
        }
        self.own.fetch_add(n_bytes, Ordering::Relaxed);
        self.all.fetch_add(n_bytes, Ordering::Relaxed);
        Ok(WaitingLine {
            text: format!("{text}\n"),
            waiting: self.clone(),
        })
    }
}

/// A line with its end, which is counted until it is dropped.
struct WaitingLine {
    text: String,
    waiting: Arc<Waiting>,
}

impl Drop for WaitingLine {
    fn drop(&mut self) {
        self.waiting
            .own
            .fetch_sub(self.text.len(), Ordering::Relaxed);
        self.waiting
            .all
            .fetch_sub(self.text.len(), Ordering::Relaxed);
    }
}

impl McpServers {
    /// Servers that speak by `frames`, each of at most `frame_bytes`.
    pub(crate) fn new(frames: mpsc::WeakSender<Message>, frame_bytes: usize) -> Self {
        Self {
            frames,
            line_bytes: (frame_bytes / ESCAPED)
                .saturating_sub(HEAD_BYTES)
                .max(HEAD_BYTES),
            state: Mutex::default(),
        }
    }

    /// A server of that name is started so from now on; without a command there is none any more. Links that are open
    /// stay. Gives the command whose place it takes.
    pub(crate) fn set(&self, name: &str, command: Option<McpCommand>) -> Option<McpCommand> {
        let mut state = lock(&self.state);
        match command {
            Some(command) => state.commands.insert(name.to_owned(), command),
            None => state.commands.remove(name),
        }
    }

    /// Starts a process, hands it a line or ends it, as the server of Pie asks. It never waits.
    ///
    /// # Errors
    /// `protocol-error`, also for a start by a number whose process has not ended; `limit-mcp-calls` for a start beyond
    /// the most links.
    pub(crate) fn take(&self, kind: &str, fields: &Fields) -> Result<(), Error> {
        let number = number_of(fields, "link")?;
        match kind {
            "mcp_start" => self.start(number, text_of(fields, "server")?)?,
            "mcp_line" => {
                let text = text_of(fields, "text")?;
                if let Some(link) = lock(&self.state).links.get_mut(&number) {
                    link.put(text);
                }
            }
            "mcp_stop" => {
                if let Some(link) = lock(&self.state).links.get_mut(&number) {
                    link.stop(WAS_ENDED);
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Ends every process, soon.
    pub(crate) fn stop(&self) {
        for link in lock(&self.state).links.values_mut() {
            link.stop(WAS_ENDED);
        }
    }

    /// Ends every process, and waits for that.
    pub(crate) async fn close(&self) {
        self.stop();
        let links: Vec<Link> = {
            let mut state = lock(&self.state);
            state.links.drain().map(|(_, link)| link).collect()
        };
        for link in links {
            let _ = link.running.await;
        }
    }

    fn start(&self, number: u64, name: &str) -> Result<(), Error> {
        let mut state = lock(&self.state);
        state.links.retain(|_, link| !link.running.is_finished());
        if state.links.contains_key(&number) {
            let message = format!(
                "the server of Pie started an MCP server as the link {number}, which is still open; connect again"
            );
            return Err(Error::new(ErrorCode::ProtocolError, message));
        }
        if state.links.len() >= MAX_LINKS {
            let message = format!(
                "the server of Pie started one more MCP server than the {MAX_LINKS} that this client runs at once; connect again"
            );
            return Err(Error::new(ErrorCode::LimitMcpCalls, message));
        }
        let command = state.commands.get(name).cloned();
        let (lines, queued) = mpsc::channel(MAX_LINES);
        let (stop, stopped) = oneshot::channel();
        let life = Life {
            number,
            frames: self.frames.clone(),
            line_bytes: self.line_bytes,
        };
        let link = Link {
            lines,
            waiting: Arc::new(Waiting {
                own: AtomicUsize::new(0),
                all: state.waiting_bytes.clone(),
            }),
            stop: Some(stop),
            running: tokio::spawn(life.run(command, queued, stopped)),
        };
        state.links.insert(number, link);
        Ok(())
    }
}

/// A process, from its start to its end.
struct Life {
    number: u64,
    frames: mpsc::WeakSender<Message>,
    line_bytes: usize,
}

impl Life {
    async fn run(
        self,
        command: Option<McpCommand>,
        lines: mpsc::Receiver<WaitingLine>,
        stopped: oneshot::Receiver<String>,
    ) {
        let why = match command.map(|command| started(&command)) {
            None => "this client has no such server".to_owned(),
            Some(Err(error)) => format!("it cannot be started ({error})"),
            Some(Ok(child)) => self.serve(child, lines, stopped).await,
        };
        self.say("mcp_end", &why).await;
    }

    /// Carries lines both ways until the process ends, or has to; gives the reason.
    async fn serve(
        &self,
        mut child: Child,
        lines: mpsc::Receiver<WaitingLine>,
        stopped: oneshot::Receiver<String>,
    ) -> String {
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            return "it cannot be started (it has no pipes)".to_owned();
        };
        let why = tokio::select! {
            () = self.read(stdout) => "it ended".to_owned(),
            () = write(stdin, lines) => "it ended".to_owned(),
            why = stopped => why.unwrap_or_else(|_| WAS_ENDED.to_owned()),
        };
        match ended(child).await {
            Ok(status) => format!("{why} ({status})"),
            Err(error) => format!("{why} ({error})"),
        }
    }

    /// Carries what the process writes, until its output ends.
    async fn read(&self, mut stdout: ChildStdout) {
        let (mut piece, mut lines) = (vec![0; PIECE_BYTES], Lines::new(self.line_bytes));
        while let Ok(n @ 1..) = stdout.read(&mut piece).await {
            for message in lines.feed(&piece[..n]) {
                self.say("mcp_line", &message).await;
            }
        }
    }

    async fn say(&self, kind: &str, text: &str) {
        let Some(frames) = self.frames.upgrade() else {
            return;
        };
        let message = json!({ "type": kind, "link": self.number, "text": text });
        // A connection that has ended takes nothing more.
        let _ = frames.send(encode(&fields(message))).await;
    }
}

fn started(command: &McpCommand) -> io::Result<Child> {
    let mut process = std::process::Command::new(&command.command);
    process
        .args(&command.args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    for key in KEYS {
        process.env_remove(key);
    }
    process.envs(&command.env);
    if let Some(cwd) = &command.cwd {
        process.current_dir(cwd);
    }
    // Ctrl-C is for this program, which ends its servers; what they start ends with them.
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut process, 0);
    let mut process = Command::from(process);
    process.kill_on_drop(true);
    process.spawn()
}

/// Writes lines until the process reads no more.
async fn write(mut stdin: ChildStdin, mut lines: mpsc::Receiver<WaitingLine>) {
    while let Some(line) = lines.recv().await {
        if stdin.write_all(line.text.as_bytes()).await.is_err() || stdin.flush().await.is_err() {
            return;
        }
    }
}

/// Lets a process end by itself, for a while; then kills it, with what it has started.
async fn ended(mut child: Child) -> io::Result<ExitStatus> {
    let group = child.id();
    let by_itself = timeout(END, child.wait()).await;
    kill(group);
    match by_itself {
        Ok(status) => status,
        Err(_) => {
            // Those that have ended meanwhile cannot be killed.
            let _ = child.start_kill();
            child.wait().await
        }
    }
}

#[cfg(unix)]
fn kill(group: Option<u32>) {
    use rustix::process::{Pid, Signal, kill_process_group};
    if let Some(leader) = group.and_then(|id| Pid::from_raw(id.cast_signed())) {
        // Where all of them have ended, there is nothing to kill.
        let _ = kill_process_group(leader, Signal::KILL);
    }
}

#[cfg(not(unix))]
fn kill(_group: Option<u32>) {
    // The process itself is killed by its handle.
}

/// Messages out of what a process writes, which may be logs too. None is longer than `most` bytes.
struct Lines {
    most: usize,
    kept: Vec<u8>,
    is_too_long: bool,
}

impl Lines {
    const fn new(most: usize) -> Self {
        Self {
            most,
            kept: Vec::new(),
            is_too_long: false,
        }
    }

    /// The messages that end in the next bytes.
    fn feed(&mut self, piece: &[u8]) -> Vec<String> {
        let mut messages = Vec::new();
        let mut parts = piece.split(|byte| *byte == b'\n').peekable();
        while let Some(part) = parts.next() {
            self.add(part);
            if parts.peek().is_some() {
                messages.extend(self.finish());
            }
        }
        messages
    }

    fn add(&mut self, bytes: &[u8]) {
        if self.is_too_long {
            return;
        }
        self.kept.extend_from_slice(bytes);
        if self.kept.len() > self.most {
            self.is_too_long = true;
            self.kept.truncate(HEAD_BYTES);
            self.kept.shrink_to_fit();
        }
    }

    /// The message in the line that has ended; none where there is none.
    fn finish(&mut self) -> Option<String> {
        let line = std::mem::take(&mut self.kept);
        let is_too_long = std::mem::take(&mut self.is_too_long);
        if !line.trim_ascii_start().starts_with(b"{") {
            return None;
        }
        if is_too_long {
            return Some(too_long(&id_of(&line)?, self.most));
        }
        String::from_utf8(line).ok()
    }
}

/// The number of the message that a line begins, where its beginning tells.
fn id_of(line: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(line);
    text.match_indices("\"id\"").find_map(|(at, name)| {
        let behind = text[at + name.len()..].trim_start();
        let value = behind.strip_prefix(':')?.trim_start();
        let n_digits = value.bytes().take_while(u8::is_ascii_digit).count();
        (1..=MAX_ID_DIGITS)
            .contains(&n_digits)
            .then(|| value[..n_digits].to_owned())
    })
}

/// What stands for an answer that cannot be carried; `id` is JSON.
fn too_long(id: &str, most: usize) -> String {
    let message = format!(
        "the answer is longer than the {most} bytes that this client carries; ask for less"
    );
    let error = json!({ "code": INTERNAL_ERROR, "message": message });
    format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(most: usize, pieces: &[&[u8]]) -> Vec<String> {
        let mut lines = Lines::new(most);
        pieces.iter().flat_map(|piece| lines.feed(piece)).collect()
    }

    #[test]
    fn messages_come_in_pieces_and_nothing_else_is_carried() {
        let pieces: [&[u8]; 4] = [b"a log\n{\"id", b"\":1}\n\n {}\n{\xff", b"}\n[]\n", b"{}"];
        assert_eq!(messages(100, &pieces), ["{\"id\":1}", " {}"]);
    }

    #[test]
    fn what_waits_for_one_process_and_for_all_is_bounded() {
        let all = Arc::new(AtomicUsize::new(0));
        let one = || {
            Arc::new(Waiting {
                own: AtomicUsize::new(0),
                all: all.clone(),
            })
        };
        let line = "x".repeat((8 << 20) - 1);
        let links: Vec<_> = (0..4).map(|_| one()).collect();
        let mut held = Vec::new();
        for link in &links {
            held.extend([link.enter(&line).unwrap(), link.enter(&line).unwrap()]);
            let bound = link.enter("").err().unwrap();
            assert_eq!(
                bound,
                "16777217 bytes would wait, of at most 16777216 of one server at this client (limit-mcp-bytes)"
            );
        }
        let bound = one().enter("").err().unwrap();
        assert_eq!(
            bound,
            "67108865 bytes would wait, of at most 67108864 of all servers at this client (limit-mcp-bytes)"
        );
        held.pop();
        drop(one().enter("").unwrap());
        drop(held);
        assert_eq!(all.load(Ordering::Relaxed), 0);
    }

    #[tokio::test]
    async fn a_client_carries_its_most_links() {
        let (frames, _said) = mpsc::channel(MAX_LINKS);
        let servers = McpServers::new(frames.downgrade(), 1 << 20);
        let start = |number: usize| {
            let message = json!({ "link": number, "server": "absent" });
            servers.take("mcp_start", &fields(message))
        };
        for number in 0..MAX_LINKS {
            start(number).unwrap();
        }
        let refused = start(MAX_LINKS).unwrap_err();
        assert_eq!(refused.code(), "limit-mcp-calls");
        assert_eq!(
            refused.message(),
            "the server of Pie started one more MCP server than the 1024 that this client runs at once; connect again"
        );
        // Those whose end was said are no more.
        servers.close().await;
        start(MAX_LINKS).unwrap();
    }

    #[test]
    fn a_line_that_is_too_long_is_the_error_of_its_call() {
        let long = format!(
            "{{\"id\" : 17, \"result\": \"{}\"}}\n{{}}\n",
            "x".repeat(9_000)
        );
        let carried = messages(5_000, &[long.as_bytes()]);
        assert_eq!(carried.len(), 2);
        let error: serde_json::Value = serde_json::from_str(&carried[0]).unwrap();
        assert_eq!(error["id"], 17);
        assert_eq!(error["error"]["code"], INTERNAL_ERROR);
        assert_eq!(carried[1], "{}");
        // Of one that nobody waits for, nobody hears.
        let noise = format!("{{\"text\": \"{}\"}}\n", "x".repeat(9_000));
        assert!(messages(5_000, &[noise.as_bytes()]).is_empty());
    }
}
