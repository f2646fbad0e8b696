//! What a program holds by handles, and what it was told by them.
//!
//! This is the only door to the table of an instance, so that whatever the program drops is counted, whichever
//! interface it is of.

use std::any::Any;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use pie_core::ErrorCode;
use wasmtime::component::{Resource, ResourceTable, ResourceTableError};
use wasmtime_wasi::p2::{DynPollable, subscribe};

use super::record::ProcessRecord;
use super::stated::Told;
use crate::Error;
use crate::futures::{Awaited, WaitsFor};
use crate::sandbox::fault::{futures_limit, timers_limit};

/// The handles of one instance.
pub(crate) struct HandleTable {
    table: ResourceTable,
    record: Arc<ProcessRecord>,
    /// The errors that the program was given.
    told: Told,
    n_futures: usize,
    /// The pollables that are timers, by their place in the table.
    timers: HashSet<u32>,
    /// What the pollables wait for that only another program can make ready, by their place in the table. It is kept
    /// where nobody else can wake the program.
    awaited: Option<HashMap<u32, WaitsFor>>,
}

impl HandleTable {
    /// That of a new instance, which holds nothing.
    pub(crate) fn new(record: Arc<ProcessRecord>) -> Self {
        let mut table = ResourceTable::new();
        table.set_max_capacity(record.limits.resources);
        let awaited = record.kin.is_alone.then(HashMap::new);
        Self {
            table,
            record,
            told: Told::default(),
            n_futures: 0,
            timers: HashSet::new(),
            awaited,
        }
    }

    /// Gives something to the program.
    ///
    /// # Errors
    /// Where it holds as much as it may; what it would have been given is dropped.
    pub(crate) fn push<T: Any + Send>(
        &mut self,
        entry: T,
    ) -> Result<Resource<T>, ResourceTableError> {
        self.table.push(entry)
    }

    /// Makes room for one more, so that what is pushed next finds a place.
    ///
    /// # Errors
    /// As [`HandleTable::push`].
    pub(crate) fn make_room(&mut self) -> Result<(), ResourceTableError> {
        let room = self.table.push(())?;
        self.table.delete(room)
    }

    /// What stands behind a handle.
    ///
    /// # Errors
    /// For a handle that the program does not hold; so with the functions below.
    pub(crate) fn get<T: Any>(&self, handle: &Resource<T>) -> Result<&T, ResourceTableError> {
        self.table.get(handle)
    }

    /// The same, to be changed.
    ///
    /// # Errors
    /// As [`HandleTable::get`].
    pub(crate) fn get_mut<T: Any>(
        &mut self,
        handle: &Resource<T>,
    ) -> Result<&mut T, ResourceTableError> {
        self.table.get_mut(handle)
    }

    /// Takes back what the program drops. The drop of a handle arrives as a call does, and is not one.
    ///
    /// # Errors
    /// As [`HandleTable::get`].
    pub(crate) fn delete<T: Any>(&mut self, handle: Resource<T>) -> Result<T, ResourceTableError> {
        self.record.n_drops.fetch_add(1, Ordering::Relaxed);
        self.table.delete(handle)
    }

    /// The error that the program gets: notes that it was told of its code.
    pub(crate) fn tell(&mut self, error: Error) -> Error {
        self.told.note(error.code);
        error
    }

    /// The code of a program that ends with the one that it states.
    pub(crate) fn code(&self, stated: Option<&str>) -> ErrorCode {
        self.told.code(stated)
    }

    /// Gives a future to the program.
    ///
    /// # Errors
    /// `limit-resources` when it holds too many; the future is dropped then, which cancels what it waits for.
    pub(crate) fn push_future<F: Awaited>(&mut self, future: F) -> wasmtime::Result<Resource<F>> {
        let limits = &self.record.limits;
        if self.n_futures >= limits.futures {
            return Err(futures_limit(limits).into());
        }
        let future = self.table.push(future.within(limits))?;
        self.n_futures += 1;
        Ok(future)
    }

    /// What becomes ready with a future.
    ///
    /// # Errors
    /// Where the program holds as much as it may.
    pub(crate) fn future_pollable<F: Awaited>(
        &mut self,
        future: Resource<F>,
    ) -> wasmtime::Result<Resource<DynPollable>> {
        let waits_for = self.table.get(&future)?.waits_for();
        // A borrowed handle makes the pollable a child: the future cannot be dropped before it.
        let pollable = subscribe(&mut self.table, Resource::<F>::new_borrow(future.rep()))?;
        if let Some(waits_for) = waits_for {
            self.note_wait(&pollable, waits_for);
        }
        Ok(pollable)
    }

    /// Notes what a pollable waits for that only another program can make ready.
    pub(crate) fn note_wait(&mut self, pollable: &Resource<DynPollable>, waits_for: WaitsFor) {
        if let Some(awaited) = &mut self.awaited {
            awaited.insert(pollable.rep(), waits_for);
        }
    }

    /// What the pollables wait for, where only other programs can make one of them ready, and those are known.
    pub(crate) fn waits_for(&self, pollables: &[Resource<DynPollable>]) -> Option<Vec<WaitsFor>> {
        let awaited = self.awaited.as_ref()?;
        let mut waits = pollables.iter();
        waits.try_fold(Vec::new(), |mut waits, pollable| {
            waits.push(awaited.get(&pollable.rep())?.clone());
            Some(waits)
        })
    }

    /// Takes back a future that the program drops.
    ///
    /// # Errors
    /// As [`HandleTable::get`].
    pub(crate) fn future_drop<F: Awaited>(&mut self, future: Resource<F>) -> wasmtime::Result<()> {
        self.delete(future)?;
        self.n_futures = self.n_futures.saturating_sub(1);
        Ok(())
    }

    /// Refuses a timer beyond those that the program may hold.
    ///
    /// # Errors
    /// `limit-timers`.
    pub(crate) fn check_room_for_timer(&self) -> wasmtime::Result<()> {
        let limits = &self.record.limits;
        if self.timers.len() < limits.timers {
            return Ok(());
        }
        Err(timers_limit(limits).into())
    }

    /// Notes that a pollable is a timer.
    pub(crate) fn count_timer(&mut self, timer: &Resource<DynPollable>) {
        self.timers.insert(timer.rep());
    }

    /// Notes that a pollable is gone, whatever it was.
    pub(crate) fn forget_pollable(&mut self, rep: u32) {
        self.timers.remove(&rep);
        if let Some(awaited) = &mut self.awaited {
            awaited.remove(&rep);
        }
    }

    /// The table, for the system interfaces, whose calls and drops are not counted here.
    pub(crate) fn for_wasi(&mut self) -> &mut ResourceTable {
        &mut self.table
    }
}
