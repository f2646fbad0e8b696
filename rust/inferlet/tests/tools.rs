//! Functions under `#[inferlet::tool]` whose names are those of the expansion, or are written with the marks of Rust.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use inferlet::Result;
use inferlet::tools::Tool;

/// Tells what it was given.
#[inferlet::tool]
async fn r#match(arguments: String, run: u32, answer: bool, r#type: String) -> Result<String> {
    Ok(format!("{arguments} {run} {answer} {}", r#type))
}

#[test]
fn a_tool_may_have_any_names() {
    let schema = r#match.schema();
    for name in ["match", "arguments", "run", "answer", "type"] {
        assert!(schema.contains(&format!("\"{name}\"")), "{schema}");
    }
    let given = r#"{"arguments": "a", "run": 1, "answer": true, "type": "t"}"#;
    let mut call = pin!(r#match::call(given));
    let answer = call.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    assert_eq!(answer, Poll::Ready(Ok("a 1 true t".to_owned())));
}
