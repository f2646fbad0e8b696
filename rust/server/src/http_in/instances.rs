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
use crate::registry::Registry;
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
    /// It can be uninstalled; else the server serves nothing but this one.
    pub(crate) is_installed: bool,
}

/// Where instances are launched.
#[derive(Clone, Copy)]
pub(crate) struct Launchpad<'a> {
    pub(crate) processes: &'a Arc<Processes>,
    pub(crate) host: &'a Host,
    pub(crate) registry: &'a Registry,
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
    slots: Mutex<HashMap<Key, Slot>>,
}

/// The user and the label of a program.
type Key = (String, String);

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

    /// Hands a request to the instance that stays.
    async fn ask_staying<T>(
        &self,
        pad: Launchpad<'_>,
        asked: AskedProgram,
        enter: impl FnOnce(&RequestQueue) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let key: Key = (asked.user.clone(), asked.label.clone());
        let program = asked.launch.program.clone();
        let (user, label) = key.clone();
        let is_installed = asked.is_installed;
        let is_there = || !is_installed || pad.registry.find(&user, &label).is_ok();
        let most = self.most_waiting.max(1);
        let launch = move || async move {
            let queue = pad.queue(most, &asked.user);
            pad.launch(asked, queue.clone()).await?;
            Ok::<_, Error>(queue)
        };
        self.enter_staying((key, program), launch, is_there, enter)
            .await
    }

    /// Enters the queue of the instance that stays, which is launched where there is none, or where the program was
    /// replaced. Nobody else ends its queue before the request is in it.
    ///
    /// An uninstall removes a program first, and ends the instance in its slot then. So whoever launches one puts it
    /// into its slot first, and looks then: either the uninstall finds the instance, or this finds the program gone, or
    /// the slot not that of the program any more. The instance answers what has come, and ends.
    async fn enter_staying<T, L>(
        &self,
        (key, program): (Key, Program),
        launch: impl FnOnce() -> L,
        is_there: impl Fn() -> bool,
        enter: impl FnOnce(&RequestQueue) -> Result<T, Error>,
    ) -> Result<T, Error>
    where
        L: Future<Output = Result<Arc<RequestQueue>, Error>>,
    {
        let slot = self.slot(&key);
        let mut held = slot.lock().await;
        if let Some(instance) = &*held {
            if instance.is_of(&program) {
                return enter(&instance.queue);
            }
            // It finishes what it works on.
            instance.queue.end();
        }
        *held = None;
        let queue = launch().await?;
        let entered = enter(&queue);
        *held = Some(Instance {
            program,
            queue: queue.clone(),
        });
        drop(held);
        if !self.is_slot_of(&key, &slot) || !is_there() {
            queue.end();
        }
        entered
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

    /// Every instance finishes what it works on, and ends; launches are refused already.
    pub(crate) async fn end_all(&self) {
        let slots: Vec<Slot> = lock(&self.slots).values().cloned().collect();
        for slot in slots {
            // One that is being launched is waited for.
            if let Some(instance) = &*slot.lock().await {
                instance.queue.end();
            }
        }
    }

    /// True as long as it is the slot in which an uninstall looks for the instance.
    fn is_slot_of(&self, key: &Key, slot: &Slot) -> bool {
        lock(&self.slots)
            .get(key)
            .is_some_and(|current| Arc::ptr_eq(current, slot))
    }

    fn slot(&self, key: &Key) -> Slot {
        let mut slots = lock(&self.slots);
        if let Some(slot) = slots.get(key) {
            return slot.clone();
        }
        // Those whose instance has ended are forgotten, unless somebody launches another one.
        let is_open = |instance: &Instance| instance.queue.is_open();
        slots.retain(|_, slot| {
            let is_needed =
                |held: MutexGuard<'_, Option<Instance>>| held.as_ref().is_some_and(is_open);
            Arc::strong_count(slot) > 1 || slot.try_lock().is_ok_and(is_needed)
        });
        slots.entry(key.clone()).or_default().clone()
    }
}

#[cfg(test)]
mod tests {
    use pie_host::{Budget, Component};
    use tokio::sync::oneshot;

    use super::*;

    fn key() -> Key {
        ("ada".to_owned(), "a@1".to_owned())
    }

    fn program() -> Program {
        Program::from(Component::new(b"a program".as_slice()))
    }

    fn queue() -> Arc<RequestQueue> {
        RequestQueue::new(1, Budget::new(16 << 20, None).account("ada"))
    }

    /// Enters the queue of an instance that is launched once `begins` is told; whether it stays.
    async fn entered(
        instances: &HttpInstances,
        begins: oneshot::Receiver<()>,
        is_there: bool,
    ) -> bool {
        let queue = queue();
        let launched = queue.clone();
        let launch = || async move {
            begins.await.unwrap();
            Ok(launched)
        };
        let wanted = (key(), program());
        let entering = instances.enter_staying(wanted, launch, || is_there, |_| Ok(()));
        entering.await.unwrap();
        queue.is_open()
    }

    #[tokio::test]
    async fn an_instance_stays_as_long_as_its_program_is_installed() {
        let instances = HttpInstances::default();
        let (begin, begins) = oneshot::channel();
        begin.send(()).unwrap();
        assert!(entered(&instances, begins, true).await);
        // The second request is for the same instance: its own is not launched.
        let (_never, begins) = oneshot::channel();
        assert!(entered(&instances, begins, true).await);
        let slot = instances.slot(&key());
        let queue = slot.lock().await.as_ref().unwrap().queue.clone();
        instances.retire("ada", "a@1").await;
        assert!(!queue.is_open() && lock(&instances.slots).is_empty());
    }

    #[tokio::test]
    async fn an_instance_that_is_launched_beside_an_uninstall_does_not_stay() {
        // The program was removed, and its instances were ended, before this one had a slot.
        let instances = HttpInstances::default();
        let (begin, begins) = oneshot::channel();
        begin.send(()).unwrap();
        assert!(!entered(&instances, begins, false).await);
        // They are ended while two wait for a slot, and the program is installed again before they have it.
        let instances = HttpInstances::default();
        let [(first, first_begins), (second, second_begins)] =
            [oneshot::channel(), oneshot::channel()];
        let begin = async {
            first.send(()).unwrap();
            second.send(()).unwrap();
        };
        // They are polled in this order.
        let (first, second, (), ()) = tokio::join!(
            biased;
            entered(&instances, first_begins, true),
            entered(&instances, second_begins, true),
            instances.retire("ada", "a@1"),
            begin,
        );
        assert!(!first && !second);
    }

    #[tokio::test]
    async fn the_end_waits_for_what_is_being_launched() {
        let instances = HttpInstances::default();
        let (begin, begins) = oneshot::channel();
        let (_, (), ()) = tokio::join!(
            biased;
            entered(&instances, begins, true),
            instances.end_all(),
            async { begin.send(()).unwrap() },
        );
        let slot = instances.slot(&key());
        let held = slot.lock().await;
        assert!(
            held.as_ref()
                .is_none_or(|instance| !instance.queue.is_open())
        );
    }
}
