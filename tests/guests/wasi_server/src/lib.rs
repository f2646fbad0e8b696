//! Serves HTTP by `wstd`, which exports `wasi:http/incoming-handler` itself.

use std::cell::Cell;

use wstd::http::{Body, Error, Request, Response};

thread_local! {
    static N_REQUESTS: Cell<u32> = const { Cell::new(0) };
}

#[wstd::http_server]
async fn main(mut request: Request<Body>) -> Result<Response<Body>, Error> {
    N_REQUESTS.set(N_REQUESTS.get() + 1);
    let path = request.uri().path().to_owned();
    match path.as_str() {
        "/count" => Ok(Response::new(N_REQUESTS.get().to_string().into())),
        "/echo" => {
            let header = request.headers().get("x-a");
            let header = header.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
            let text = request.body_mut().str_contents().await?.to_owned();
            let answer = format!("{} {} {text}", request.method(), header.unwrap_or_default());
            Ok(Response::builder().status(201).body(answer.into())?)
        }
        // What comes in goes out, part by part.
        "/through" => Ok(Response::new(request.into_body())),
        "/fail" => Err(Error::msg("no answer comes of this")),
        _ => Ok(Response::builder().status(404).body(Body::empty())?),
    }
}
