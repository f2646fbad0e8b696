//! Snapshots, and what opens from them.

use std::sync::Arc;

use pie_core::{ContextId, ErrorCode, ProcessId};
use proptest::prelude::*;

use super::driving::{Outcome, Simulation};
use super::model::{Kept, Model};
use super::ops::{MAX_SNAPSHOTS, MAX_USER_SNAPSHOTS, NAMES};
use super::support::{OPENED, SAVED, fold};

impl Simulation {
    /// The user and a name that he may have given, or that may have been made up for him.
    pub fn name(&self, process: usize, name: usize) -> (u64, String) {
        let user = self.processes[process].user;
        let made = || self.snapshots.keys().filter(|(owner, _)| *owner == user);
        let name = NAMES.get(name).copied().map(str::to_owned);
        let made = || made().next_back().map(|(_, name)| name.clone());
        (
            user,
            name.or_else(made).unwrap_or_else(|| "absent".to_owned()),
        )
    }

    /// Saves a context under a name, or under one that is made up.
    pub fn save(&mut self, at: usize, name: Option<&str>) -> Outcome {
        let page_size = self.config.driver.page_size;
        let user = self.processes[self.contexts[at].1.process].user;
        let of_user = |(owner, _): &&(u64, String)| *owner == user;
        let is_new = name.is_none_or(|name| !self.snapshots.contains_key(&(user, name.to_owned())));
        let is_full = is_new
            && (self.snapshots.len() >= MAX_SNAPSHOTS as usize
                || self.snapshots.keys().filter(of_user).count() >= MAX_USER_SNAPSHOTS as usize);
        self.n_saved += 1;
        let (context, model) = &mut self.contexts[at];
        let beside = Arc::new(self.n_saved);
        let saved = match name {
            Some(name) => self
                .world
                .engine
                .save(*context, name, beside)
                .map(|()| name.to_owned()),
            None => self.world.engine.snapshot(*context, beside),
        };
        if model.request.is_some() || is_full {
            let busy = model.request.is_some();
            let code = saved.unwrap_err().code;
            prop_assert!(
                code == ErrorCode::ContextBusy && busy
                    || code == ErrorCode::LimitSnapshots && is_full
            );
            return Ok(());
        }
        model.settle(page_size);
        model.n_forks += 1;
        let kept = Kept {
            model: Model {
                path: fold(fold(model.path, SAVED), model.n_forks),
                n_forks: 0,
                generator: None,
                ..model.clone()
            },
            beside: self.n_saved,
        };
        let older = self.snapshots.insert((user, saved.unwrap()), kept);
        prop_assert_eq!(older.is_none(), is_new);
        Ok(())
    }

    /// Keeps a context as a value, as a snapshot on disk is, and opens that for a process, of whichever user.
    pub fn transplant(&mut self, at: usize, process: usize) -> Outcome {
        let page_size = self.config.driver.page_size;
        let id = ProcessId(self.processes[process].id);
        let (context, model) = &mut self.contexts[at];
        let image = self.world.engine.image(*context);
        if model.request.is_some() {
            prop_assert_eq!(image.unwrap_err().code, ErrorCode::ContextBusy);
            return Ok(());
        }
        let opened = self.world.engine.open_image(id, &image.unwrap()).unwrap();
        self.world.engine.count_saved(*context);
        model.settle(page_size);
        model.n_forks += 1;
        let kept = Model {
            path: fold(fold(model.path, SAVED), model.n_forks),
            n_forks: 0,
            generator: None,
            ..model.clone()
        };
        self.own(process, opened, kept);
        Ok(())
    }

    /// A context of a process was made of a snapshot.
    fn own(&mut self, process: usize, context: ContextId, kept: Model) {
        let n_opened = self.processes[process].opened.entry(kept.path).or_insert(0);
        *n_opened += 1;
        let model = Model {
            process,
            path: fold(fold(kept.path, OPENED), *n_opened),
            ..kept
        };
        self.contexts.push((context, model));
    }

    /// Makes a context of a snapshot.
    pub fn open(&mut self, process: usize, name: usize, take: bool) -> Outcome {
        let key = self.name(process, name);
        let id = ProcessId(self.processes[process].id);
        let engine = &mut self.world.engine;
        let opened = if take {
            engine.take_snapshot(id, &key.1)
        } else {
            engine.open_snapshot(id, &key.1)
        };
        let Some(Kept {
            model: kept,
            beside: written,
        }) = self.snapshots.get(&key).cloned()
        else {
            prop_assert_eq!(opened.unwrap_err().code, ErrorCode::SnapshotMissing);
            return Ok(());
        };
        let (context, beside) = opened.unwrap();
        prop_assert_eq!(beside.downcast_ref::<u64>(), Some(&written));
        if take {
            self.snapshots.remove(&key);
        }
        self.own(process, context, kept);
        Ok(())
    }
}
