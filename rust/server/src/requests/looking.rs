//! Requests that look at what there is: of one's own, or, for an operator, of everybody.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use pie_host::{Figure, ServedProcess, SnapshotInfo, Stats, Usage, UserStats};
use serde_json::Map;

use super::*;
use crate::protocol::body::Body;
use crate::protocol::incoming::{Listing, Nothing, OfModel, Processes};
use crate::protocol::outgoing;
use crate::state::Phase;

/// What a row of a list takes at most while it is made, and its text: a dozen short fields.
const ROW_BYTES: usize = 2 << 10;

impl Session {
    /// A process that the client may look at and end, and whose it is: one of their own, for an operator anybody's.
    ///
    /// # Errors
    /// `unknown-process`.
    pub(super) fn seen(&self, pid: u64) -> Result<(String, ServedProcess), Error> {
        let processes = &self.shared.processes;
        processes.seen(&self.user, pid, self.who.is_operator())
    }

    pub(super) async fn processes(&self, mut request: Request) {
        let id = request.id;
        let asked = request.fields::<Processes>().and_then(|asked| {
            let of = self.whose(asked.all_users)?;
            Ok((of, asked.all.unwrap_or(false)))
        });
        let processes = &self.shared.processes;
        match asked {
            Ok((of, all)) => {
                let n_rows = processes.n_listed(of, all);
                let rows = || processes.list(of, all);
                self.listed(id, "processes", n_rows, rows).await;
            }
            Err(error) => self.answer(id, Err(error)).await,
        }
    }

    pub(super) async fn programs(&self, mut request: Request) {
        let id = request.id;
        let asked = request
            .fields::<Listing>()
            .and_then(|asked| self.whose(asked.all_users));
        let registry = &self.shared.registry;
        match asked {
            Ok(of) => {
                let n_rows = registry.n_listed(of);
                let rows = || registry.list(of);
                self.listed(id, "programs", n_rows, rows).await;
            }
            Err(error) => self.answer(id, Err(error)).await,
        }
    }

    pub(super) async fn snapshots(&self, mut request: Request) {
        let id = request.id;
        let asked = request
            .fields::<Listing>()
            .and_then(|asked| self.whose(asked.all_users));
        match asked {
            Ok(of) => {
                let n_of = |(_, model): (String, Arc<pie_host::Model>)| model.n_snapshots(of);
                let n_rows = self.models().map(n_of).sum::<u64>();
                let n_rows = usize::try_from(n_rows).unwrap_or(usize::MAX);
                let made = async {
                    match self.all_snapshots(of).await {
                        Ok(found) => {
                            let with_user = of.is_none();
                            let rows = found.into_iter().flat_map(|(model, found)| {
                                let row = move |it| snapshot_row(&model, &it, with_user);
                                found.into_iter().map(row)
                            });
                            Body::list(id, "snapshots", rows).await
                        }
                        Err(error) => outgoing::answer(id, Err(error)),
                    }
                };
                let most_bytes = n_rows.saturating_mul(ROW_BYTES);
                self.replies.made(id, most_bytes, made).await;
            }
            Err(error) => self.answer(id, Err(error)).await,
        }
    }

    /// Whose things are listed; none: everybody's.
    pub(super) fn whose(&self, all_users: Option<bool>) -> Result<Option<&str>, Error> {
        let everybody = permits::everybody(&self.who, all_users)?;
        Ok((!everybody).then_some(self.user.as_str()))
    }

    /// Answers with a list of so many rows, made in turns with others; what comes in between is few.
    pub(super) async fn listed<Rows: Iterator<Item = Value>>(
        &self,
        id: u64,
        name: &str,
        n_rows: usize,
        rows: impl FnOnce() -> Rows,
    ) {
        let most_bytes = n_rows.saturating_mul(ROW_BYTES);
        let made = async { Body::list(id, name, rows()).await };
        self.replies.made(id, most_bytes, made).await;
    }

    /// The snapshots of a user, or of all, by the name of their model.
    async fn all_snapshots(
        &self,
        of: Option<&str>,
    ) -> Result<Vec<(String, Vec<SnapshotInfo>)>, Error> {
        let models: Vec<_> = self.models().collect();
        let of = of.map(str::to_owned);
        // Some may lie on disk.
        let found = blocking(move || {
            let mut all = Vec::with_capacity(models.len());
            for (name, model) in models {
                let mut found = model.snapshots(of.as_deref())?;
                found.sort_by(|one, other| (&one.user, &one.name).cmp(&(&other.user, &other.name)));
                all.push((name, found));
            }
            Ok(all)
        });
        found.await
    }

    pub(super) async fn delete_snapshot(&self, request: &mut Request) -> Answer {
        let OfModel { model, name, user } = request.fields()?;
        let user = permits::user(&self.who, user.as_deref()).map(str::to_owned);
        let object = format!("{}: {model} {name}", user.as_deref().unwrap_or("?"));
        let found = user.and_then(|user| Ok((self.model(&model, "pie snapshot list")?, user)));
        let deleted = match found {
            // It may lie on disk.
            Ok((found, user)) => blocking(move || found.delete_snapshot(&user, &name)).await,
            Err(error) => Err(error),
        };
        let answer = deleted.map(|()| json!({}));
        self.note("delete_snapshot", object).of(answer)
    }

    /// What the client has; for an operator, what everybody has and what the engine counts.
    pub(super) fn stats(&self, request: &mut Request) -> Answer {
        let Nothing {} = request.fields()?;
        let shared = &self.shared;
        let own = shared.processes.counts_of(&self.user);
        let usage = shared.host.budget().account(&self.user).usage();
        let mut stats = json!({
            "uptime_s": shared.started.elapsed().as_secs_f64(),
            "draining": *shared.phase.borrow() != Phase::Serving,
            "user": self.user,
            "role": self.who.role.name(),
            "n_connections": shared.places.count_of(&self.user),
            "n_live": own.n_live,
            "n_ended": own.n_ended,
            "n_tokens": own.n_tokens,
            "held_bytes": held(&usage),
        });
        let mut models = Map::new();
        for (name, model) in self.models() {
            models.insert(name, user_figures(model.user_stats(&self.user)));
        }
        stats["models"] = Value::Object(models);
        if self.who.is_operator() {
            stats["server"] = self.everything();
        }
        Ok(stats)
    }

    /// What everybody has together, and each by their name.
    fn everything(&self) -> Value {
        let shared = &self.shared;
        let budget = shared.host.budget();
        let (n_live, n_ended) = shared.processes.counts();
        let models: Map<String, Value> = self
            .models()
            .map(|(name, model)| (name, figures(&model.stats())))
            .collect();
        let mut users: BTreeMap<String, Value> = BTreeMap::new();
        for (user, usage) in budget.usage() {
            users.insert(user, json!({ "held_bytes": held(&usage) }));
        }
        for (user, counts) in shared.processes.counts_by_user() {
            let row = match users.entry(user) {
                Entry::Occupied(row) => row.into_mut(),
                Entry::Vacant(place) => place.insert(json!({ "held_bytes": {} })),
            };
            row["n_live"] = json!(counts.n_live);
            row["n_ended"] = json!(counts.n_ended);
            row["n_tokens"] = json!(counts.n_tokens);
        }
        let messages = shared.host.bus().stats();
        let messages: Map<String, Value> = messages
            .figures()
            .map(|(name, number)| (name.to_owned(), json!(number)))
            .collect();
        json!({
            "n_connections": shared.places.count(),
            "n_live": n_live,
            "n_ended": n_ended,
            "budget_bytes": budget.total_bytes(),
            "held_bytes": budget.held_bytes(),
            "n_faults": shared.host.n_faults(),
            "messages": messages,
            "users": users,
            "models": models,
        })
    }

    /// The model of that name; the command `listing` names what there is.
    ///
    /// # Errors
    /// `unknown-model`.
    pub(super) fn model(&self, name: &str, listing: &str) -> Result<Arc<pie_host::Model>, Error> {
        self.shared.host.model(name).ok_or_else(|| {
            let shown: String = name.chars().take(120).collect();
            let message = format!("there is no model {shown:?}; `{listing}` names what there is");
            Error::new(ErrorCode::UnknownModel, message)
        })
    }

    pub(super) fn models(&self) -> impl Iterator<Item = (String, Arc<pie_host::Model>)> {
        let host = &self.shared.host;
        let names = host.models().into_iter();
        names.filter_map(|name| host.model(&name).map(|model| (name, model)))
    }
}

/// A snapshot in a list.
fn snapshot_row(model: &str, snapshot: &SnapshotInfo, with_user: bool) -> Value {
    let mut row = json!({ "model": model, "name": snapshot.name, "tokens": snapshot.n_tokens });
    if with_user {
        row["user"] = json!(snapshot.user);
    }
    row
}

/// Bytes that a user holds, by what for.
fn held(usage: &Usage) -> Value {
    let held = usage.by_purpose().filter(|(_, n_bytes)| *n_bytes > 0);
    Value::Object(
        held.map(|(purpose, n_bytes)| (purpose.name().to_owned(), json!(n_bytes)))
            .collect(),
    )
}

/// What a user has of a model, by the names of what the model counts.
fn user_figures(stats: UserStats) -> Value {
    json!({
        "n_pages_used": stats.n_pages_used, "n_contexts": stats.n_contexts, "n_snapshots": stats.n_snapshots,
        "n_requests": stats.n_requests,
    })
}

/// What a model counts, by name.
fn figures(stats: &Stats) -> Value {
    let value = |figure| match figure {
        Figure::Number(number) => json!(number),
        Figure::Histogram(histogram) => json!({
            "counts": histogram.counts(), "sum": histogram.sum(), "max": histogram.max(),
        }),
    };
    let entries = stats.figures();
    Value::Object(
        entries
            .map(|(name, figure)| (name.to_owned(), value(figure)))
            .collect(),
    )
}
