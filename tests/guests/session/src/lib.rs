//! The session as the reference documents print it: one function a snippet, with what the document leaves out
//! completed.

use inferlet::Result;
use inferlet::prelude::*;
use serde_json::{Value, json};

#[inferlet::main]
async fn main(snippet: String) -> Result<Value> {
    match snippet.as_str() {
        "send" => send(),
        "forms" => {
            use inferlet::session;

            session::send("text");
            session::send_json(&json!({ "n": 3 }))?;
            println!("printed");
            session::message("beside");
            session::send_json(&7)?;
            Ok(Value::Null)
        }
        "receive" => receive().await,
        "stream" => stream().await,
        "structured" => structured(),
        "files" => files().await,
        "signals" => Ok(json!(signals().await?)),
        "instance" => Ok(json!(runtime::instance_id())),
        "patience" => patience().await,
        "print" => {
            use inferlet::pie::core::session;

            print!("a");
            session::send("b");
            print!("c");
            session::send_file(b"d");
            print!("e");
            Ok(Value::Null)
        }
        other => Err(format!("there is no snippet {other}")),
    }
}

fn send() -> Result<Value> {
    let pdf_bytes = b"%PDF-1.7\n\xff".to_vec();

    use inferlet::pie::core::session;

    session::send("hello"); // text
    session::send_file(&pdf_bytes); // binary

    Ok(Value::Null)
}

async fn receive() -> Result<Value> {
    use inferlet::FutureStringExt;
    use inferlet::pie::core::session;

    let next = session::receive();
    let msg: Option<String> = next.wait_async().await; // None if the client disconnected

    Ok(json!(msg))
}

async fn stream() -> Result<Value> {
    let model = Model::load("default")?;
    let mut ctx = Context::new(&model)?;
    ctx.user("Hello!");

    use inferlet::pie::core::session;
    use inferlet::{chat, sample::Sampler};

    let mut g = ctx
        .generate(Sampler::TopP {
            temperature: 0.6,
            p: 0.95,
        })
        .max_tokens(512);
    let mut dec = chat::Decoder::new(&model);
    while let Some(step) = g.next()? {
        let out = step.execute().await?;
        if let chat::Event::Delta(s) = dec.feed(&out.tokens)? {
            session::send(&s);
        }
    }

    Ok(json!(g.tokens_generated()))
}

fn structured() -> Result<Value> {
    use inferlet::pie::core::session;

    let payload = serde_json::json!({
        "channel": "progress",
        "step": 3,
        "of": 10,
    })
    .to_string();
    session::send(&payload);

    Ok(Value::Null)
}

async fn files() -> Result<Value> {
    use inferlet::FutureBlobExt;
    use inferlet::pie::core::session;

    let blob: Vec<u8> = session::receive_file()
        .wait_async()
        .await
        .ok_or("client disconnected")?;
    process_pdf(&blob)?;

    Ok(Value::Null)
}

/// What the document leaves to the reader: here the file goes back.
fn process_pdf(blob: &[u8]) -> Result<()> {
    inferlet::session::send_file(blob);
    Ok(())
}

async fn signals() -> Result<String> {
    // Client side: process.signal("stop").
    // Inferlet side: pick the message up via session::receive.
    use inferlet::FutureStringExt;
    use inferlet::pie::core::session;

    let next = session::receive();
    if next.wait_async().await.as_deref() == Some("stop") {
        return Ok("stopped".into());
    }

    let signal = inferlet::session::receive_signal();
    Ok(signal.wait_async().await.ok_or("client disconnected")?)
}

/// Gives a wait for a file up, and asks again when the client knows of it.
async fn patience() -> Result<Value> {
    use std::time::Duration;

    use inferlet::{FutureBlobExt, session, task};

    let given_up = task::timeout(
        Duration::from_millis(5),
        session::receive_file().wait_async(),
    )
    .await;
    session::send("waiting");
    let first = session::receive_file().wait_async().await;
    let second = session::receive_file().wait_async().await;
    Ok(json!([given_up.is_none(), first, second]))
}
