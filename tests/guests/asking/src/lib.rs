//! Programs that ask servers: one function a task.

use std::time::Duration;

use inferlet::http::{self, Redirects, Request};
use inferlet::{Result, error_code, task};
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Deserialize)]
#[serde(tag = "do", rename_all = "snake_case")]
enum Input {
    Get { url: String },
    Echo { url: String, value: Value },
    Stream { url: String, go: String },
    Lines { url: String },
    Upload { url: String },
    TooLong { url: String },
    Together { url: String, n: usize },
    Redirects { url: String },
    Codes { urls: Vec<String> },
    Uncaught { url: String },
    GiveUp { url: String },
    InTime { url: String },
}

#[inferlet::main]
async fn main(input: Input) -> Result<Value> {
    Ok(match input {
        Input::Get { url } => get(&url).await?,
        Input::Echo { url, value } => echo(&url, &value).await?,
        Input::Stream { url, go } => json!(stream(&url, &go).await?),
        Input::Lines { url } => {
            let text = http::fetch(&url).await?.text().await?;
            let text = text.replace("\r\n", "\n").replace('\r', "\n");
            json!(text.trim_end().split('\n').collect::<Vec<_>>())
        }
        Input::Upload { url } => upload(&url).await?,
        Input::TooLong { url } => {
            let mut upload = http::upload(Request::post(url))?;
            upload.write("x".repeat(600)).await?;
            let refused = upload.write("y".repeat(600)).await;
            json!(
                refused
                    .err()
                    .and_then(|error| error_code(&error))
                    .map(|code| code.to_string())
            )
        }
        Input::Together { url, n } => together(&url, n).await?,
        Input::Redirects { url } => redirects(&url).await?,
        Input::Codes { urls } => codes(&urls).await,
        Input::Uncaught { url } => json!(http::fetch(&url).await?.text().await?),
        Input::GiveUp { url } => give_up(&url).await?,
        Input::InTime { url } => {
            let request = Request::get(url).timeout(Duration::from_millis(100));
            json!(code(whole(request).await))
        }
    })
}

async fn get(url: &str) -> Result<Value> {
    let response = http::fetch(url).await?;
    let head = (
        response.status(),
        response.status_text().to_owned(),
        response.ok(),
        response.url().to_owned(),
        response.is_redirected(),
        response.header("X-Own").map(str::to_owned),
    );
    let (status, text, ok, last, redirected, own) = head;
    Ok(json!([
        status,
        text,
        ok,
        last,
        redirected,
        own,
        response.text().await?
    ]))
}

async fn echo(url: &str, value: &Value) -> Result<Value> {
    let request = Request::post(url)
        .header("X-A", "ü")
        .header("Host", "other.example");
    http::fetch(request.json(value)?).await?.json().await
}

async fn stream(url: &str, go: &str) -> Result<Vec<String>> {
    let mut response = http::fetch(url).await?;
    let mut parts = Vec::new();
    while let Some(part) = response.chunk().await? {
        parts.push(String::from_utf8_lossy(&part).into_owned());
        if parts.len() == 1 {
            http::fetch(Request::post(go)).await?;
        }
    }
    Ok(parts)
}

async fn upload(url: &str) -> Result<Value> {
    let mut upload = http::upload(Request::post(url))?;
    for part in ["one", "two", "three"] {
        upload.write(part).await?;
    }
    let answer: Value = upload.response().await?.json().await?;
    Ok(answer["body"].clone())
}

async fn together(url: &str, n: usize) -> Result<Value> {
    let responses = task::join_all((0..n).map(|_| http::fetch(url))).await;
    let mut sum = 0;
    for response in responses {
        let response = response?;
        sum += u32::from(response.status());
        response.bytes().await?;
    }
    Ok(json!(sum))
}

async fn redirects(url: &str) -> Result<Value> {
    let kept = http::fetch(Request::get(url).redirects(Redirects::Keep)).await?;
    let failed = whole(Request::get(url).redirects(Redirects::Fail)).await;
    Ok(json!([
        kept.status(),
        kept.header("location"),
        code(failed)
    ]))
}

async fn codes(urls: &[String]) -> Value {
    let mut codes = Vec::new();
    for url in urls {
        codes.push(code(whole(Request::get(url)).await));
    }
    json!(codes)
}

async fn whole(request: Request) -> Result<Vec<u8>> {
    http::fetch(request).await?.bytes().await
}

fn code(outcome: Result<Vec<u8>>) -> Option<String> {
    let error = outcome.err()?;
    assert_eq!(http::refusal().as_ref(), Some(&error));
    Some(error_code(&error)?.to_string())
}

/// Gives up a request that is not answered, and one whose answer does not end.
async fn give_up(url: &str) -> Result<Value> {
    let hanging = http::fetch(format!("{url}/hang"));
    assert!(
        task::timeout(Duration::from_millis(50), hanging)
            .await
            .is_none()
    );
    let mut response = http::fetch(format!("{url}/endless")).await?;
    assert!(response.chunk().await?.is_some());
    Ok(json!("gave up"))
}
