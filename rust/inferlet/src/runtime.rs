//! What the engine tells of itself and of this launch, and how a program starts others.
//!
//! ```no_run
//! use inferlet::runtime;
//! use serde_json::json;
//!
//! # async fn count() -> inferlet::Result<()> {
//! let child = runtime::spawn("counter@1.0.0", json!({ "text": "one two" }))?;
//! println!("process {}", child.pid());
//! let n_words: u32 = child.wait().await?;
//! # Ok(())
//! # }
//! ```

use std::pin::Pin;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::bindings::pie::core::futures::FutureString;
use crate::bindings::pie::core::runtime as raw;
pub use crate::bindings::pie::core::runtime::{
    args, instance_id, launch_seed, models, username, version,
};
use crate::stdout::flush_output;
use crate::task::answer;
use crate::{ErrorCode, Result, errors};

/// How a child is launched, beside its program and its input.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SpawnOptions {
    /// The arguments that it reads unparsed. Where its input is null they become its input too, as behind `--` on the
    /// command line.
    pub args: Vec<String>,
    /// What it prints and sends becomes output of this program. Its standard error always does.
    pub output: bool,
    /// It goes on when this program has ended. Only a server keeps such processes.
    pub detached: bool,
    /// Its launch seed; none: one that follows from that of this program and from how many children it had before.
    pub seed: Option<u64>,
    /// At most so many tokens enter its contexts and those of its own children. They count for this program too.
    pub token_budget: Option<u64>,
    /// Credits that it begins with in each model, which come from those of this program; none: half of what there is.
    /// What is left at its end returns.
    pub credits: Option<f64>,
}

/// Starts a program as a child: one that the launch names (`pie run --program NAME=FILE`), `.` for this program, the
/// path of a file or folder of this program, or an installed one as `name` or `name@version`.
///
/// A child has the user of this program, at most its limits and budgets, and ends with it.
///
/// # Errors
/// `unknown-program`; `limit-child-depth`, `limit-children` and `limit-spawns` for too many; `invalid-argument` for an
/// input that JSON cannot hold; and those of a launch.
pub fn spawn(program: &str, input: impl Serialize) -> Result<Child> {
    spawn_with(program, input, &SpawnOptions::default())
}

/// As [`spawn`], with options.
///
/// # Errors
/// As [`spawn`], and `unsupported` for a detached child where no server keeps it.
pub fn spawn_with(program: &str, input: impl Serialize, options: &SpawnOptions) -> Result<Child> {
    let input = errors::to_json("the input of a child", &input)?;
    flush_output();
    let wanted = raw::SpawnOptions {
        output: options.output,
        detached: options.detached,
        seed: options.seed,
        token_budget: options.token_budget,
        credits: options.credits,
    };
    let raw = raw::spawn(program, &input, &options.args, wanted)?;
    Ok(Child { raw })
}

/// The value of a child: starts it and waits for its end. Dropping the wait leaves the child running.
///
/// # Errors
/// As [`spawn`] and [`Child::wait`].
pub async fn call<T: DeserializeOwned>(program: &str, input: impl Serialize) -> Result<T> {
    spawn(program, input)?.wait().await
}

/// A process that this program has started. Dropping it changes nothing: the child goes on, and ends with this program.
#[derive(Debug)]
pub struct Child {
    raw: raw::Child,
}

impl Child {
    /// The number of its process.
    pub fn pid(&self) -> u64 {
        self.raw.pid()
    }

    /// Waits for its end; gives what it returned. It may be called any number of times.
    ///
    /// # Errors
    /// The error that the child ended with, and `invalid-argument` for a value that is not a `T`.
    pub async fn wait<T: DeserializeOwned>(&self) -> Result<T> {
        value_of(self.raw.wait()).await
    }

    /// Ends it with the error `cancelled`, unless it has ended before.
    pub fn cancel(&self) {
        self.raw.cancel();
    }
}

impl IntoFuture for Child {
    type Output = Result<serde_json::Value>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output>>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(value_of(self.raw.wait()))
    }
}

async fn value_of<T: DeserializeOwned>(returned: FutureString) -> Result<T> {
    let text = answer(returned).await?;
    serde_json::from_str(&text).map_err(|error| {
        let message = format!("the child returned another type than is asked for: {error}");
        errors::text(ErrorCode::InvalidArgument, message)
    })
}
