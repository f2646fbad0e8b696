//! Programs that talk to each other: one function a task, and the reference as it is printed.

use std::cell::Cell;
use std::time::Duration;

use inferlet::{Result, SubscriptionExt, error_code, session, task};
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Deserialize)]
#[serde(tag = "do", rename_all = "snake_case")]
enum Input {
    Reference,
    Push {
        topic: String,
        messages: Vec<String>,
    },
    Pull {
        topic: String,
        n: usize,
    },
    Forward {
        topic: String,
    },
    Broadcast {
        topic: String,
        messages: Vec<String>,
    },
    Listen {
        topic: String,
        n: usize,
    },
    Fill {
        topic: String,
        n: usize,
        size: usize,
    },
    GiveUp {
        topic: String,
    },
    Turns {
        topic: String,
        n: usize,
    },
    Raw {
        topic: String,
    },
    Children {
        program: String,
        texts: [String; 2],
    },
}

/// Children by the names that the crate itself has for them.
async fn children(program: &str, [first, second]: [String; 2]) -> Result<Value> {
    let child: inferlet::Child = inferlet::launch(program, json!({ "text": first }))?;
    let called: u64 = inferlet::call(program, json!({ "text": second })).await?;
    let waited: u64 = child.wait().await?;
    let cancelled = inferlet::launch(program, json!({ "text": "" }))?;
    cancelled.cancel();
    // It may have ended before.
    let ended = match cancelled.await {
        Ok(value) => value,
        Err(text) => json!(error_code(&text).map(|code| code.as_str().to_owned())),
    };
    let unknown = inferlet::call::<Value>("absent", json!({})).await;
    let refused = unknown.err().and_then(|text| error_code(&text));
    Ok(json!([
        waited,
        called,
        ended,
        refused.map(|code| code.as_str().to_owned())
    ]))
}

#[inferlet::main]
async fn main(input: Input) -> Result<Value> {
    use inferlet::{FutureStringExt, messaging};

    match input {
        Input::Reference => return reference().await,
        Input::Push { topic, messages } => {
            for message in messages {
                messaging::push(&topic, &message)?;
            }
        }
        Input::Pull { topic, n } => {
            let mut pulled = Vec::new();
            while pulled.len() < n {
                pulled.push(messaging::pull(&topic).wait_async().await);
            }
            return Ok(json!(pulled));
        }
        Input::Forward { topic } => {
            session::send("ready");
            while let Some(message) = messaging::pull(&topic).wait_async().await {
                session::send(&message);
            }
        }
        Input::Broadcast { topic, messages } => {
            for message in messages {
                messaging::broadcast(&topic, &message)?;
            }
        }
        Input::Listen { topic, n } => {
            let sub = messaging::subscribe(&topic);
            session::send("ready");
            let mut heard = Vec::new();
            while heard.len() < n {
                heard.push(sub.get_async().await);
            }
            sub.unsubscribe();
            return Ok(json!(heard));
        }
        Input::Fill { topic, n, size } => return Ok(fill(&topic, n, size)),
        Input::GiveUp { topic } => {
            for _ in 0..3 {
                let pull = messaging::pull(&topic).wait_async();
                task::timeout(Duration::from_millis(1), pull).await;
            }
            session::send("ready");
            return Ok(json!(messaging::pull(&topic).wait_async().await));
        }
        Input::Raw { topic } => return raw(&topic),
        Input::Turns { topic, n } => return turns(&topic, n).await,
        Input::Children { program, texts } => return children(&program, texts).await,
    }
    Ok(Value::Null)
}

async fn reference() -> Result<Value> {
    use inferlet::messaging;
    use inferlet::{FutureStringExt, SubscriptionExt};

    let sub = messaging::subscribe("topic");
    messaging::broadcast("topic", "message")?;
    messaging::push("topic", "message")?;
    let next = messaging::pull("topic");
    let pulled: Option<String> = next.wait_async().await;
    let heard: Option<String> = sub.get_async().await;
    messaging::broadcast("topic", "another")?;
    let another = sub.get();
    sub.unsubscribe();
    let ended = sub.get_async().await;
    Ok(json!([pulled, heard, another, ended]))
}

/// Pushes until it is refused; answers how often it was not, and why it was.
fn fill(topic: &str, n: usize, size: usize) -> Value {
    let message = "x".repeat(size);
    for index in 0..n {
        if let Err(error) = inferlet::messaging::push(topic, &message) {
            let code = error_code(&error).map(|code| code.as_str());
            return json!([index, code, error]);
        }
    }
    json!([n, null, null])
}

/// Waits by the pollable of a subscription, which is ready when there is a message and when it has ended.
fn raw(topic: &str) -> Result<Value> {
    use inferlet::messaging;

    let sub = messaging::subscribe(topic);
    session::send("ready");
    sub.pollable().block();
    let heard = sub.get();
    let is_ready = sub.pollable().ready();
    sub.unsubscribe();
    Ok(json!([
        heard,
        is_ready,
        sub.pollable().ready(),
        sub.get(),
        sub.lagged()
    ]))
}

/// Pulls messages that are all there, beside a timer that is due. Returns how many were pulled before the timer ran.
async fn turns(topic: &str, n: usize) -> Result<Value> {
    use inferlet::{FutureStringExt, messaging};

    for _ in 0..n {
        messaging::push(topic, "there")?;
    }
    let n_pulled = Cell::new(0);
    let pulling = async {
        while messaging::pull(topic).wait_async().await.is_some() {
            n_pulled.set(n_pulled.get() + 1);
        }
    };
    task::select(pulling, task::sleep(Duration::ZERO)).await;
    Ok(json!(n_pulled.get()))
}
