//! Faults of the disk as clients learn of them: by a code and a remedy, and never by a path of the server, which its
//! log has.

use std::io;

use pie_host::{Error, ErrorCode};

use crate::plain::plain;

/// The error for clients of something that cannot be done (`what`, as in "the program p@1 cannot be written"). The log
/// gets the rest.
pub(crate) fn disk_error(what: &str, error: &io::Error) -> Error {
    use io::ErrorKind::{
        FileTooLarge, PermissionDenied, QuotaExceeded, ReadOnlyFilesystem, StorageFull,
    };
    tracing::error!(%error, "{what}");
    // The kind, since the text may name a path.
    let (code, reason, remedy) = match error.kind() {
        StorageFull | QuotaExceeded | FileTooLarge => (
            ErrorCode::DiskFull,
            "the disk of the server has no room for it",
            "uninstall programs, or have whoever runs the server make room or give it another folder with engine.data_dir",
        ),
        ReadOnlyFilesystem | PermissionDenied => (
            ErrorCode::DiskReadOnly,
            "the server has no access to its own folder",
            "have whoever runs the server give it access, or another folder with engine.data_dir",
        ),
        _ => (
            ErrorCode::DiskError,
            "the disk of the server failed",
            "try again, and have whoever runs the server look into its log",
        ),
    };
    Error::new(code, format!("{what}: {reason}; {remedy}"))
}

/// The message of an error for clients. Of a fault of the engine they learn that there was one: its text may name
/// paths, and is written to the log.
pub(crate) fn message(error: &Error) -> &str {
    if error.code != ErrorCode::Internal {
        return &error.message;
    }
    tracing::error!("{}", plain(&error.message));
    "the engine met a fault of its own; tell whoever runs it, whose log has the cause"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_learn_that_there_was_a_fault_and_nothing_of_it() {
        let fault = Error::internal("/srv/pie/python cannot be started");
        assert!(!message(&fault).contains('/'), "{}", message(&fault));
        let other = Error::new(ErrorCode::InvalidName, "a/b is not a name");
        assert_eq!(message(&other), "a/b is not a name");
    }

    #[test]
    fn each_fault_has_its_code_and_none_tells_a_path() {
        const EIO: i32 = 5;
        for (cause, code) in [
            (io::ErrorKind::StorageFull.into(), ErrorCode::DiskFull),
            (io::ErrorKind::QuotaExceeded.into(), ErrorCode::DiskFull),
            (io::ErrorKind::FileTooLarge.into(), ErrorCode::DiskFull),
            (
                io::ErrorKind::ReadOnlyFilesystem.into(),
                ErrorCode::DiskReadOnly,
            ),
            (
                io::ErrorKind::PermissionDenied.into(),
                ErrorCode::DiskReadOnly,
            ),
            (io::ErrorKind::NotADirectory.into(), ErrorCode::DiskError),
            (io::Error::from_raw_os_error(EIO), ErrorCode::DiskError),
        ] {
            // As the errors of temporary files are: of the same kind, with the path in their text.
            let error = io::Error::new(cause.kind(), format!("{cause} at path /srv/secret"));
            let told = disk_error("the program p@1 cannot be written", &error);
            assert_eq!(told.code, code, "{error}");
            assert!(
                told.message
                    .starts_with("the program p@1 cannot be written: "),
                "{told}"
            );
            assert!(
                !told.message.contains('/') && told.message.contains("; "),
                "{told}"
            );
        }
    }
}
