//! A launch: what is launched, by whom, with what, and within which bounds.

use std::collections::BTreeMap;
use std::sync::Arc;

use pie_core::ErrorCode;
use pie_core::market::micro_credits;

use crate::Error;
use crate::http_in::queue::RequestQueue;
use crate::mcp::clients::McpClientServers;
use crate::program::{Program, is_program_name};
use crate::settings::Value;

/// The longest user name, and the most launch arguments.
const MAX_USERNAME_BYTES: usize = 256;
pub(crate) const MAX_ARGS: usize = 10_000;
/// The most programs that a launch names.
const MAX_PROGRAMS: usize = 256;
/// Who launches where nobody is named.
const ANONYMOUS: &str = "anonymous";

/// How a program is launched.
#[derive(Clone, Debug)]
pub struct Launch {
    /// What is launched.
    pub program: Program,
    /// A JSON text; any other text becomes `{"input": text}`.
    pub input: String,
    /// The arguments as they were typed, unparsed.
    pub args: Vec<String>,
    /// The launch seed; none: a random one.
    pub seed: Option<u64>,
    /// The user; none: `anonymous`.
    pub username: Option<String>,
    /// The most tokens that may enter the contexts of the process; none: any number.
    pub token_budget: Option<u64>,
    /// The credits that it begins with in each model, a child's from those of its parent; none: as configured.
    pub credits: Option<f64>,
    /// Limits of this process by their names in [`crate::Limits::settings`], none above the engine's.
    pub limits: BTreeMap<String, Value>,
    /// Programs that it and its children can start, by the names that they call them by.
    pub programs: BTreeMap<String, Program>,
    /// Nobody but itself and its children launches anything in this engine while it lives, so that the engine can tell
    /// when nothing will wake them any more.
    pub is_alone: bool,
    /// The servers of MCP that its client runs; its children have them too.
    pub mcp: Option<Arc<McpClientServers>>,
    /// The requests by HTTP that it answers; none: it serves none.
    pub requests: Option<Arc<RequestQueue>>,
}

impl Launch {
    /// A launch of `program` with an input, and the defaults for the rest.
    pub fn new(program: impl Into<Program>, input: impl Into<String>) -> Self {
        Self {
            program: program.into(),
            input: input.into(),
            args: Vec::new(),
            seed: None,
            username: None,
            token_budget: None,
            credits: None,
            limits: BTreeMap::new(),
            programs: BTreeMap::new(),
            is_alone: false,
            mcp: None,
            requests: None,
        }
    }

    /// Fills in what was left open: the user, the seed, and the object around an input that is not JSON.
    ///
    /// # Errors
    /// `limit-message` for an input that is longer than a message of `message_bytes`, `invalid-argument` for arguments
    /// beyond their bounds, `invalid-name` for a program that cannot be called so.
    pub(crate) fn complete(&mut self, message_bytes: usize) -> Result<(), Error> {
        self.input = json_input(std::mem::take(&mut self.input));
        check_size("the input", self.input.len(), message_bytes)?;
        check_size(
            "the launch arguments together",
            self.args_bytes(),
            message_bytes,
        )?;
        let username = self.username.get_or_insert_with(|| ANONYMOUS.to_owned());
        if self.args.len() > MAX_ARGS || username.len() > MAX_USERNAME_BYTES {
            let message = format!(
                "the launch has {} arguments and a user name of {} bytes, of at most {MAX_ARGS} and {MAX_USERNAME_BYTES}; put what is longer into the input",
                self.args.len(),
                username.len()
            );
            return Err(Error::new(ErrorCode::InvalidArgument, message));
        }
        if let Some(name) = self.programs.keys().find(|name| !is_program_name(name)) {
            let message = format!(
                "the launch names a program {name:?}; give it a name of the form [a-z0-9][a-z0-9._-]{{0,63}}"
            );
            return Err(Error::new(ErrorCode::InvalidName, message));
        }
        if self.programs.len() > MAX_PROGRAMS {
            let message = format!(
                "the launch names {} programs, more than {MAX_PROGRAMS}; leave out those that are not started",
                self.programs.len()
            );
            return Err(Error::new(ErrorCode::InvalidArgument, message));
        }
        if self.seed.is_none() {
            self.seed = Some(random_seed()?);
        }
        Ok(())
    }

    /// The micro-credits that it begins with in each model; none: as configured.
    ///
    /// # Errors
    /// `invalid-argument` for what is not an amount.
    pub(crate) fn endowment(&self) -> Result<Option<u64>, Error> {
        let credits = self.credits;
        credits
            .map(|credits| micro_credits("the endowment `credits` of a launch", credits))
            .transpose()
    }

    /// Bytes of its arguments.
    pub(crate) fn args_bytes(&self) -> usize {
        self.args.iter().map(String::len).sum()
    }
}

/// The text as an input: JSON as it is, anything else as `{"input": text}`.
fn json_input(text: String) -> String {
    match serde_json::from_str::<serde::de::IgnoredAny>(&text) {
        Ok(_) => text,
        Err(_) => serde_json::json!({ "input": text }).to_string(),
    }
}

fn check_size(what: &str, n_bytes: usize, limit: usize) -> Result<(), Error> {
    if n_bytes <= limit {
        return Ok(());
    }
    let message = format!(
        "{what} has {n_bytes} bytes, more than limits.message_bytes = {limit}; send the rest as messages"
    );
    Err(Error::new(ErrorCode::LimitMessage, message))
}

/// A seed that nobody knows before.
///
/// # Errors
/// `internal` where the system gives none.
pub(crate) fn random_seed() -> Result<u64, Error> {
    getrandom::u64()
        .map_err(|error| Error::internal(format!("the system gives no randomness: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endowment_is_an_amount() {
        let launch = |credits| Launch {
            credits,
            ..Launch::new(crate::program::Component::new(*b"any"), "")
        };
        assert_eq!(launch(None).endowment().unwrap(), None);
        assert_eq!(launch(Some(0.0)).endowment().unwrap(), Some(0));
        assert_eq!(launch(Some(2.5)).endowment().unwrap(), Some(2_500_000));
        for credits in [f64::NAN, f64::INFINITY, -1.0, 9_223_372_036_854_775_808.0] {
            let error = launch(Some(credits)).endowment().unwrap_err();
            assert_eq!(error.code, ErrorCode::InvalidArgument);
            let named = format!("the endowment `credits` of a launch is {credits:?} credits");
            assert!(error.message.starts_with(&named), "{}", error.message);
        }
    }

    #[test]
    fn a_text_that_is_not_json_becomes_the_input_field() {
        for (text, expected) in [
            ("{\"a\":1}", "{\"a\":1}"),
            ("null", "null"),
            ("hello \"x\"", "{\"input\":\"hello \\\"x\\\"\"}"),
            ("", "{\"input\":\"\"}"),
        ] {
            assert_eq!(json_input(text.to_owned()), expected);
        }
    }
}
