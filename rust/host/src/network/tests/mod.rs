//! Requests to servers of this machine: good ones, hostile ones, and names that lead elsewhere.

mod addresses;
mod exchanges;
mod hostile;
mod redirects;
mod server;
mod tls;

use std::collections::VecDeque;
use std::io;
use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use pie_core::settings::Word;
use tokio::runtime::Handle;
use wasmtime_wasi::async_trait;
use wasmtime_wasi::p2::Pollable;

use super::allowed::Allowed;
use super::config::NetworkConfig;
use super::connection::{Network, Resolver};
use super::exchange::{Exchange, GivenBody, Head};
use super::held::HeldNetwork;
use super::redirect::Redirects;
use super::request::{self, Asked, BodyKind, Timeouts};
use super::target::Target;
use crate::budget::Budget;
use crate::futures::{Awaited, Future, Operation};
use crate::sync::lock;
use crate::{Error, Limits};

/// Answers with these addresses, one list a question; the last one again and again.
#[derive(Debug, Default)]
struct Scripted {
    answers: Mutex<VecDeque<Vec<IpAddr>>>,
    n_asked: AtomicUsize,
}

impl Scripted {
    fn new(answers: &[&[&str]]) -> Arc<Self> {
        let parse = |texts: &&[&str]| texts.iter().map(|text| text.parse().unwrap()).collect();
        Arc::new(Self {
            answers: Mutex::new(answers.iter().map(parse).collect()),
            n_asked: AtomicUsize::new(0),
        })
    }
}

#[async_trait]
impl Resolver for Scripted {
    async fn resolve(&self, _: &str) -> io::Result<Vec<IpAddr>> {
        self.n_asked.fetch_add(1, Ordering::Relaxed);
        let mut answers = lock(&self.answers);
        if answers.len() > 1 {
            return Ok(answers.pop_front().unwrap());
        }
        answers
            .front()
            .cloned()
            .ok_or_else(|| io::Error::other("no such name"))
    }
}

/// A process that may ask these servers, and knows names by `resolver`.
fn process_with(allow: &[&str], limits: &Limits, resolver: Arc<dyn Resolver>) -> HeldNetwork {
    let config = NetworkConfig {
        allow: allow
            .iter()
            .map(|text| Allowed::parse(text).unwrap())
            .collect(),
        ..NetworkConfig::default()
    };
    let network = Network::with_resolver(config, resolver).unwrap();
    let account = Budget::new(1 << 30, None).account("ada");
    HeldNetwork::new(Arc::new(network), Handle::current(), limits, account)
}

/// A process that may ask servers of this machine.
fn process(limits: &Limits) -> HeldNetwork {
    process_with(&["127.0.0.1"], limits, Scripted::new(&[]))
}

fn asked(method: &str, url: &str) -> Result<Asked, Error> {
    Ok(Asked {
        target: Target::parse(url)?,
        method: request::method(method)?,
        headers: request::headers([], BodyKind::None)?,
        redirects: Redirects::Follow,
        timeouts: Timeouts::default(),
    })
}

/// What a future answers.
async fn answer<S: Operation>(mut future: Future<S>) -> Result<S::Answer, Error> {
    future.ready().await;
    future.take().unwrap()
}

async fn body(exchange: &Exchange) -> Result<Vec<u8>, Error> {
    let mut body = Vec::new();
    while let Some(part) = answer(exchange.read()).await? {
        body.extend(part);
    }
    Ok(body)
}

async fn fetch_as(
    process: &HeldNetwork,
    asked: Asked,
    given: GivenBody,
) -> Result<(Head, Vec<u8>), Error> {
    let exchange = Exchange::start(process, asked, given)?;
    let head = answer(exchange.head()).await?;
    Ok((head, body(&exchange).await?))
}

/// The answer to a plain request.
async fn fetch(process: &HeldNetwork, url: &str) -> Result<(Head, Vec<u8>), Error> {
    fetch_as(process, asked("GET", url)?, GivenBody::None).await
}

/// Returns once nothing of the process is under way.
async fn all_places_free(process: &HeldNetwork) {
    while process.network.places.n_taken() > 0 {
        tokio::task::yield_now().await;
    }
}
