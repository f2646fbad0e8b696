//! Addresses and forms, as `URL` and `URLSearchParams` of the SDK stand on them: by the rules of the WHATWG.

use rquickjs::convert::List;
use rquickjs::{Ctx, Object, Result};
use url::{Url, form_urlencoded, quirks};

/// The parts of an address, read against a base where there is one; none where that makes no address.
pub(crate) fn parse<'js>(
    ctx: Ctx<'js>,
    text: String,
    base: Option<String>,
) -> Result<Option<Object<'js>>> {
    let base = match base.map(|base| Url::parse(&base)) {
        Some(Ok(base)) => Some(base),
        Some(Err(_)) => return Ok(None),
        None => None,
    };
    match Url::options().base_url(base.as_ref()).parse(&text) {
        Ok(url) => parts(ctx, &url).map(Some),
        Err(_) => Ok(None),
    }
}

/// The parts of an address of which one was changed; none where the value does not fit, which leaves it as it was.
pub(crate) fn change<'js>(
    ctx: Ctx<'js>,
    href: String,
    part: String,
    value: String,
) -> Result<Option<Object<'js>>> {
    let Ok(mut url) = Url::parse(&href) else {
        return Ok(None);
    };
    let fits = match part.as_str() {
        "protocol" => quirks::set_protocol(&mut url, &value).is_ok(),
        "username" => quirks::set_username(&mut url, &value).is_ok(),
        "password" => quirks::set_password(&mut url, &value).is_ok(),
        "host" => quirks::set_host(&mut url, &value).is_ok(),
        "hostname" => quirks::set_hostname(&mut url, &value).is_ok(),
        "port" => quirks::set_port(&mut url, &value).is_ok(),
        "pathname" => {
            quirks::set_pathname(&mut url, &value);
            true
        }
        "search" => {
            quirks::set_search(&mut url, &value);
            true
        }
        "hash" => {
            quirks::set_hash(&mut url, &value);
            true
        }
        _ => false,
    };
    if fits {
        parts(ctx, &url).map(Some)
    } else {
        Ok(None)
    }
}

fn parts<'js>(ctx: Ctx<'js>, url: &Url) -> Result<Object<'js>> {
    let object = Object::new(ctx)?;
    object.set("href", quirks::href(url))?;
    object.set("origin", quirks::origin(url))?;
    object.set("protocol", quirks::protocol(url))?;
    object.set("username", quirks::username(url))?;
    object.set("password", quirks::password(url))?;
    object.set("host", quirks::host(url))?;
    object.set("hostname", quirks::hostname(url))?;
    object.set("port", quirks::port(url))?;
    object.set("pathname", quirks::pathname(url))?;
    object.set("search", quirks::search(url))?;
    object.set("hash", quirks::hash(url))?;
    Ok(object)
}

/// The names and values of `application/x-www-form-urlencoded`.
pub(crate) fn parse_form(text: String) -> Vec<List<(String, String)>> {
    form_urlencoded::parse(text.as_bytes())
        .map(|(name, value)| List((name.into_owned(), value.into_owned())))
        .collect()
}

/// Names and values as `application/x-www-form-urlencoded`.
pub(crate) fn write_form(pairs: Vec<List<(String, String)>>) -> String {
    let mut form = form_urlencoded::Serializer::new(String::new());
    for List((name, value)) in &pairs {
        form.append_pair(name, value);
    }
    form.finish()
}
