//! Ends in the ways in which a program can end badly: the input names one.

use std::collections::HashMap;

use inferlet::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Mistake {
    /// An error of the program's own.
    Error {
        text: String,
    },
    /// An error of the engine that the program passes on.
    UnknownModel {
        name: String,
    },
    /// An error of a call without `Result`, which no later call returned.
    Unmet {
        token: u32,
    },
    /// The same, met by the next fallible call.
    Met {
        token: u32,
    },
    /// An error of a wait that gives none, as at a disconnect.
    UnmetWait {
        topic: String,
    },
    /// An option of a generator that comes after its first step, met by the next step.
    LateOption,
    /// A generation whose context is dropped before.
    Released,
    Panic {
        index: usize,
    },
    /// What programs do not have.
    Thread,
    Socket,
    Process,
    File,
    /// An end by the system, which tells no more than that it failed.
    Exit {
        status: i32,
    },
    Deadlock,
    Recursion {
        depth: u64,
    },
    Memory {
        bytes: usize,
    },
    /// An answer that is no JSON.
    Output,
    /// An answer with a number that JSON does not have.
    NanOutput,
    /// The same, sent to the client.
    NanSent,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Answer {
    Pairs(HashMap<(u32, u32), u64>),
    Scores { scores: Vec<f64> },
}

#[inferlet::main]
async fn main(mistake: Mistake) -> Result<Answer> {
    match mistake {
        Mistake::Error { text } => return Err(text),
        Mistake::UnknownModel { name } => drop(Model::load(&name)?),
        Mistake::Unmet { token } => {
            Context::new(&Model::load("default")?)?.append(&[token]);
        }
        Mistake::Met { token } => {
            Context::new(&Model::load("default")?)?
                .append(&[token])
                .flush()
                .await?
        }
        Mistake::UnmetWait { topic } => {
            if let Some(text) = messaging::pull(&topic).wait_async().await {
                return Err(text);
            }
        }
        Mistake::LateOption => {
            let mut context = Context::new(&Model::load("default")?)?;
            context.append(&[1, 2]);
            let mut generator = context.generate(Sampler::Argmax).max_tokens(4);
            if let Some(step) = generator.next()? {
                step.execute().await?;
            }
            let mut late = generator.logit_mask(&[0, 5]);
            late.next()?;
        }
        Mistake::Released => {
            let mut context = Context::new(&Model::load("default")?)?;
            context.append(&[1, 2]);
            let generator = context.generate(Sampler::Argmax).max_tokens(4);
            drop(context);
            generator.collect_tokens().await?;
        }
        Mistake::Panic { index } => println!("{}", [0, 1, 2][index]),
        Mistake::Thread => drop(std::thread::spawn(|| ())),
        Mistake::Socket => drop(std::net::TcpStream::connect("127.0.0.1:80").map_err(told)?),
        Mistake::Process => drop(std::process::Command::new("ls").spawn().map_err(told)?),
        Mistake::File => drop(std::fs::read("/etc/passwd").map_err(told)?),
        Mistake::Exit { status } => std::process::exit(status),
        Mistake::Deadlock => std::future::pending().await,
        Mistake::Recursion { depth } => {
            return Ok(Answer::Pairs(HashMap::from([((0, 0), recurse(depth))])));
        }
        Mistake::Memory { bytes } => println!("{}", vec![1_u8; bytes].len()),
        Mistake::Output => return Ok(Answer::Pairs(HashMap::from([((0, 0), 0)]))),
        Mistake::NanOutput => {
            let scores = vec![1.0, f64::NAN];
            return Ok(Answer::Scores { scores });
        }
        Mistake::NanSent => {
            inferlet::session::send_json(&HashMap::from([("score", f64::INFINITY)]))?
        }
    }
    Ok(Answer::Pairs(HashMap::new()))
}

fn told(error: std::io::Error) -> String {
    error.to_string()
}

/// Uses a frame of the stack for each level.
#[inline(never)]
fn recurse(depth: u64) -> u64 {
    if depth == 0 {
        0
    } else {
        std::hint::black_box(recurse(depth - 1)) + 1
    }
}
