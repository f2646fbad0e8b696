//! Requests about the adapters to which programs have given names.

use pie_host::AdapterInfo;

use super::*;
use crate::protocol::incoming::{Listing, OfModel};

impl Session {
    /// Answers with a row for each adapter: of the user's own or, for an operator, of everybody's.
    pub(super) async fn adapters(&self, mut request: Request) {
        let id = request.id;
        let asked = request
            .fields::<Listing>()
            .and_then(|asked| self.whose(asked.all_users));
        match asked {
            Ok(of) => {
                let n_of = |(_, model): (String, Arc<pie_host::Model>)| model.n_adapters(of);
                let n_rows = self.models().map(n_of).sum::<usize>();
                let rows = || {
                    self.models().flat_map(move |(model, found)| {
                        let adapters = found.adapters_of(of).into_iter();
                        adapters.map(move |adapter| row(&model, &adapter, of.is_none()))
                    })
                };
                self.listed(id, "adapters", n_rows, rows).await;
            }
            Err(error) => self.answer(id, Err(error)).await,
        }
    }

    /// Takes the name of an adapter. Contexts that were computed with it go on.
    pub(super) fn delete_adapter(&self, request: &mut Request) -> Answer {
        let OfModel { model, name, user } = request.fields()?;
        let user = permits::user(&self.who, user.as_deref());
        let object = format!("{}: {model} {name}", user.as_ref().copied().unwrap_or("?"));
        let deleted = user.and_then(|user| {
            let found = self.model(&model, "pie adapter list")?;
            found.delete_adapter(user, &name)
        });
        let answer = deleted.map(|()| json!({}));
        self.note("delete_adapter", object).of(answer)
    }
}

/// An adapter in a list, with whose it is in a list of everybody's.
fn row(model: &str, adapter: &AdapterInfo, with_user: bool) -> Value {
    let mut row = json!({ "model": model, "name": adapter.name, "bytes": adapter.n_bytes });
    if with_user {
        row["user"] = json!(adapter.user);
    }
    row
}
