//! A host with the dummy model, and what is checked after each program.

use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use pie_core::{Capabilities, EngineConfig};
use pie_host::{Component, Event, Host, HostConfig, Launch, Model, ModelConfig};

/// Whatever a program does, it has ended after this time: its limits are far below.
const PATIENCE: Duration = Duration::from_secs(30);
/// Errors that no program can bring about: their cause is the engine's.
const FAULTS_OF_ENGINE: &[&str] = &[
    "internal",
    "driver-failed",
    "bad-logits",
    "engine-stopped",
    "invalid-config",
    "invalid-model",
];

/// One host for all inputs: what one program leaves behind, the next ones meet.
pub(crate) struct Engine {
    host: Host,
    model: Arc<Model>,
}

/// The engine, made once.
pub(crate) fn engine() -> &'static Engine {
    static ENGINE: OnceLock<Engine> = OnceLock::new();
    ENGINE.get_or_init(|| {
        let mut config = HostConfig {
            max_processes: 8,
            max_programs: 4,
            stack_bytes: 1 << 20,
            bus_topics: 16,
            bus_queue_bytes: 64 << 10,
            bus_user_bytes: 256 << 10,
            bus_push: Duration::from_millis(1),
            ..HostConfig::default()
        };
        let limits = &mut config.limits;
        limits.memory_bytes = 4 << 20;
        limits.cpu = Some(Duration::from_secs(1));
        limits.wall = Some(Duration::from_millis(30));
        limits.calls = 1000;
        limits.resources = 64;
        limits.futures = 16;
        limits.timers = 4;
        limits.output_bytes = 64 << 10;
        limits.message_bytes = 64 << 10;
        let host = Host::new(config).unwrap();
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../python/pie/pie_tiny");
        let model = host
            .add_model(ModelConfig {
                folder,
                engine: EngineConfig {
                    driver: Capabilities {
                        n_pages: 64,
                        max_positions: 512,
                        ..EngineConfig::new("dummy", 4096).driver
                    },
                    ..EngineConfig::new("dummy", 4096)
                },
                is_isolated: false,
            })
            .unwrap();
        host.run_dummy(&model, Vec::new()).unwrap();
        Engine { host, model }
    })
}

impl Engine {
    /// Runs a program to its end; returns the code of its error.
    ///
    /// # Panics
    /// Where it does not end, ends in an error of the engine, or leaves something behind.
    pub(crate) fn run(&self, component: Vec<u8>) -> Option<String> {
        let launch = Launch {
            seed: Some(7),
            ..Launch::new(Component::new(component), "null")
        };
        let process = self.host.launch(launch).unwrap();
        // There is one message and one file to receive, and then nobody; a program that has ended takes none.
        drop(process.send("message".to_owned()));
        drop(process.send_file(b"file".to_vec()));
        process.close_input();
        let ends_before = Instant::now() + PATIENCE;
        let mut last = None;
        while !process.is_drained() {
            let event = process.next_event(Some(PATIENCE));
            assert!(
                event.is_some() || process.is_drained() || Instant::now() < ends_before,
                "no end within {PATIENCE:?}"
            );
            last = event.or(last);
        }
        let code = match last {
            Some(Event::Return(_)) => None,
            Some(Event::Error(failure)) => {
                let code = failure.code.clone().unwrap_or_default();
                assert!(!FAULTS_OF_ENGINE.contains(&code.as_str()), "{failure:?}");
                Some(code)
            }
            other => panic!("the last event is {other:?}"),
        };
        self.check();
        code
    }

    /// Checks that the model is whole, and waits until what programs held is free.
    fn check(&self) {
        self.model.check().unwrap();
        let ends_before = Instant::now() + PATIENCE;
        loop {
            let stats = self.model.stats();
            let left = [
                stats.n_pages_used,
                stats.n_contexts,
                stats.n_generators,
                stats.n_requests,
            ];
            if left == [0; 4] {
                return;
            }
            assert!(Instant::now() < ends_before, "left behind: {stats:?}");
            std::thread::yield_now();
        }
    }
}
