//! The engine: models and programs.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use pie_core::SettingNames;
use pie_host::{
    Component, EngineConfig, Host, HostConfig, Language, Launch, Manifest, ModelConfig, Program,
    Serves, SourceBundle, Usage,
};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyMapping};

use crate::boundary::{beside, detached, duration, raise, waiting};
use crate::config;
use crate::model::PyModel;
use crate::process::PyProcess;
use crate::program;
use crate::server::{self, PyServer};

/// An engine; see the stub.
#[pyclass(name = "Engine", module = "pie._engine", frozen)]
pub(crate) struct PyEngine(Arc<Host>);

/// What can be prepared: a component, or the runtime of a language.
#[derive(FromPyObject)]
enum Form {
    Language(String),
    Component(Vec<u8>),
}

/// What is launched: a component, or sources with their language and the path of their entry.
#[derive(FromPyObject)]
enum ProgramArgument {
    Component(Vec<u8>),
    Source(String, BTreeMap<String, Vec<u8>>, String),
}

impl ProgramArgument {
    fn program(self, py: Python<'_>) -> PyResult<Program> {
        match self {
            // Its digest takes its time.
            Self::Component(bytes) => Ok(py.detach(|| Component::new(bytes)).into()),
            Self::Source(language, files, entry) => Ok(SourceBundle {
                language: language_of(py, &language)?,
                files: Arc::new(files),
                entry,
            }
            .into()),
        }
    }
}

#[pymethods]
impl PyEngine {
    #[new]
    #[pyo3(signature = (
        *, cache_dir = None, data_dir = None, runtimes_dir = None, instance_id = None, worker_threads = 0, worker_niceness = 5,
        background_niceness = 10, max_processes = 256, stack_bytes = None, memory_bytes = None,
        user_memory_bytes = None, compiler = None, limits = None,
    ))]
    #[expect(
        clippy::too_many_arguments,
        reason = "each is a keyword of the Python constructor"
    )]
    fn new(
        py: Python<'_>,
        cache_dir: Option<PathBuf>,
        data_dir: Option<PathBuf>,
        runtimes_dir: Option<PathBuf>,
        instance_id: Option<String>,
        worker_threads: usize,
        worker_niceness: u8,
        background_niceness: u8,
        max_processes: u32,
        stack_bytes: Option<usize>,
        memory_bytes: Option<u64>,
        user_memory_bytes: Option<u64>,
        compiler: Option<Vec<String>>,
        limits: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let defaults = HostConfig::default();
        let runtime = |language: Language| {
            runtimes_dir
                .as_ref()
                .map(|dir| dir.join(format!("{}.wasm", language.name())))
        };
        let config = HostConfig {
            cache_dir,
            data_dir,
            python_runtime: runtime(Language::Python),
            javascript_runtime: runtime(Language::JavaScript),
            instance_id,
            worker_threads,
            worker_niceness,
            background_niceness,
            max_processes,
            stack_bytes: stack_bytes.unwrap_or(defaults.stack_bytes),
            memory_bytes: memory_bytes.unwrap_or(defaults.memory_bytes),
            user_memory_bytes,
            compiler,
            limits: config::limits(limits)?,
            ..defaults
        };
        Ok(Self(Arc::new(detached(py, || Host::new(config))?)))
    }

    #[getter]
    fn instance_id(&self) -> &str {
        self.0.instance_id()
    }

    #[getter]
    fn models(&self) -> Vec<String> {
        self.0.models()
    }

    fn memory(&self) -> BTreeMap<String, BTreeMap<&'static str, u64>> {
        let held = |usage: Usage| {
            let by_purpose = usage.by_purpose();
            by_purpose
                .filter(|(_, n_bytes)| *n_bytes > 0)
                .map(|(purpose, n_bytes)| (purpose.name(), n_bytes))
                .collect()
        };
        let users = self.0.budget().usage().into_iter();
        users.map(|(user, usage)| (user, held(usage))).collect()
    }

    fn lacks_of_workers(&self) -> Vec<&'static str> {
        self.0.lacks_of_workers()
    }

    #[pyo3(signature = (
        name, path, *, vocab_size, max_context, page_size = None, n_pages = None, max_batch_tokens = None, prefill_chunk = None,
        max_batch_seqs = None, max_batch_rows = None, max_contexts = None, max_process_contexts = None,
        max_user_contexts = None, max_snapshots = None,
        max_user_snapshots = None, max_waiting = None, max_process_waiting = None,
        max_user_waiting = None,
        hold_s = None, shared_step_s = None, run_ahead = None, prefix_cache = None, host_slots = None, copy_page_ns = None, driver_timeout_s = None,
        masks = true, positions = true, adapters = true, follows = false,
    ))]
    #[expect(
        clippy::too_many_arguments,
        reason = "each is a keyword of the Python method"
    )]
    fn add_model(
        &self,
        py: Python<'_>,
        name: String,
        path: PathBuf,
        vocab_size: u32,
        max_context: u32,
        page_size: Option<u32>,
        n_pages: Option<u32>,
        max_batch_tokens: Option<u32>,
        prefill_chunk: Option<u32>,
        max_batch_seqs: Option<u32>,
        max_batch_rows: Option<u32>,
        max_contexts: Option<u32>,
        max_process_contexts: Option<u32>,
        max_user_contexts: Option<u32>,
        max_snapshots: Option<u32>,
        max_user_snapshots: Option<u32>,
        max_waiting: Option<u32>,
        max_process_waiting: Option<u32>,
        max_user_waiting: Option<u32>,
        hold_s: Option<f64>,
        shared_step_s: Option<f64>,
        run_ahead: Option<bool>,
        prefix_cache: Option<bool>,
        host_slots: Option<u32>,
        copy_page_ns: Option<u64>,
        driver_timeout_s: Option<f64>,
        masks: bool,
        positions: bool,
        adapters: bool,
        follows: bool,
    ) -> PyResult<PyModel> {
        let nanoseconds = |name, seconds: Option<f64>, default| match seconds {
            None => Ok(default),
            Some(seconds) => duration(py, name, seconds)
                .map(|time| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)),
        };
        let defaults = EngineConfig::new(name, vocab_size);
        let engine = EngineConfig {
            page_size: page_size.unwrap_or(defaults.page_size),
            n_pages: n_pages.unwrap_or(defaults.n_pages),
            host_slots: host_slots.unwrap_or(defaults.host_slots),
            copy_page_ns: copy_page_ns.unwrap_or(defaults.copy_page_ns),
            max_batch_tokens: max_batch_tokens.unwrap_or(defaults.max_batch_tokens),
            prefill_chunk: prefill_chunk.unwrap_or(defaults.prefill_chunk),
            max_batch_seqs: max_batch_seqs.unwrap_or(defaults.max_batch_seqs),
            max_batch_rows: max_batch_rows.unwrap_or(defaults.max_batch_rows),
            max_context,
            max_contexts: max_contexts.unwrap_or(defaults.max_contexts),
            max_process_contexts,
            max_user_contexts,
            max_snapshots: max_snapshots.unwrap_or(defaults.max_snapshots),
            max_user_snapshots,
            max_waiting: max_waiting.unwrap_or(defaults.max_waiting),
            max_process_waiting,
            max_user_waiting,
            hold_ns: nanoseconds("hold_s", hold_s, defaults.hold_ns)?,
            shared_step_ns: nanoseconds("shared_step_s", shared_step_s, defaults.shared_step_ns)?,
            run_ahead: run_ahead.unwrap_or(defaults.run_ahead),
            serves: Serves {
                masks,
                positions,
                adapters,
                follows,
            },
            prefix_cache: prefix_cache.unwrap_or(defaults.prefix_cache),
            driver_timeout_ns: nanoseconds(
                "driver_timeout_s",
                driver_timeout_s,
                defaults.driver_timeout_ns,
            )?,
            names: SettingNames {
                n_pages: "n_pages or kv_bytes of the model",
                driver_timeout: "engine.driver_timeout_s",
            },
            ..defaults
        };
        let host = self.0.clone();
        let model = beside(py, move || {
            host.add_model(ModelConfig {
                folder: path,
                engine,
            })
        })?;
        Ok(PyModel {
            host: self.0.clone(),
            model,
        })
    }

    fn is_prepared(&self, py: Python<'_>, program: Form) -> PyResult<bool> {
        match program {
            Form::Language(name) => {
                let language = language_of(py, &name)?;
                Ok(py.detach(|| self.0.is_prepared(language)))
            }
            Form::Component(bytes) => Ok(py.detach(|| self.0.is_compiled(&Component::new(bytes)))),
        }
    }

    fn prepare(&self, py: Python<'_>, program: Form) -> PyResult<()> {
        let preparation = match program {
            Form::Language(name) => {
                let language = language_of(py, &name)?;
                detached(py, || self.0.prepare(language))?
            }
            Form::Component(bytes) => detached(py, || self.0.compile(&Component::new(bytes)))?,
        };
        waiting(py, None, move |slice| preparation.wait_for(slice)).map(drop)
    }

    fn check(&self, py: Python<'_>, program: Vec<u8>) -> PyResult<()> {
        let check = detached(py, || self.0.check(Component::new(program).into(), ""))?;
        waiting(py, None, move |slice| check.wait_for(slice)).map(drop)
    }

    #[pyo3(signature = (
        program, *, input, args = Vec::new(), seed = None, username = None, manifest = None,
        token_budget = None, limits = None,
    ))]
    #[expect(
        clippy::too_many_arguments,
        reason = "each is a keyword of the Python method"
    )]
    fn launch(
        &self,
        py: Python<'_>,
        program: ProgramArgument,
        input: String,
        args: Vec<String>,
        seed: Option<u64>,
        username: Option<String>,
        manifest: Option<String>,
        token_budget: Option<u64>,
        limits: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<PyProcess> {
        let manifest = program::manifest(py, manifest)?;
        let program = described(program.program(py)?, manifest);
        let launch = Launch {
            args,
            seed,
            username,
            token_budget,
            limits: config::launch_limits(limits)?,
            ..Launch::new(program, input)
        };
        let process = detached(py, || self.0.launch(launch))?;
        Ok(PyProcess::new(process))
    }

    #[pyo3(signature = (host, port, *, data_dir, options = None))]
    fn serve(
        &self,
        py: Python<'_>,
        host: String,
        port: u16,
        data_dir: PathBuf,
        options: Option<&Bound<'_, PyMapping>>,
    ) -> PyResult<PyServer> {
        server::serve(py, self.0.clone(), host, port, data_dir, options)
    }

    fn stop(&self, py: Python<'_>) {
        py.detach(|| self.0.stop());
    }
}

fn described(program: Program, manifest: Option<Manifest>) -> Program {
    match manifest {
        Some(manifest) => program.with_manifest(manifest),
        None => program,
    }
}

/// The whole of a process that compiles for an engine; see the stub.
#[pyfunction]
pub(crate) fn compile_worker(py: Python<'_>) {
    py.detach(|| -> () { pie_host::compile_worker() });
}

/// Has this process have small pages alone, or huge ones too; see the stub.
#[pyfunction]
pub(crate) fn keep_small_pages(alone: bool) {
    pie_host::keep_small_pages(alone);
}

/// Has this process give memory back that it has freed; see the stub.
#[pyfunction]
pub(crate) fn keep_little_free() {
    pie_host::keep_little_free();
}

fn language_of(py: Python<'_>, name: &str) -> PyResult<Language> {
    Language::from_name(name).map_err(|error| raise(py, error))
}
