//! What a process tells its client.

/// One thing that a process told its client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// Text that the program printed, verbatim. Where one ends and the next begins says nothing.
    Stdout(String),
    /// One value that the program sent. Clients get it as `stdout` too, with its form.
    Sent(String, Form),
    /// Text that the program wrote to its standard error, verbatim.
    Stderr(String),
    /// Bytes that the program sent as one file.
    File(Vec<u8>),
    /// What the program tells its client beside its output.
    Message(String),
    /// What the engine itself says about the process.
    Notice(String),
    /// The last event of a program that succeeded: its return value, a JSON text.
    Return(String),
    /// The last event of a program that did not.
    Error(Failure),
}

/// What a text that was sent is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A text, verbatim.
    Text,
    /// The JSON of a value.
    Json,
}

impl Form {
    /// What clients call it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Json => "json",
        }
    }
}

/// What an event brings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EventKind {
    Stdout,
    Stderr,
    File,
    Message,
    Notice,
    /// The end of the program.
    Last,
}

/// Why a process ended without a return value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The type of the exception in the program's language; the error code where the host ended the program.
    pub kind: String,
    /// The stable code, where there is one.
    pub code: Option<String>,
    /// For people: names the value, the limit and the remedy.
    pub message: String,
    /// The program's own files and lines; empty where there are none.
    pub traceback: String,
}

impl From<crate::Error> for Failure {
    fn from(error: crate::Error) -> Self {
        let code = error.code.as_str().to_owned();
        Self {
            kind: code.clone(),
            code: Some(code),
            message: error.message,
            traceback: String::new(),
        }
    }
}

impl Event {
    /// The event as clients of a server get it: of a fault of the engine they learn that there was one. Its text may
    /// name paths, and is for whoever runs the engine.
    pub(crate) fn without_internals(self) -> Self {
        match self {
            Self::Error(failure)
                if failure.code.as_deref() == Some(pie_core::ErrorCode::Internal.as_str()) =>
            {
                let message = "the engine met a fault of its own; tell whoever runs it the number of this process, beside which its log has the cause";
                Self::Error(Failure {
                    message: message.to_owned(),
                    traceback: String::new(),
                    ..failure
                })
            }
            event => event,
        }
    }

    /// Bytes of what the event carries: text, value, message and traceback, or file.
    pub fn payload_bytes(&self) -> usize {
        match self {
            Self::Stdout(text)
            | Self::Sent(text, _)
            | Self::Stderr(text)
            | Self::Message(text)
            | Self::Notice(text)
            | Self::Return(text) => text.len(),
            Self::File(data) => data.len(),
            Self::Error(failure) => failure.message.len() + failure.traceback.len(),
        }
    }

    /// What it brings.
    pub(crate) fn kind(&self) -> EventKind {
        match self {
            Self::Stdout(_) | Self::Sent(..) => EventKind::Stdout,
            Self::Stderr(_) => EventKind::Stderr,
            Self::File(_) => EventKind::File,
            Self::Message(_) => EventKind::Message,
            Self::Notice(_) => EventKind::Notice,
            Self::Return(_) | Self::Error(_) => EventKind::Last,
        }
    }

    /// True for an event after which none comes.
    pub fn is_last(&self) -> bool {
        self.kind() == EventKind::Last
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Error;

    #[test]
    fn clients_learn_that_there_was_a_fault_and_nothing_of_it() {
        let fault = Failure::from(Error::internal("/srv/pie/python cannot be started"));
        let Event::Error(told) = Event::Error(fault).without_internals() else {
            panic!("an error stays one");
        };
        assert_eq!(told.code.as_deref(), Some("internal"));
        assert!(!told.message.contains('/'), "{}", told.message);
        let other = Event::Error(Failure::from(crate::errors::stopped()));
        assert_eq!(other.clone().without_internals(), other);
    }
}
