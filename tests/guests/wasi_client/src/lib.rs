//! Asks servers by `wstd`, which stands on `wasi:http` itself.

use inferlet::Result;
use inferlet::http::refusal;
use serde::Deserialize;
use serde_json::{Value, json};
use wstd::http::{Body, Client, Request};

#[derive(Deserialize)]
struct Input {
    method: String,
    url: String,
    body: String,
    /// How many requests are made, one after the other, whose answers are kept.
    #[serde(default = "once")]
    n: usize,
}

fn once() -> usize {
    1
}

#[inferlet::main]
async fn main(input: Input) -> Result<Value> {
    let asked = wstd::runtime::block_on(ask(&input));
    asked.map_err(|error| refusal().unwrap_or_else(|| error.to_string()))
}

async fn ask(input: &Input) -> std::result::Result<Value, wstd::http::Error> {
    let mut kept = Vec::new();
    for _ in 0..input.n {
        let request = Request::builder()
            .method(&*input.method)
            .uri(&input.url)
            .header("x-a", "1")
            .body(Body::from(input.body.clone()))?;
        kept.push(Client::new().send(request).await?);
    }
    let mut response = kept
        .pop()
        .ok_or_else(|| wstd::http::Error::msg("no request"))?;
    let status = response.status().as_u16();
    let location = response.headers().get("location");
    let location = location.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
    let text = response.body_mut().str_contents().await?.to_owned();
    Ok(json!([status, location, text]))
}
