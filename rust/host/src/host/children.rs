//! Processes that programs start.

use std::sync::Arc;

use pie_core::{ErrorCode, ProcessId};

use super::state::HostState;
use crate::Error;
use crate::budget::Purpose;
use crate::process::Launch;
use crate::process::child::{Admitted, Child, Spawn, Spawner};
use crate::process::ending::ProcessEnding;
use crate::process::kin::{Inherited, Lineage, Places};
use crate::process::programs::Named;
use crate::process::queue::PassedOn;
use crate::process::record::ProcessRecord;
use crate::stepped_charge::SteppedCharge;

impl HostState {
    /// From now on programs start others through this host.
    pub(super) fn know_spawner(self: &Arc<Self>) {
        let shared: Arc<dyn Spawner> = self.clone();
        let known = self.surroundings.spawner.set(Arc::downgrade(&shared));
        debug_assert!(known.is_ok(), "a host is made once");
    }

    /// Begins a child that ends with `parent`, and passes its output on where it was asked for.
    fn begin_child(
        self: &Arc<Self>,
        parent: &Arc<ProcessRecord>,
        (launch, inherited): (Launch, Inherited),
        with_output: bool,
    ) -> Result<Arc<ProcessRecord>, Error> {
        let counted = parent.clone();
        let count = Box::new(move |n_bytes| counted.count_output(n_bytes));
        let events = PassedOn::new(parent.events.behind(), count, with_output);
        let begun = self.begin(launch, Some(inherited), events)?;
        self.threads.spawn(begun.task)?;
        parent.keep_child(&begun.record);
        Ok(begun.record)
    }
}

impl Spawner for HostState {
    fn admit(&self, parent: &ProcessRecord, is_detached: bool) -> Result<Admitted, Error> {
        let above = &parent.kin.lineage;
        let lineage = Lineage {
            family: above.family.clone(),
            depth: above.depth + 1,
            is_served: parent.is_served(),
        };
        let (of_family, start) = lineage.family.admit(lineage.depth, &parent.limits)?;
        let programs = self.surroundings.directory.get();
        let (keeper, of_user) = if is_detached {
            // It is counted where it is kept.
            (Some(programs.ok_or_else(not_kept)?), None)
        } else {
            let of_user = programs.map(|programs| programs.admit(&parent.username));
            (None, of_user.transpose()?)
        };
        let holding = SteppedCharge::new(parent.account.empty(Purpose::Queue));
        let inherited = Inherited {
            limits: parent.limits.clone(),
            budget: parent.budget.clone(),
            lineage,
            ending: Arc::new(ProcessEnding::new(holding)),
            places: Places::new(of_family, of_user),
            parent: ProcessId(parent.pid),
        };
        Ok(Admitted {
            inherited,
            start,
            keeper,
        })
    }

    fn spawn(
        self: Arc<Self>,
        parent: &Arc<ProcessRecord>,
        admitted: Admitted,
        named: Named,
        spawn: Spawn,
    ) -> Result<Child, Error> {
        let Admitted {
            inherited,
            start,
            keeper,
        } = admitted;
        let ending = inherited.ending.clone();
        let Named { label, program } = named;
        let own_seed = parent.kin.next_seed(parent.launch_seed);
        let launch = Launch {
            args: spawn.args,
            seed: Some(spawn.seed.unwrap_or(own_seed)),
            username: Some(parent.username.clone()),
            token_budget: spawn.token_budget,
            credits: spawn.credits,
            programs: parent.kin.given(),
            is_alone: parent.kin.is_alone,
            mcp: parent.mcp.clone(),
            ..Launch::new(program, spawn.input)
        };
        let record = match keeper {
            Some(keeper) => {
                let process = keeper.launch_detached(label, launch, inherited)?;
                process.record().clone()
            }
            None => self.begin_child(parent, (launch, inherited), spawn.with_output)?,
        };
        start.succeed();
        parent.kin.count_child();
        Ok(Child::new(record, ending))
    }
}

fn not_kept() -> Error {
    Error::new(
        ErrorCode::Unsupported,
        "a detached child lives on in a server, and this engine is not one; run the program in a server, as by `pie run PROGRAM --server URL`, or leave `detached` out",
    )
}

#[cfg(test)]
mod tests {
    use std::any::Any;
    use std::collections::BTreeMap;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::interface::runtime::start;
    use crate::process::reading::Alone;
    use crate::process::{Finding, Programs, ServedProcess};
    use crate::program::{Component, Language, Program, SourceBundle};
    use crate::{Host, HostConfig, Limits};

    /// Refuses so many children for their user, and takes the others.
    struct Keeper(AtomicUsize);

    impl Programs for Keeper {
        fn find(self: Arc<Self>, _: &str, name: &str) -> Finding {
            panic!("{name} is not installed");
        }

        fn process(&self, _: &str, pid: u64) -> Result<ServedProcess, Error> {
            panic!("nobody asks for process {pid}");
        }

        fn admit(self: Arc<Self>, _: &str) -> Result<Box<dyn Any + Send + Sync>, Error> {
            let left = self.0.load(Ordering::Relaxed);
            if left == 0 {
                return Ok(Box::new(()));
            }
            self.0.store(left - 1, Ordering::Relaxed);
            Err(Error::new(ErrorCode::LimitProcesses, "too many"))
        }

        fn launch_detached(
            self: Arc<Self>,
            label: String,
            _: Launch,
            _: Inherited,
        ) -> Result<ServedProcess, Error> {
            panic!("{label} is not detached");
        }
    }

    fn host(limits: Limits) -> Host {
        Host::new(HostConfig {
            limits,
            ..HostConfig::default()
        })
        .unwrap()
    }

    /// A process in which nothing runs while its task is there.
    fn parent(host: &Host, program: Program) -> (Arc<ProcessRecord>, impl Future<Output = ()>) {
        let launch = Launch::new(program, "null");
        let begun = host.shared.begin(launch, None, Alone).unwrap();
        (begun.record, begun.task)
    }

    /// Starts a child as a program does that calls it `name`.
    async fn spawned(host: &Host, parent: &Arc<ProcessRecord>, name: &str) -> Result<Child, Error> {
        let spawn = Spawn {
            input: "null".to_owned(),
            args: Vec::new(),
            seed: None,
            token_budget: None,
            credits: None,
            with_output: false,
            is_detached: false,
        };
        start(name, spawn, parent, &host.shared.surroundings).await
    }

    #[tokio::test]
    async fn what_was_refused_takes_nothing_of_the_limit_of_spawns() {
        let host = host(Limits {
            spawns: 3,
            ..Limits::default()
        });
        let keeper: Arc<dyn Programs> = Arc::new(Keeper(AtomicUsize::new(5)));
        host.know_programs(Arc::downgrade(&keeper));
        let (parent, _task) = parent(&host, Component::new(*b"any").into());
        let mut started = Vec::new();
        for _ in 0..5 {
            let refused = spawned(&host, &parent, ".").await.unwrap_err();
            assert_eq!(refused.code, ErrorCode::LimitProcesses);
        }
        // Nor does a child that could not be found.
        let refused = spawned(&host, &parent, &"x".repeat(2000))
            .await
            .unwrap_err();
        assert_eq!(refused.code, ErrorCode::UnknownProgram);
        for _ in 0..3 {
            started.push(spawned(&host, &parent, ".").await.unwrap());
        }
        let refused = spawned(&host, &parent, ".").await.unwrap_err();
        assert_eq!(refused.code, ErrorCode::LimitSpawns);
    }

    #[tokio::test]
    async fn parts_of_a_program_that_are_refused_are_not_kept() {
        let host = host(Limits {
            child_depth: 0,
            ..Limits::default()
        });
        let folders: Vec<String> = (1..=100).map(|n| vec!["f"; n].join("/")).collect();
        let file = |folder: &String| (format!("{folder}/main.py"), b"".to_vec());
        let files: BTreeMap<_, _> = folders.iter().map(file).collect();
        let bundle = SourceBundle {
            language: Language::Python,
            files: Arc::new(files),
            entry: "f/main.py".to_owned(),
        };
        let (parent, _task) = parent(&host, bundle.into());
        for folder in &folders {
            let refused = spawned(&host, &parent, folder).await.unwrap_err();
            assert_eq!(refused.code, ErrorCode::LimitChildDepth);
        }
        assert_eq!(parent.kin.nameable().unwrap().n_parts(), 0);
    }
}
