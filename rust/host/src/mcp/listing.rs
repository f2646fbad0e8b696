//! Lists that a server gives in pages.

use serde::Deserialize;
use serde_json::{Map, Value};

use super::failure::{answer_too_long, protocol};
use super::peer::Peer;
use super::rpc::quoted;
use crate::Error;

/// Pages of one list.
const MAX_PAGES: usize = 1000;

#[derive(Deserialize)]
struct Page {
    #[serde(rename = "nextCursor", default)]
    next: Option<String>,
}

/// The whole list that a method gives under `key`, of at most `most` bytes: as it was written where it is one page, and
/// with the items of all pages else.
///
/// # Errors
/// Those of a call, and `mcp-protocol` for what is no list.
pub(crate) async fn list(
    (server, peer): (&str, &Peer),
    (method, key): (&str, &str),
    most: u64,
) -> Result<String, Error> {
    let first = peer.call(method, "{}", most).await?;
    let Some(mut next) = cursor(server, &first)? else {
        return Ok(first);
    };
    let mut n_bytes = first.len() as u64;
    let mut whole = object(server, &first)?;
    for _ in 1..MAX_PAGES {
        let params = format!(r#"{{"cursor":{}}}"#, quoted(&next));
        let page = peer.call(method, &params, most).await?;
        n_bytes += page.len() as u64;
        if n_bytes > most {
            return Err(answer_too_long(server, most));
        }
        let items = object(server, &page)?.remove(key);
        append(server, &mut whole, key, items)?;
        match cursor(server, &page)? {
            Some(cursor) => next = cursor,
            None => {
                whole.shift_remove("nextCursor");
                return Ok(Value::Object(whole).to_string());
            }
        }
    }
    let why = format!("its list has more than {MAX_PAGES} pages");
    Err(protocol(server, why))
}

fn cursor(server: &str, page: &str) -> Result<Option<String>, Error> {
    let page = serde_json::from_str::<Page>(page);
    page.map(|page| page.next).map_err(|error| {
        let why = format!("its list is not one ({error})");
        protocol(server, why)
    })
}

fn object(server: &str, page: &str) -> Result<Map<String, Value>, Error> {
    serde_json::from_str(page)
        .map_err(|error| protocol(server, format!("its list is not one ({error})")))
}

fn append(
    server: &str,
    whole: &mut Map<String, Value>,
    key: &str,
    items: Option<Value>,
) -> Result<(), Error> {
    match (whole.get_mut(key), items) {
        (Some(Value::Array(all)), Some(Value::Array(more))) => {
            all.extend(more);
            Ok(())
        }
        _ => {
            let why = format!("a page of its list has no {key}");
            Err(protocol(server, why))
        }
    }
}
