//! The entry: input text to the user's `main`, and its answer or failure back.

use std::fmt::Display;
use std::io::Write;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::bindings::exports::pie::inferlet::run::Failure;
use crate::{Result, absent, bridge, errors, kept, stdout, task};

/// Runs the program once, as `#[inferlet::main]` asks: input and answer are JSON texts.
pub fn run<I, O, E, F>(
    input: &str,
    main: impl FnOnce(I) -> F,
) -> std::result::Result<String, Failure>
where
    I: DeserializeOwned + 'static,
    O: Serialize,
    E: Display,
    F: Future<Output = std::result::Result<O, E>>,
{
    report_panics();
    let argument = bridge::decode(input).map_err(failure)?;
    let end = task::block_on(main(argument));
    stdout::flush_output();
    finish(end).map_err(failure)
}

/// The answer as JSON, unless the program failed or left an error that nobody met.
fn finish<O: Serialize, E: Display>(end: Result<std::result::Result<O, E>>) -> Result<String> {
    let unmet = kept::take_unmet();
    let answer = end?.map_err(|error| absent::explained(error.to_string()))?;
    match unmet {
        Some(error) => Err(error),
        None => bridge::encode(&answer),
    }
}

/// An error text as the failure that the client sees. A code at its front becomes the code of the failure.
fn failure(text: String) -> Failure {
    let (code, message) = match errors::split(&text) {
        Some((code, message)) => (Some(code.as_str().to_owned()), message.to_owned()),
        None => (None, text),
    };
    Failure {
        kind: "Error".to_owned(),
        message,
        code,
        traceback: String::new(),
    }
}

/// A panic ends the instance, and a trap carries no message: the message goes to stderr, with the line that panicked.
/// The engine reads it there, and makes it the error of the program.
fn report_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let said = panic.to_string();
        let hint = absent::hint(&said).map_or_else(String::new, |hint| format!(": {hint}"));
        // Where stderr is closed there is nobody to tell.
        let _ = writeln!(std::io::stderr(), "{said}{hint}");
    }));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kept::Keeper;

    #[test]
    fn a_code_at_the_front_becomes_the_code_of_the_failure() {
        let seen = failure("[out-of-pages] 3 pages are free, 5 are needed".into());
        assert_eq!(
            (seen.code.as_deref(), seen.message.as_str()),
            (Some("out-of-pages"), "3 pages are free, 5 are needed")
        );
        let own = failure("[x] mine".into());
        assert_eq!(
            (own.code, own.message.as_str(), own.kind.as_str()),
            (None, "[x] mine", "Error")
        );
    }

    #[test]
    fn the_program_s_own_error_comes_before_one_that_nobody_met() {
        Keeper::new().keep("unmet");
        assert_eq!(finish::<(), _>(Ok(Err("own"))), Err("own".to_owned()));
        Keeper::new().keep("unmet");
        assert_eq!(finish::<_, String>(Ok(Ok(1))), Err("unmet".to_owned()));
        assert_eq!(finish::<_, String>(Ok(Ok(1))), Ok("1".to_owned()));
        assert_eq!(
            finish::<u32, String>(Err("[deadlock] …".into())),
            Err("[deadlock] …".to_owned())
        );
    }

    // rows: RS-003
    #[test]
    fn input_reaches_main_and_its_answer_comes_back() {
        let answer = run(
            r#"{"a": 2}"#,
            |input: std::collections::BTreeMap<String, u32>| async move {
                crate::Result::Ok(input["a"] + 1)
            },
        );
        assert_eq!(
            answer.map_err(|failure| failure.message),
            Ok("3".to_owned())
        );
    }
}
