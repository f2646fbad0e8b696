//! Lists that a server gives in pages. They are put together as text: a list as values would take many times the bytes
//! that its server has sent, and those alone are bounded.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::failure::{answer_too_long, protocol};
use super::peer::Peer;
use super::rpc::quoted;
use crate::Error;

/// Pages of one list.
const MAX_PAGES: usize = 1000;
/// The member of a page that says where the next one begins.
const CURSOR: &str = "nextCursor";

/// The whole list that a method gives under `key`, of at most `most` bytes: as it was written where it is one page, and
/// with the items of all pages else.
///
/// # Errors
/// Those of a call, and `mcp-protocol` for what is no list.
pub(crate) async fn list(
    (server, peer): (&str, &Peer),
    (method, key): (&'static str, &'static str),
    most: u64,
) -> Result<String, Error> {
    let first = peer.call(method, "{}", most).await?;
    let (mut whole, mut next) = {
        let mut page = Page::read(&first, key).map_err(|why| protocol(server, why))?;
        let Some(next) = page.next.take() else {
            drop(page);
            return Ok(first);
        };
        let whole = Whole::new(key, &page).map_err(|why| protocol(server, why))?;
        (whole, next)
    };
    let mut n_bytes = first.len() as u64;
    drop(first);
    for _ in 1..MAX_PAGES {
        let params = format!(r#"{{"cursor":{}}}"#, quoted(&next));
        let text = peer.call(method, &params, most).await?;
        n_bytes += text.len() as u64;
        if n_bytes > most {
            return Err(answer_too_long(server, most));
        }
        let page = Page::read(&text, key).map_err(|why| protocol(server, why))?;
        whole.add(&page).map_err(|why| protocol(server, why))?;
        match page.next {
            Some(cursor) => next = cursor,
            None => return Ok(whole.text()),
        }
    }
    let why = format!("its list has more than {MAX_PAGES} pages");
    Err(protocol(server, why))
}

/// The list of these pages, of which there is one at least.
///
/// # Errors
/// What is wrong with them, for a message.
pub(crate) fn joined(pages: &[&str], key: &'static str) -> Result<String, String> {
    let (first, others) = pages
        .split_first()
        .ok_or_else(|| "it has no pages".to_owned())?;
    let mut whole = Whole::new(key, &Page::read(first, key)?)?;
    for page in others {
        whole.add(&Page::read(page, key)?)?;
    }
    Ok(whole.text())
}

/// One page of a list.
#[derive(Debug, Default)]
struct Page<'a> {
    key: &'static str,
    /// Where the next page begins; none: this is the last one.
    next: Option<String>,
    /// The array, as it was written.
    items: Option<&'a str>,
    /// All other members, each as `,"name":value`.
    others: String,
}

impl<'a> Page<'a> {
    /// Reads a page, whose items stand under `key`.
    ///
    /// # Errors
    /// What is wrong with it, for a message.
    fn read(text: &'a str, key: &'static str) -> Result<Self, String> {
        let page = Self {
            key,
            ..Self::default()
        };
        let mut source = serde_json::Deserializer::from_str(text);
        let read = page.deserialize(&mut source);
        let read = read.and_then(|page| source.end().map(|()| page));
        read.map_err(|error| format!("its list is not one ({error})"))
    }

    /// The items, without the brackets around them.
    ///
    /// # Errors
    /// What is wrong with the page, for a message.
    fn inner(&self) -> Result<&'a str, String> {
        let items = self.items.and_then(|items| {
            let inner = items.strip_prefix('[')?.strip_suffix(']')?;
            Some(inner.trim())
        });
        items.ok_or_else(|| format!("a page of its list has no {}", self.key))
    }
}

impl<'a> DeserializeSeed<'a> for Page<'a> {
    type Value = Self;

    fn deserialize<D: Deserializer<'a>>(self, source: D) -> Result<Self, D::Error> {
        source.deserialize_map(self)
    }
}

impl<'a> Visitor<'a> for Page<'a> {
    type Value = Self;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<M: MapAccess<'a>>(mut self, mut members: M) -> Result<Self, M::Error> {
        while let Some(name) = members.next_key::<String>()? {
            if name == CURSOR {
                self.next = members.next_value()?;
                continue;
            }
            let value: &'a RawValue = members.next_value()?;
            if name == self.key {
                self.items = Some(value.get());
            } else {
                for part in [",", &quoted(&name), ":", value.get()] {
                    self.others.push_str(part);
                }
            }
        }
        Ok(self)
    }
}

/// The pages of a list together.
struct Whole {
    /// The object up to the end of the items that there are.
    text: String,
    has_items: bool,
    others: String,
}

impl Whole {
    /// The list with the items of its first page, of which it has the other members too.
    fn new(key: &str, first: &Page<'_>) -> Result<Self, String> {
        let mut whole = Self {
            text: format!("{{{}:[", quoted(key)),
            has_items: false,
            others: first.others.clone(),
        };
        whole.add(first)?;
        Ok(whole)
    }

    fn add(&mut self, page: &Page<'_>) -> Result<(), String> {
        let items = page.inner()?;
        if items.is_empty() {
            return Ok(());
        }
        if std::mem::replace(&mut self.has_items, true) {
            self.text.push(',');
        }
        self.text += items;
        Ok(())
    }

    fn text(mut self) -> String {
        self.text.push(']');
        self.text += &self.others;
        self.text.push('}');
        self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(pages: &[&str]) -> Result<String, String> {
        joined(pages, "tools")
    }

    #[test]
    fn the_items_of_all_pages_stand_as_they_were_written() {
        for (pages, expected) in [
            (
                &[
                    r#"{"nextCursor":"2","tools":[1.10, {"a":[]}]}"#,
                    r#"{"tools":[ ]}"#,
                    r#" {"tools" : [ "]" ], "b":1} "#,
                ][..],
                r#"{"tools":[1.10, {"a":[]},"]"]}"#,
            ),
            (
                &[
                    r#"{"_meta":{"c":1},"tools":[],"nextCursor":"é\"","n":null}"#,
                    r#"{"tools":[2],"nextCursor":null}"#,
                ],
                r#"{"tools":[2],"_meta":{"c":1},"n":null}"#,
            ),
        ] {
            assert_eq!(whole(pages).unwrap(), expected);
        }
        let page = Page::read(r#"{"tools":[],"nextCursor":"\u00e9"}"#, "tools").unwrap();
        assert_eq!(page.next.as_deref(), Some("é"));
    }

    #[test]
    fn what_is_no_list_is_refused() {
        for text in ["[]", "{", "{} {}", r#"{"nextCursor":1}"#] {
            let why = whole(&[text]).unwrap_err();
            assert!(why.contains("is not one"), "{text}: {why}");
        }
        for text in [
            "{}",
            r#"{"tools":{}}"#,
            r#"{"tools":null}"#,
            r#"{"prompts":[]}"#,
        ] {
            let why = whole(&[text]).unwrap_err();
            assert!(why.contains("has no tools"), "{text}: {why}");
        }
    }

    #[test]
    fn many_members_take_no_more_than_their_text() {
        let deep = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
        let text = format!(r#"{{"a":{deep},"tools":[{deep}]}}"#);
        let page = Page::read(&text, "tools").unwrap();
        assert!(page.others.len() < text.len());
        assert_eq!(page.inner().unwrap(), deep);
    }
}
