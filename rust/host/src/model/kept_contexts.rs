//! Contexts that are saved to disk and opened from there.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use pie_core::{Adapter, AdapterName, ContextImage, Engine, ErrorCode, ProcessId};
use pie_text::ChatState;

use super::Model;
use super::conversation::{Context, HeldAdapters, SNAPSHOT_BYTES};
use super::keeping::{self, Keeping};
use super::kept_pages;
use super::tokens::{Extras, TOKEN_BYTES, Tokens};
use crate::Error;
use crate::budget::{Account, Purpose};
use crate::errors::text_error;
use crate::program::shown;
use crate::snapshots::content::RUN_TOKENS;
use crate::snapshots::loading::SavedContext;
use crate::snapshots::pages::KeptRun;
use crate::sync::lock;

/// How the names begin that the engine makes up.
const MADE_UP: &str = "snapshot-";
/// Adapters whose names are kept with a snapshot.
const MAX_NAMED_ADAPTERS: usize = 64;
/// A context takes so many times its bytes while it is read: those, and what is made of them.
const COPIES: u64 = 3;

/// Which snapshot is opened, by whom.
pub(crate) struct Opening {
    pub(crate) process: ProcessId,
    pub(crate) user: String,
    pub(crate) name: String,
    pub(crate) account: Account,
    /// The snapshot is there no more afterwards.
    pub(crate) is_taken: bool,
    /// What the program is told where there is none.
    pub(crate) absent: Error,
}

impl Model {
    /// What is kept on disk; none where that is nothing.
    pub(crate) fn keeping(&self) -> Option<Arc<Keeping>> {
        self.keeping.clone()
    }

    /// The names of a user's snapshots on disk that the engine could make up: those that it must not. Empty where
    /// nothing is kept on disk.
    ///
    /// # Errors
    /// Those of the disk.
    pub(crate) async fn made_up_names(&self, user: &str) -> Result<HashSet<String>, Error> {
        let Some(keeping) = self.keeping() else {
            return Ok(HashSet::new());
        };
        let mut names = names_of(keeping, user).await?;
        names.retain(|name| name.starts_with(MADE_UP));
        Ok(names.into_iter().collect())
    }

    /// The names of a user's snapshots, sorted, with those of `in_memory`.
    ///
    /// # Errors
    /// Those of the disk.
    pub(crate) async fn all_names(
        &self,
        user: &str,
        mut in_memory: Vec<String>,
    ) -> Result<Vec<String>, Error> {
        if let Some(keeping) = self.keeping() {
            in_memory.extend(names_of(keeping, user).await?);
            in_memory.sort_unstable();
            in_memory.dedup();
        }
        Ok(in_memory)
    }

    /// Forgets a snapshot on disk of a user, of which there is none in memory: that is the error `absent`.
    ///
    /// # Errors
    /// `absent` where there is none on disk either; those of the disk.
    pub(crate) async fn delete_kept(
        &self,
        user: &str,
        name: String,
        absent: Error,
    ) -> Result<(), Error> {
        let Some(keeping) = self.keeping() else {
            return Err(absent);
        };
        let owner = user.to_owned();
        let deleting = keeping.work(user, move |store| store.named(&owner, &name).delete());
        deleting.await?.then_some(()).ok_or(absent)
    }
}

impl Context {
    /// Keeps the context under a name on disk, with the state of its conversation. It is there for good when this
    /// returns. What is worked with is charged to `account` meanwhile.
    ///
    /// # Errors
    /// Those of the core; `limit-snapshots`, `limit-engine-memory`, and those of the disk.
    pub(crate) async fn save_on_disk(
        self: Arc<Self>,
        keeping: Arc<Keeping>,
        name: String,
        account: &Account,
    ) -> Result<(), Error> {
        pie_core::check_snapshot_name(&name)?;
        let length = self.model.with_engine(|engine| engine.length(self.id))?;
        let n_extra = lock(&self.tokens).extras().n_bytes();
        let turns = lock(&self.turns).clone();
        let n_bytes = u64::from(length) * TOKEN_BYTES as u64 + COPIES * n_extra as u64;
        let n_bytes = SNAPSHOT_BYTES + n_bytes + COPIES * turns.n_bytes() as u64;
        let charge = account.charge(Purpose::Snapshot, n_bytes)?;
        // Nobody changes the context meanwhile: its program waits for this call.
        let imaged = |engine: &mut Engine| {
            Ok::<_, Error>((engine.image(self.id)?, engine.contents(self.id)?))
        };
        let (image, contents) = self.model.with_engine(imaged)?;
        let user = account.user().to_owned();
        let owner = user.clone();
        let kept = keeping.clone();
        let saving = keeping.work(&user, move |store| {
            let turns = turns.to_bytes().map_err(text_error)?;
            let adapters = names_of_adapters(&self.model, &owner, &image);
            let saved = store
                .named(&owner, &name)
                .with_adapters(adapters)
                .save(&image, &turns);
            let mut runs = saved?;
            runs.truncate(n_shared_by_all(&image) / RUN_TOKENS);
            drop((image, charge));
            let (model, user) = (&self.model, self.model.user(&owner));
            model.with_engine(|engine| {
                engine.count_saved(self.id);
                // One that the engine had made up under that name is replaced; mostly there is none.
                drop(engine.delete_snapshot_of(user, &name));
            });
            kept_pages::keep(model, &kept, &owner, &runs, &contents);
            Ok(())
        });
        saving.await
    }

    /// A context of a process with the content of a snapshot on disk, and where its conversation stood.
    ///
    /// # Errors
    /// `absent` where there is none; `snapshot-unusable`; those of the core and of the disk; `limit-engine-memory`. A
    /// snapshot that was to be taken stays then.
    pub(crate) async fn open_kept(
        model: Arc<Model>,
        keeping: Arc<Keeping>,
        opening: Opening,
    ) -> Result<Self, Error> {
        let user = opening.user.clone();
        let kept_in = keeping.clone();
        let work = keeping.work(&user, move |store| {
            let Opening {
                process,
                user,
                name,
                account,
                is_taken,
                absent,
            } = opening;
            let named = store.named(&user, &name);
            let loaded = named.load(|n_bytes| {
                let n_bytes = n_bytes.saturating_mul(COPIES);
                account.charge(Purpose::Snapshot, n_bytes)
            })?;
            let Some((mut kept, charge)) = loaded else {
                return Err(absent);
            };
            let runs = std::mem::take(&mut kept.runs);
            let context = Self::of_kept(model, process, kept, account)?;
            drop(charge);
            context.await_kept(&kept_in, &runs);
            if is_taken {
                let taken = named.delete_taken();
                let taken = taken.and_then(|is_there| is_there.then_some(()).ok_or(absent));
                taken.inspect_err(|_| context.release())?;
            }
            Ok(context)
        });
        work.await
    }

    /// The pages of these runs are brought once a pass of the context wants them, as far as they are kept.
    fn await_kept(&self, keeping: &Keeping, runs: &[KeptRun]) {
        let Some(form) = keeping.form() else { return };
        let Some((n_runs, held)) = keeping.store.hold(runs) else {
            return;
        };
        let contents = self.model.with_engine(|engine| {
            let contents = engine.contents(self.id)?;
            let of_runs = &contents[..contents.len().min(n_runs * form.n_pages())];
            let are_there = engine.n_contents_there(of_runs) as usize == of_runs.len();
            if !are_there {
                engine.await_pages(self.id)?;
            }
            Ok::<_, Error>((!are_there).then_some(contents))
        });
        let Ok(Some(contents)) = contents else {
            return keeping.store.release(&held);
        };
        let opening = keeping::Opening {
            runs: runs[..n_runs].to_vec(),
            held,
            contents,
            n_done: 0,
        };
        self.await_pages(keeping.opened(self.id, opening));
    }

    fn of_kept(
        model: Arc<Model>,
        process: ProcessId,
        kept: SavedContext,
        account: Account,
    ) -> Result<Self, Error> {
        let SavedContext {
            image,
            turns,
            adapters: names,
            ..
        } = kept;
        let length = u32::try_from(image.length()).unwrap_or(u32::MAX);
        let turns = ChatState::from_bytes(&turns, length).map_err(|error| {
            let message =
                format!("the snapshot cannot be opened: {error}; delete it, and save it again");
            Error::new(ErrorCode::SnapshotUnusable, message)
        })?;
        let extras = extras_of(&image);
        let adapters = adapters_of(&model, account.user(), &image, &names)?;
        let id = model.with_engine(|engine| engine.open_image(process, &image))?;
        let tokens = Tokens::new(account).with_extras(extras);
        let context = Self::new(model, id, turns, tokens).with_adapters(adapters);
        context.charge_whole().inspect_err(|_| context.release())?;
        Ok(context)
    }
}

/// So many of its first tokens were computed without an adapter: whoever says the same can use their pages.
fn n_shared_by_all(image: &ContextImage) -> usize {
    let mut special = image.special.iter();
    let adapted = special.find(|it| it.adapter != Adapter::default());
    adapted.map_or(image.tokens.len(), |it| it.slot as usize)
}

fn extras_of(image: &ContextImage) -> Extras {
    let special = image.special.iter();
    Extras::at(special.map(|it| (it.slot as usize, it.mask.len())))
}

/// What a snapshot and messages tell an adapter by.
fn told_as(name: AdapterName) -> String {
    format!("{:016x}-{:08x}", name.id, name.version)
}

/// The names under which a user has the adapters that tokens of a context were computed with, by [`told_as`]: of the
/// first of these adapters.
fn names_of_adapters(model: &Model, user: &str, image: &ContextImage) -> BTreeMap<String, String> {
    let user = model.user(user);
    let mut seen: Vec<AdapterName> = Vec::new();
    for special in &image.special {
        let (id, version) = (special.adapter.id, special.adapter.version);
        let name = AdapterName { id, version };
        if id == 0 || seen.contains(&name) {
            continue;
        }
        seen.push(name);
        if seen.len() == MAX_NAMED_ADAPTERS {
            break;
        }
    }
    let called = |name| Some((told_as(name), model.adapters.called(user, name)?));
    seen.into_iter().filter_map(called).collect()
}

/// The adapters that tokens of a context were computed with, so that they can be computed again. The user has each of
/// them under a name, as it was then. `names` are those that they had when the context was saved.
///
/// # Errors
/// `snapshot-unusable` where the user does not.
fn adapters_of(
    model: &Model,
    user: &str,
    image: &ContextImage,
    names: &BTreeMap<String, String>,
) -> Result<HeldAdapters, Error> {
    let mut held = HeldAdapters::default();
    if !model.serves_adapters() {
        // The core refuses those that there are.
        return Ok(held);
    }
    let user = model.user(user);
    for special in &image.special {
        let (id, version) = (special.adapter.id, special.adapter.version);
        let name = AdapterName { id, version };
        if id == 0 || held.holds(name) {
            continue;
        }
        let Some(found) = model.adapters.current(user, name) else {
            return Err(no_adapter(special.slot, &told_as(name), names));
        };
        held.hold(special.slot, found);
    }
    Ok(held)
}

/// The error of a snapshot whose tokens from `slot` on want an adapter that the user does not have.
fn no_adapter(slot: u32, told_as: &str, names: &BTreeMap<String, String>) -> Error {
    let adapter = match names.get(told_as) {
        Some(name) => format!(
            "the adapter that was called {:?} when it was saved ({told_as})",
            shown(name)
        ),
        None => format!("an adapter ({told_as})"),
    };
    let message = format!(
        "the snapshot cannot be opened: its tokens from {slot} on were computed with {adapter}, and you have none as it \
         was then under any name; load it from the same files, or make it in the same way, and open the snapshot \
         again, or delete the snapshot"
    );
    Error::new(ErrorCode::SnapshotUnusable, message)
}

/// The names of a user's snapshots on disk.
async fn names_of(keeping: Arc<Keeping>, user: &str) -> Result<Vec<String>, Error> {
    let owner = user.to_owned();
    let listing = keeping.work(user, move |store| store.list(Some(&owner)));
    let listed = listing.await?;
    Ok(listed.into_iter().map(|snapshot| snapshot.name).collect())
}
