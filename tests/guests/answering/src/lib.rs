//! A program that serves HTTP: one function a path.

use std::cell::Cell;
use std::collections::BTreeMap;

use inferlet::http_server::{self, BodyWriter, Request, Response};
use inferlet::prelude::*;
use inferlet::{FutureStringExt, messaging};
use serde_json::json;

const PART_BYTES: usize = 64 << 10;
const N_PARTS: usize = 1024;

thread_local! {
    static N_REQUESTS: Cell<u32> = const { Cell::new(0) };
    static N_WRITTEN: Cell<u32> = const { Cell::new(0) };
}

#[inferlet::main]
async fn main() -> Result<()> {
    http_server::serve(fetch).await
}

async fn fetch(mut request: Request) -> Result<Response> {
    N_REQUESTS.set(N_REQUESTS.get() + 1);
    let path = request.path().to_owned();
    match path.trim_matches('/') {
        "echo" => echo(&mut request).await,
        "count" => Response::json(&N_REQUESTS.get()),
        "length" => length(&mut request).await,
        "stream" => Ok(Response::stream(stream)),
        "go" => {
            messaging::push("go", "on")?;
            Ok(Response::text("going"))
        }
        "events" => Ok(Response::events(events)),
        "fail" => Err("no answer comes of this".to_owned()),
        "broken" => Ok(Response::stream(|mut body: BodyWriter| async move {
            body.write("one").await?;
            Err("the rest is not there".to_owned())
        })),
        "silent" => pulled("never").await,
        "tokens" => Ok(Response::stream(tokens)),
        "gone" => pulled("gone").await,
        "flood" => Ok(Response::stream(flood)),
        "parts" => Response::json(&N_WRITTEN.get()),
        "empty" => Ok(Response::empty(204)),
        _ => Ok(Response::text(format!("there is no {path}")).status(404)),
    }
}

async fn pulled(topic: &str) -> Result<Response> {
    let text = messaging::pull(topic).wait_async().await;
    Ok(Response::text(text.unwrap_or_default()))
}

async fn echo(request: &mut Request) -> Result<Response> {
    let body = request.text().await?;
    let pairs = request.query().unwrap_or_default().split('&');
    let query: BTreeMap<_, _> = pairs.filter_map(|pair| pair.split_once('=')).collect();
    let value = json!({
        "method": request.method(), "path": request.path(), "query": query, "header": request.header("x-a"), "body": body,
    });
    Ok(Response::json(&value)?.status(201).header("X-Own", "ü"))
}

async fn length(request: &mut Request) -> Result<Response> {
    Response::json(&request.bytes().await?.len())
}

async fn stream(mut body: BodyWriter) -> Result<()> {
    body.write("one").await?;
    messaging::pull("go").wait_async().await;
    body.write("two").await
}

async fn events(mut body: BodyWriter) -> Result<()> {
    body.event(&json!({ "n": 1 })).await?;
    body.text_event(Some("text"), "a\nb").await
}

/// Says that what it stands behind was dropped.
struct Going;

impl Drop for Going {
    fn drop(&mut self) {
        // Where the engine has ended there is nobody to tell.
        let _ = messaging::push("gone", "it has");
    }
}

async fn tokens(mut body: BodyWriter) -> Result<()> {
    let _going = Going;
    let mut ctx = Context::new(&Model::load("default")?)?;
    ctx.user("Tell me something without an end.");
    loop {
        let mut g = ctx
            .generate(Sampler::Argmax)
            .max_tokens(64)
            .ignore_eos(true);
        while let Some(step) = g.next()? {
            let out = step.execute().await?;
            body.write(format!("{}\n", out.tokens[0])).await?;
        }
    }
}

async fn flood(mut body: BodyWriter) -> Result<()> {
    for _ in 0..N_PARTS {
        N_WRITTEN.set(N_WRITTEN.get() + 1);
        body.write(vec![b'x'; PART_BYTES]).await?;
    }
    Ok(())
}
