//! A server that is a process, spoken to by its standard input and output.

use std::process::{Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout};
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::config::McpServerConfig;
use super::failure::unavailable;
use super::group::Group;
use super::line::Lines;
use super::outgoing::{McpLine, Outgoing, WeakOutgoing};
use super::peer::{Link, take};
use super::starter::Starter;
use super::waiting::Waiting;
use crate::Error;
use crate::network::running::Running;

/// Bytes that are read at once.
const PIECE_BYTES: usize = 64 << 10;
/// Bytes of what a server last said on its standard error that the log shows where it ends.
const LAST_WORDS_BYTES: usize = 2 << 10;
/// How long the last words of a server that has ended, and its exit status, are waited for.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Starts a server, whose lines may have `most` bytes.
///
/// # Errors
/// `mcp-unavailable`.
pub(crate) async fn start(
    server: &Arc<str>,
    config: &McpServerConfig,
    most: usize,
    starter: &Starter,
) -> Result<Link, Error> {
    let (group, mut child) = starter
        .start(command(config, starter))
        .await
        .map_err(|error| unavailable(server, format!("it cannot be started ({error})")))?;
    let (Some(stdin), Some(stdout), Some(stderr)) =
        (child.stdin.take(), child.stdout.take(), child.stderr.take())
    else {
        return Err(Error::internal("a process has not the pipes it was given"));
    };
    let (outgoing, lines) = Outgoing::new();
    let waiting = Waiting::new(server);
    let life = Life {
        server: server.clone(),
        child,
        group: group.shared(),
        waiting: waiting.clone(),
        outgoing: outgoing.downgrade(),
        most,
    };
    let carrier = Running::from(tokio::spawn(life.run((stdin, stdout, stderr), lines)));
    Ok(Link::new(outgoing, (server.clone(), waiting), carrier).with_group(group))
}

fn command(config: &McpServerConfig, starter: &Starter) -> Command {
    let mut parts = config.command.iter().map(|part| part.0.as_str());
    let mut command = starter.command(parts.next().unwrap_or_default());
    command
        .args(parts)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    for variable in &config.env {
        command.env(&variable.name, &variable.value);
    }
    if !config.cwd.as_os_str().is_empty() {
        command.current_dir(&config.cwd);
    }
    command
}

/// A process, from its start to its end.
struct Life {
    server: Arc<str>,
    /// Killed before the process is waited for, so that its number is not of another one yet.
    group: Group,
    child: Child,
    waiting: Arc<Waiting>,
    /// Weak, so that the process ends when nobody writes to it any more.
    outgoing: WeakOutgoing,
    most: usize,
}

impl Life {
    async fn run(
        self,
        (stdin, stdout, stderr): (ChildStdin, ChildStdout, ChildStderr),
        lines: mpsc::Receiver<McpLine>,
    ) {
        let listening = tokio::spawn(last_words(stderr));
        // Something that has left the group may keep the standard error open.
        let _until_it_has_ended = Running::of(&listening);
        let why = tokio::select! {
            () = read(stdout, &self.waiting, &self.outgoing, self.most) => "its output ended",
            () = write(stdin, lines) => "it does not read what it is sent",
        };
        let Self {
            server,
            group,
            mut child,
            waiting,
            ..
        } = self;
        drop(group);
        let status = ended(&mut child).await;
        let status = status.map_or_else(|| why.to_owned(), |status| format!("{why} ({status})"));
        waiting.end(unavailable(&server, &status));
        // Its words are for the operator: they may say more than its users are to know.
        let words = timeout(LAST_WORDS, listening).await;
        let words = words.ok().and_then(Result::ok).unwrap_or_default();
        tracing::warn!("the MCP server {server:?} has ended: {status}; it said: {words:?}");
    }
}

/// How the process ended, which was killed if it had not; none where it is not gone for all that.
async fn ended(child: &mut Child) -> Option<ExitStatus> {
    let status = timeout(LAST_WORDS, child.wait()).await;
    status.ok().and_then(Result::ok)
}

/// Reads until the end.
async fn read(
    mut stdout: impl AsyncRead + Unpin,
    waiting: &Waiting,
    outgoing: &WeakOutgoing,
    most: usize,
) {
    let (mut piece, mut lines) = (vec![0; PIECE_BYTES], Lines::new(most));
    while let Ok(n @ 1..) = stdout.read(&mut piece).await {
        lines.feed(piece.get(..n).unwrap_or_default(), |line| {
            take(waiting, outgoing, line);
        });
    }
    if let Some(line) = lines.rest() {
        take(waiting, outgoing, line);
    }
}

/// Writes until nobody wants anything written, or it cannot be.
async fn write(mut stdin: ChildStdin, mut lines: mpsc::Receiver<McpLine>) {
    while let Some(line) = lines.recv().await {
        let bytes = [line.as_bytes(), b"\n".as_slice()].concat();
        if stdin.write_all(&bytes).await.is_err() || stdin.flush().await.is_err() {
            return;
        }
    }
}

/// The last that is said on the standard error, when that ends.
async fn last_words(mut stderr: ChildStderr) -> String {
    let (mut piece, mut words) = (vec![0; PIECE_BYTES], Vec::new());
    while let Ok(n @ 1..) = stderr.read(&mut piece).await {
        words.extend_from_slice(piece.get(..n).unwrap_or_default());
        let n_over = words.len().saturating_sub(LAST_WORDS_BYTES);
        words.drain(..n_over);
    }
    String::from_utf8_lossy(&words).into_owned()
}
