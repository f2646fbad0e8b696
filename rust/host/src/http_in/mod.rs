//! Requests of clients to programs that serve HTTP.
//!
//! A server reads a request from a connection and hands it to a [`queue`], from which the program of that queue takes
//! it (`pie:core/http-server`), or the host for a component that exports `wasi:http/incoming-handler` ([`wasi`]). The
//! body goes to the program through the parts of `network`, the answer comes back through [`answer`], and in both
//! directions one part waits at most: who is slow holds up who is fast, and nothing is piled up between them.
//!
//! | what ends | what follows |
//! |---|---|
//! | the client, or its time | [`gone`] tells the program; writes to the answer fail with `client-gone` |
//! | the program, before it has answered | whoever asked gets `http-no-answer`; so does one end that answered nothing |
//! | the program, in the middle of its answer | the body fails, and so the connection: no client takes it for whole |

pub(crate) mod answer;
pub(crate) mod gone;
pub(crate) mod incoming;
pub(crate) mod queue;
pub(crate) mod wasi;

use pie_core::ErrorCode;

use crate::Error;

/// How a program ends that has answered none of the requests that it took.
pub(crate) fn answered_nothing() -> Error {
    Error::new(
        ErrorCode::HttpNoAnswer,
        "the program answered none of the requests that it took; what it wrote to stderr says why",
    )
}

/// The error of a program to which nobody sends requests.
pub(crate) fn not_serving() -> Error {
    Error::new(
        ErrorCode::NotServing,
        "this program was not launched to answer requests by HTTP; run it by `pie run PROGRAM --port PORT`, or install it with --http",
    )
}
