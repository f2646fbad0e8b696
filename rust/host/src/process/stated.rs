//! The codes that a program may end with: those of mistakes in its own calls, and those of errors that the engine gave
//! it.
//!
//! Whoever looks at how a process ended reads its code, so a program must not be able to say that the engine stopped
//! it.

use std::collections::HashSet;

use pie_core::ErrorCode;

/// The codes of the errors that the engine gave a program: it may end with one of them, as where it does not handle it.
#[derive(Debug, Default)]
pub(crate) struct Told(HashSet<ErrorCode>);

impl Told {
    /// The program gets an error of that code.
    pub(crate) fn note(&mut self, code: ErrorCode) {
        self.0.insert(code);
    }

    /// The code of a program that ends with the one that it states; `program-error` where it may not.
    pub(crate) fn code(&self, stated: Option<&str>) -> ErrorCode {
        stated
            .and_then(ErrorCode::from_name)
            .filter(|code| is_of_programs(*code) || self.0.contains(code))
            .unwrap_or(ErrorCode::ProgramError)
    }
}

/// True for the codes that SDKs and language runtimes give to mistakes that they find by themselves.
fn is_of_programs(code: ErrorCode) -> bool {
    use ErrorCode as Code;
    matches!(
        code,
        Code::ProgramError
            | Code::Deadlock
            | Code::InvalidProgram
            | Code::InvalidInput
            | Code::InvalidOutput
            | Code::InvalidArgument
            | Code::InvalidToken
            | Code::InvalidSampler
            | Code::InvalidProbe
            | Code::EmptyContext
            | Code::ContextBusy
            | Code::ContextReleased
            | Code::ContextFull
            | Code::SnapshotMissing
            | Code::TruncateRange
            | Code::GeneratorRetired
            | Code::StepPending
            | Code::GrammarMismatch
            | Code::JsonCut
            | Code::HttpProtocol
            | Code::ClientGone
            | Code::NotServing
            | Code::LimitHttpTime
            | Code::FutureTaken
            | Code::SessionClosed
            | Code::UnknownModel
            // Languages have bounds of their own on memory and on calls within one another.
            | Code::LimitMemory
            | Code::LimitStack
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_ends_with_codes_of_its_own_or_that_it_was_told() {
        let mut told = Told::default();
        for forged in [
            "engine-stopped",
            "cancelled",
            "limit-cpu",
            "internal",
            "no-such-code",
        ] {
            assert_eq!(told.code(Some(forged)), ErrorCode::ProgramError, "{forged}");
        }
        assert_eq!(told.code(None), ErrorCode::ProgramError);
        assert_eq!(told.code(Some("deadlock")), ErrorCode::Deadlock);
        assert_eq!(told.code(Some("json-cut")), ErrorCode::JsonCut);
        assert_eq!(told.code(Some("out-of-pages")), ErrorCode::ProgramError);
        told.note(ErrorCode::OutOfPages);
        assert_eq!(told.code(Some("out-of-pages")), ErrorCode::OutOfPages);
    }
}
