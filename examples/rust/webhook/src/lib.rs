//! A webhook: a help desk sends each new ticket, and gets a label for it. Whoever sends one shows a secret, which the
//! program is launched with: `pie run webhook.wasm --port 8000 -- --secret s3cret`.

use inferlet::Regex;
use inferlet::http_server::{self, Request, Response};
use inferlet::prelude::*;
use serde::Deserialize;
use serde_json::json;

const LABELS: [&str; 3] = ["question", "fault", "thanks"];

#[derive(Clone, Default, Deserialize)]
#[serde(default)]
struct Input {
    secret: String,
}

#[derive(Deserialize)]
struct Ticket {
    subject: String,
    text: String,
}

#[inferlet::main]
async fn main(input: Input) -> Result<()> {
    http_server::serve(|request| fetch(request, input.secret.clone())).await
}

async fn fetch(mut request: Request, secret: String) -> Result<Response> {
    if request.method() != "POST" {
        return Ok(Response::text("send tickets by POST\n").status(405));
    }
    if request.header("x-webhook-secret") != Some(secret.as_str()) {
        return Ok(Response::text("show the secret in X-Webhook-Secret\n").status(401));
    }
    match request.json::<Ticket>().await {
        Ok(ticket) => Response::json(&json!({ "label": label(&ticket).await? })),
        Err(error) => Ok(Response::text(error).status(400)),
    }
}

/// The label that the model gives a ticket: one of the list, whatever it would rather say.
async fn label(ticket: &Ticket) -> Result<String> {
    let mut ctx = Context::new(&Model::load("default")?)?;
    ctx.user(&format!(
        "Is this a question, a fault or thanks?\n\n{}\n\n{}",
        ticket.subject, ticket.text
    ));
    let labels = LABELS.join("|");
    ctx.generate(Sampler::Argmax)
        .constrain_with(Regex(&labels))?
        .max_tokens(16)
        .collect_text()
        .await
}
