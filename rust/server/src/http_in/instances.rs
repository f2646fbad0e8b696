//! The instances of programs that answer requests: one for each request, or one that stays.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use pie_host::{
    ArrivedRequest, Asking, Error, Host, HttpInstance, HttpService, IncomingRequest, Launch,
    Program, RequestQueue, ServedProcess,
};

use tokio::sync::MutexGuard;

use crate::ServerConfig;
use crate::processes::{Launcher, Processes};
use crate::sync::lock;

/// A program that is asked.
#[derive(Clone)]
pub(crate) struct AskedProgram {
    /// Whose it is, and who pays for what it does.
    pub(crate) user: String,
    /// What lists call it.
    pub(crate) label: String,
    pub(crate) launch: Launch,
    pub(crate) service: HttpService,
}

/// Where instances are launched.
#[derive(Clone, Copy)]
pub(crate) struct Launchpad<'a> {
    pub(crate) processes: &'a Arc<Processes>,
    pub(crate) host: &'a Host,
}

impl Launchpad<'_> {
    /// A queue of so many requests that wait, which the user pays for.
    fn queue(self, most: usize, user: &str) -> Arc<RequestQueue> {
        RequestQueue::new(most, self.host.budget().account(user))
    }

    async fn launch(
        self,
        asked: AskedProgram,
        requests: Arc<RequestQueue>,
    ) -> Result<ServedProcess, Error> {
        let launch = Launch {
            requests: Some(requests),
            ..asked.launch
        };
        let launcher = Launcher {
            user: asked.user,
            // Whoever asks it comes from any address.
            address: None,
            connection: None,
            detached: true,
            name: None,
            window_bytes: None,
            inherited: None,
        };
        let (process, _) = self
            .processes
            .launch(self.host, launch, asked.label, launcher)
            .await?;
        // Nobody sends it messages.
        process.close_input();
        Ok(process)
    }
}

/// The instances that stay, by user and label.
#[derive(Default)]
pub(crate) struct HttpInstances {
    /// Requests that may wait for one.
    most_waiting: usize,
    slots: Mutex<HashMap<(String, String), Slot>>,
}

/// Where the instance of one program is, locked while it is launched.
type Slot = Arc<tokio::sync::Mutex<Option<Instance>>>;

/// An instance that stays.
struct Instance {
    program: Program,
    queue: Arc<RequestQueue>,
}

impl Instance {
    fn is_of(&self, program: &Program) -> bool {
        self.queue.is_open() && self.program.is_same(program)
    }
}

impl HttpInstances {
    /// Those of a server.
    pub(crate) fn new(config: &ServerConfig) -> Self {
        Self {
            most_waiting: config.http_queue,
            slots: Mutex::default(),
        }
    }

    /// Hands a request to an instance of the program. Gives the process too, where that is for this request alone.
    ///
    /// # Errors
    /// Those of a launch and of [`RequestQueue::enter`].
    pub(crate) async fn ask(
        &self,
        pad: Launchpad<'_>,
        asked: AskedProgram,
        arrived: ArrivedRequest,
    ) -> Result<(Asking, Option<ServedProcess>), Error> {
        match asked.service.instance {
            HttpInstance::Request => {
                let queue = pad.queue(1, &asked.user);
                let asking = queue.enter(arrived)?;
                queue.end();
                let process = pad.launch(asked, queue).await?;
                Ok((asking, Some(process)))
            }
            HttpInstance::Shared => {
                let asking = self.ask_staying(pad, asked, |queue| queue.enter(arrived));
                Ok((asking.await?, None))
            }
        }
    }

    /// Hands a request that an instance which stayed has not taken to the next one.
    ///
    /// # Errors
    /// Those of a launch and of [`RequestQueue::enter_again`].
    pub(crate) async fn ask_again(
        &self,
        pad: Launchpad<'_>,
        asked: AskedProgram,
        request: IncomingRequest,
    ) -> Result<(), Error> {
        self.ask_staying(pad, asked, |queue| queue.enter_again(request))
            .await
    }

    /// Hands a request to the instance that stays, which is launched where there is none, or where the program was
    /// replaced. Nobody else ends its queue between the two.
    async fn ask_staying<T>(
        &self,
        pad: Launchpad<'_>,
        asked: AskedProgram,
        enter: impl FnOnce(&RequestQueue) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let slot = self.slot(&asked.user, &asked.label);
        let mut held = slot.lock().await;
        if let Some(instance) = &*held {
            if instance.is_of(&asked.launch.program) {
                return enter(&instance.queue);
            }
            // It finishes what it works on.
            instance.queue.end();
        }
        *held = None;
        let queue = pad.queue(self.most_waiting.max(1), &asked.user);
        let program = asked.launch.program.clone();
        pad.launch(asked, queue.clone()).await?;
        let instance = held.insert(Instance { program, queue });
        enter(&instance.queue)
    }

    /// The program was removed: its instance finishes what it works on, and ends.
    pub(crate) async fn retire(&self, user: &str, label: &str) {
        let slot = lock(&self.slots).remove(&(user.to_owned(), label.to_owned()));
        let Some(slot) = slot else {
            return;
        };
        let instance = slot.lock().await.take();
        if let Some(instance) = instance {
            instance.queue.end();
        }
    }

    /// Every instance finishes what it works on, and ends.
    pub(crate) fn end_all(&self) {
        for slot in lock(&self.slots).values() {
            // One that is being launched is for a request that came before.
            if let Ok(held) = slot.try_lock()
                && let Some(instance) = &*held
            {
                instance.queue.end();
            }
        }
    }

    fn slot(&self, user: &str, label: &str) -> Slot {
        let key = (user.to_owned(), label.to_owned());
        let mut slots = lock(&self.slots);
        if let Some(slot) = slots.get(&key) {
            return slot.clone();
        }
        // Those whose instance has ended are forgotten, unless somebody launches another one.
        let is_open = |instance: &Instance| instance.queue.is_open();
        slots.retain(|_, slot| {
            let is_needed =
                |held: MutexGuard<'_, Option<Instance>>| held.as_ref().is_some_and(is_open);
            Arc::strong_count(slot) > 1 || slot.try_lock().is_ok_and(is_needed)
        });
        slots.entry(key).or_default().clone()
    }
}
