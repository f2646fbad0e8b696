//! Names of things. A name is never reused while the engine lives, so that a stale one is noticed.

use std::fmt;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $word:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(pub u64);

        impl fmt::Debug for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(formatter, concat!($word, "#{}"), self.0)
            }
        }
    };
}

id!(
    /// A launched program. The host chooses it.
    ProcessId, "process"
);
id!(
    /// Whom a process runs for. The host chooses it. Pages are shared within a user, and users get equal shares.
    UserId, "user"
);
id!(
    /// One pass that a program waits for. The host chooses it, unique while the engine lives.
    RequestId, "request"
);
id!(
    /// A pass of a context, in batches and in the queue. They count in the order of submission.
    PassId, "pass"
);
id!(
    /// A context.
    ContextId, "context"
);
id!(
    /// A generator.
    GeneratorId, "generator"
);
id!(
    /// A batch, counted from 1 in the order of planning.
    BatchId, "batch"
);

id!(
    /// A command to a driver, counted from 1 in the order in which they are given.
    CommandId, "command"
);

id!(
    /// A full page of what contexts say, behind all before it, wherever its keys and values are.
    ContentId, "content"
);

/// A page of the pool: the index by which drivers address it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PageId(pub u32);

/// A slot of host memory that holds a copy of a page: the index by which drivers address it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HostSlot(pub u32);
