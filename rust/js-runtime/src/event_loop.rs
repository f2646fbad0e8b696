//! What a program waits for: futures of the engine, and timers. The loop sleeps in one poll for all of them.
//!
//! Nothing of the loop is borrowed while JavaScript runs or JavaScript values are dropped, because both may come back
//! here.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

use rquickjs::class::Trace;
use rquickjs::promise::PromiseState;
use rquickjs::{Ctx, Error, Function, JsLifetime, Persistent, Promise, Result, Value};

use crate::bindings::wasi::clocks::monotonic_clock;
use crate::bindings::wasi::io::poll::{self, Pollable};
use crate::errors;

/// A future of the engine.
pub(crate) trait Awaited {
    /// A new pollable, a child of this future.
    fn pollable(&self) -> Pollable;
    /// Whether it is work, which is asked for to be awaited. A message may be asked for in advance.
    fn is_work(&self) -> bool;
    /// The answer; none while there is none. An error of the engine is the inner one.
    fn take<'js>(
        &self,
        ctx: &Ctx<'js>,
    ) -> Option<Result<std::result::Result<Value<'js>, errors::EngineError>>>;
}

/// A future that keeps what it works on alive.
pub(crate) struct Kept<F, O> {
    future: F,
    _owner: O,
}

impl<F, O> Kept<F, O> {
    /// Keeps `owner` for as long as somebody may wait for `future`.
    pub(crate) const fn new(future: F, owner: O) -> Self {
        Self {
            future,
            _owner: owner,
        }
    }
}

impl<F: Awaited, O> Awaited for Kept<F, O> {
    fn pollable(&self) -> Pollable {
        self.future.pollable()
    }

    fn is_work(&self) -> bool {
        self.future.is_work()
    }

    fn take<'js>(
        &self,
        ctx: &Ctx<'js>,
    ) -> Option<Result<std::result::Result<Value<'js>, errors::EngineError>>> {
        self.future.take(ctx)
    }
}

/// The futures of the engine that are work: on a context, and the request to a server.
const WORK: [&str; 6] = [
    "FutureHead",
    "FutureUnit",
    "FuturePassOutput",
    "FutureOutput",
    "FutureTokens",
    "FutureText",
];

/// Whether a future of this name is work.
pub(crate) fn is_work(future: &str) -> bool {
    future
        .rsplit("::")
        .next()
        .is_some_and(|name| WORK.contains(&name.trim()))
}

/// A future with its pollable, which is declared first because it must be dropped first.
struct Handles {
    pollable: Pollable,
    future: Box<dyn Awaited>,
}

/// One future that somebody may wait for. Shared between the loop and the promise that the program holds.
struct Wait {
    /// None once the answer was taken or the wait was given up.
    handles: RefCell<Option<Handles>>,
    settle: RefCell<Option<Persistent<Function<'static>>>>,
    /// Who would see the answer, beside those who only raced for it and whose race is over.
    subscribers: Cell<u32>,
    /// Somebody has waited for it, if only in a race.
    awaited: Cell<bool>,
    /// A race for it was decided by something else.
    lost: Cell<bool>,
    /// The program still holds the promise.
    held: Cell<bool>,
}

impl Wait {
    /// Whether it is work that is under way, and that has not lost a race.
    fn is_under_way(&self) -> bool {
        let is_work = self
            .handles
            .borrow()
            .as_ref()
            .is_some_and(|handles| handles.future.is_work());
        is_work && !self.lost.get()
    }

    /// Cancels the future once its race is lost and nobody could ask for it again.
    fn cancel_if_abandoned(&self) {
        if self.lost.get() && !self.held.get() && self.subscribers.get() == 0 {
            drop(self.handles.take());
        }
    }
}

/// What a promise of the SDK holds of its wait.
#[derive(Trace, JsLifetime)]
#[rquickjs::class]
pub(crate) struct WaitHandle {
    #[qjs(skip_trace)]
    wait: Rc<Wait>,
}

#[rquickjs::methods]
impl WaitHandle {
    /// Somebody waits for the answer.
    fn subscribe(&self) {
        self.wait.awaited.set(true);
        self.wait.subscribers.set(self.wait.subscribers.get() + 1);
    }

    /// A race for the answer is over; the future is cancelled when nobody else waits or could wait for it.
    fn unsubscribe(&self) {
        self.wait
            .subscribers
            .set(self.wait.subscribers.get().saturating_sub(1));
        self.wait.lost.set(true);
        self.wait.cancel_if_abandoned();
    }

    /// Blocks the whole program until the answer is there, and hands it over.
    fn block<'js>(&self, ctx: Ctx<'js>) -> Result<()> {
        self.wait.awaited.set(true);
        while self.wait.handles.borrow().is_some() {
            if let Some(handles) = &*self.wait.handles.borrow() {
                handles.pollable.block();
            }
            deliver(&ctx, &self.wait)?;
        }
        Ok(())
    }
}

impl Drop for WaitHandle {
    fn drop(&mut self) {
        self.wait.held.set(false);
        self.wait.cancel_if_abandoned();
    }
}

struct Timer {
    callback: Persistent<Function<'static>>,
    /// Nanoseconds between two calls, for an interval.
    every: Option<u64>,
}

/// A rejected promise that nobody has handled, and why it was rejected.
struct Rejection {
    promise: Persistent<Value<'static>>,
    reason: Persistent<Value<'static>>,
}

/// The loop of a program.
#[derive(Default, JsLifetime)]
pub(crate) struct EventLoop {
    waits: RefCell<Vec<Rc<Wait>>>,
    /// By due time in nanoseconds of the monotonic clock, then by age.
    timers: RefCell<BTreeMap<(u64, u32), Timer>>,
    /// When each timer is due.
    due: RefCell<HashMap<u32, u64>>,
    last_timer: Cell<u32>,
    rejections: RefCell<Vec<Rejection>>,
}

/// How a wait for a promise ended.
pub(crate) enum Settled<'js> {
    Fulfilled(Value<'js>),
    Rejected(Value<'js>),
    /// The promise is pending and nothing could ever settle it.
    Deadlock,
}

impl EventLoop {
    /// Waits for a future and then calls `settle(error, value)`, one of them undefined.
    pub(crate) fn wait<'js>(
        &self,
        ctx: &Ctx<'js>,
        future: Box<dyn Awaited>,
        settle: Function<'js>,
    ) -> WaitHandle {
        let pollable = future.pollable();
        let wait = Rc::new(Wait {
            handles: RefCell::new(Some(Handles { pollable, future })),
            settle: RefCell::new(Some(Persistent::save(ctx, settle))),
            subscribers: Cell::new(0),
            awaited: Cell::new(false),
            lost: Cell::new(false),
            held: Cell::new(true),
        });
        self.waits.borrow_mut().push(Rc::clone(&wait));
        WaitHandle { wait }
    }

    /// Calls back after `delay_ms`, once or again and again; returns the timer's number.
    pub(crate) fn start_timer<'js>(
        &self,
        ctx: &Ctx<'js>,
        callback: Function<'js>,
        delay_ms: f64,
        repeat: bool,
    ) -> u32 {
        // Not a number and negative delays are no delay, as in every JavaScript host; the cast saturates.
        let delay_ns = (delay_ms.max(0.0) * 1e6) as u64;
        let id = self.last_timer.get().wrapping_add(1);
        self.last_timer.set(id);
        let due = monotonic_clock::now().saturating_add(delay_ns);
        let timer = Timer {
            callback: Persistent::save(ctx, callback),
            every: repeat.then_some(delay_ns.max(1_000_000)),
        };
        self.timers.borrow_mut().insert((due, id), timer);
        self.due.borrow_mut().insert(id, due);
        id
    }

    /// Stops a timer; a number that names none does nothing.
    pub(crate) fn stop_timer(&self, id: u32) {
        let due = self.due.borrow_mut().remove(&id);
        let timer = due.and_then(|due| self.timers.borrow_mut().remove(&(due, id)));
        drop(timer);
    }

    /// Whether a timer is still to be due.
    pub(crate) fn has_timers(&self) -> bool {
        !self.timers.borrow().is_empty()
    }

    /// Notes that a promise was rejected without a handler, or that such a one got a handler after all.
    pub(crate) fn track_rejection<'js>(
        &self,
        ctx: &Ctx<'js>,
        promise: Value<'js>,
        reason: Value<'js>,
        handled: bool,
    ) {
        let promise = Persistent::save(ctx, promise);
        if !handled {
            let reason = Persistent::save(ctx, reason);
            self.rejections
                .borrow_mut()
                .push(Rejection { promise, reason });
            return;
        }
        let position = self
            .rejections
            .borrow()
            .iter()
            .position(|rejection| rejection.promise == promise);
        let handled = position.map(|position| self.rejections.borrow_mut().remove(position));
        drop(handled);
    }

    /// Why the oldest unhandled promise was rejected.
    pub(crate) fn unhandled_rejection<'js>(&self, ctx: &Ctx<'js>) -> Option<Value<'js>> {
        let reason = self
            .rejections
            .borrow()
            .first()
            .map(|rejection| rejection.reason.clone());
        reason.and_then(|reason| reason.restore(ctx).ok())
    }

    /// Rejects the promises of work that is not done though `main` has ended. The rejection of what nothing awaited,
    /// and of what an async function waits for whose own promise nothing awaited, is unhandled then. That of what lost
    /// a race, or has a handler, goes to those who would have heard of the answer.
    pub(crate) fn reject_unawaited(&self, ctx: &Ctx<'_>) -> Result<()> {
        let waits: Vec<Rc<Wait>> = self.waits.borrow().clone();
        for wait in waits.iter().filter(|wait| wait.is_under_way()) {
            drop(wait.handles.take());
            let Some(settle) = wait.settle.take() else {
                continue;
            };
            let error = errors::to_js(ctx, &unawaited(wait.awaited.get()))?;
            settle
                .restore(ctx)?
                .call::<_, ()>((error, rquickjs::Undefined))?;
            drain(ctx);
        }
        Ok(())
    }

    /// Runs the program until the promise is settled. An exception is one that a timer's callback threw.
    pub(crate) fn settle<'js>(
        &self,
        ctx: &Ctx<'js>,
        promise: &Promise<'js>,
    ) -> Result<Settled<'js>> {
        loop {
            drain(ctx);
            match promise.state() {
                PromiseState::Pending => {}
                PromiseState::Resolved => return Ok(Settled::Fulfilled(promise.finish()?)),
                PromiseState::Rejected => {
                    // `finish` throws the reason, which is not an exception of the loop's own.
                    return match promise.finish::<Value>() {
                        Err(Error::Exception) => Ok(Settled::Rejected(ctx.catch())),
                        Err(error) => Err(error),
                        Ok(value) => Ok(Settled::Rejected(value)),
                    };
                }
            }
            if !self.turn(ctx)? {
                return Ok(Settled::Deadlock);
            }
        }
    }

    /// Sleeps until something is ready and delivers it; false where nothing can ever be.
    fn turn(&self, ctx: &Ctx<'_>) -> Result<bool> {
        self.forget_finished();
        let waits: Vec<Rc<Wait>> = self.waits.borrow().clone();
        let next_due = self
            .timers
            .borrow()
            .first_key_value()
            .map(|((due, _), _)| *due);
        match (&waits[..], next_due) {
            ([], None) => return Ok(false),
            ([], Some(due)) => {
                if due > monotonic_clock::now() {
                    monotonic_clock::subscribe_instant(due).block();
                }
            }
            // Most programs wait for one thing, which costs less than a list of one.
            ([wait], None) => {
                if let Some(handles) = &*wait.handles.borrow() {
                    handles.pollable.block();
                }
                deliver(ctx, wait)?;
                drain(ctx);
            }
            _ => {
                for wait in ready(&waits, next_due) {
                    deliver(ctx, &wait)?;
                    drain(ctx);
                }
            }
        }
        if next_due.is_some() {
            self.fire_timers(ctx)?;
        }
        Ok(true)
    }

    /// Takes out the waits that were answered or given up; their callbacks are dropped after the list is free again.
    fn forget_finished(&self) {
        let is_finished = |wait: &mut Rc<Wait>| wait.handles.borrow().is_none();
        let finished: Vec<_> = self
            .waits
            .borrow_mut()
            .extract_if(.., is_finished)
            .collect();
        drop(finished);
    }

    /// Calls every timer that is due, in the order of their times; one that an earlier callback stopped is not called.
    fn fire_timers(&self, ctx: &Ctx<'_>) -> Result<()> {
        let now = monotonic_clock::now();
        let due: Vec<(u64, u32)> = self
            .timers
            .borrow()
            .range(..=(now, u32::MAX))
            .map(|(key, _)| *key)
            .collect();
        for key in due {
            let Some(timer) = self.timers.borrow_mut().remove(&key) else {
                continue;
            };
            let callback = timer.callback.clone();
            if let Some(every) = timer.every {
                let next = now.saturating_add(every);
                self.due.borrow_mut().insert(key.1, next);
                self.timers.borrow_mut().insert((next, key.1), timer);
            } else {
                self.due.borrow_mut().remove(&key.1);
            }
            callback.restore(ctx)?.call::<_, ()>(())?;
            drain(ctx);
        }
        Ok(())
    }
}

/// Sleeps until one of the waits is ready or a timer is due; returns the ready ones, in the order in which they began.
fn ready(waits: &[Rc<Wait>], next_due: Option<u64>) -> Vec<Rc<Wait>> {
    let handles: Vec<_> = waits.iter().map(|wait| wait.handles.borrow()).collect();
    let mut pollables: Vec<&Pollable> = handles
        .iter()
        .filter_map(|handles| handles.as_ref().map(|handles| &handles.pollable))
        .collect();
    let timer = next_due.map(monotonic_clock::subscribe_instant);
    pollables.extend(&timer);
    let mut indices = poll::poll(&pollables);
    // The contract promises no order.
    indices.sort_unstable();
    indices
        .iter()
        .filter_map(|&index| waits.get(index as usize).cloned())
        .collect()
}

/// The error of work that the end of the program cuts off.
fn unawaited(is_awaited: bool) -> errors::EngineError {
    let message = if is_awaited {
        "the program ended before this was done: an async function, or a `.then(...)`, waits for it, and nothing awaited \
         that; write `await` before its call, and in the place of `list.forEach(async ...)` a loop `for (... of list)` or \
         `await Promise.all(list.map(async ...))`"
    } else {
        "the program ended before this was done, and nothing awaited it; write `await` before the call"
    };
    errors::EngineError {
        code: "program-error".to_owned(),
        message: message.to_owned(),
        details: "{}".to_owned(),
    }
}

/// Takes the answer of a wait and hands it to the program.
fn deliver<'js>(ctx: &Ctx<'js>, wait: &Wait) -> Result<()> {
    // None: an answer that was delivered before this one made the program give it up.
    let Some(handles) = wait.handles.take() else {
        return Ok(());
    };
    let Some(answer) = handles.future.take(ctx) else {
        wait.handles.replace(Some(handles));
        return Ok(());
    };
    drop(handles);
    let Some(settle) = wait.settle.take() else {
        return Ok(());
    };
    let settle = settle.restore(ctx)?;
    match answer? {
        Ok(value) => settle.call((rquickjs::Undefined, value)),
        Err(error) => settle.call((errors::to_js(ctx, &error)?, rquickjs::Undefined)),
    }
}

/// Runs everything that became runnable.
fn drain(ctx: &Ctx<'_>) {
    while ctx.execute_pending_job() {}
}

/// The loop of the program that runs in this context.
pub(crate) fn current<'js, T>(ctx: &Ctx<'js>, with: impl FnOnce(&EventLoop) -> T) -> Result<T> {
    ctx.userdata::<EventLoop>()
        .map(|event_loop| with(&event_loop))
        .ok_or(Error::Unknown)
}
