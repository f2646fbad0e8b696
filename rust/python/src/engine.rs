//! The engine: models and programs.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use pie_core::SettingNames;
use pie_host::{
    Component, EngineConfig, Host, HostConfig, HttpInstance, Language, Launch, Manifest,
    ModelConfig, Program, SourceBundle, Usage,
};
use pie_server::MountedProgram;
use pyo3::prelude::*;
use pyo3::types::PyMapping;

use crate::boundary::{beside, detached, raise, waiting};
use crate::config::{self, SettingValues};
use crate::model::PyModel;
use crate::process::PyProcess;
use crate::program;
use crate::server::{self, PyServer};

/// An engine; see the stub.
#[pyclass(name = "Engine", module = "pie._engine", frozen)]
pub(crate) struct PyEngine(Arc<Host>);

/// What can be prepared: a component, or the runtime of a language.
#[derive(FromPyObject)]
enum Prepared {
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

/// A launch; `pie.launch.Launch` in Python.
#[derive(FromPyObject)]
struct Asked<'py> {
    input: String,
    args: Vec<String>,
    seed: Option<u64>,
    username: Option<String>,
    manifest: Option<String>,
    token_budget: Option<u64>,
    limits: SettingValues<'py>,
    /// Each with its manifest.
    programs: BTreeMap<String, (ProgramArgument, Option<String>)>,
    is_alone: bool,
    credits: Option<f64>,
}

#[pymethods]
impl PyEngine {
    #[new]
    #[pyo3(signature = (
        *, cache_dir = None, data_dir = None, runtimes_dir = None, instance_id = None, compiler = None, settings = None,
        limits = None, runtime = None, snapshots = None, mcp = BTreeMap::new(), mcp_withheld = Vec::new(),
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
        compiler: Option<Vec<String>>,
        settings: SettingValues<'_>,
        limits: SettingValues<'_>,
        runtime: SettingValues<'_>,
        snapshots: SettingValues<'_>,
        mcp: BTreeMap<String, Bound<'_, PyMapping>>,
        mcp_withheld: Vec<String>,
    ) -> PyResult<Self> {
        let component = |language: Language| {
            runtimes_dir
                .as_ref()
                .map(|dir| dir.join(format!("{}.wasm", language.name())))
        };
        let mut config = HostConfig {
            cache_dir,
            data_dir,
            python_runtime: component(Language::Python),
            javascript_runtime: component(Language::JavaScript),
            instance_id,
            compiler,
            mcp_withheld,
            ..HostConfig::default()
        };
        config::apply(py, "engine", &settings, |name, value| {
            config.set(name, value)
        })?;
        config::apply(py, "limits", &limits, |name, value| {
            config.limits.set(name, value)
        })?;
        config::apply(py, "runtime", &runtime, |name, value| {
            config::set_runtime(&mut config, name, value)
        })?;
        config::apply(py, "snapshots", &snapshots, |name, value| {
            config.snapshots.set(name, value)
        })?;
        config.mcp_servers = config::mcp_servers(py, mcp)?;
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

    fn messages(&self) -> BTreeMap<&'static str, u64> {
        self.0.bus().stats().figures().collect()
    }

    fn lacks_of_workers(&self) -> Vec<&'static str> {
        self.0.lacks_of_workers()
    }

    #[pyo3(signature = (name, path, settings = None, capabilities = None, *, is_isolated = false))]
    fn add_model(
        &self,
        py: Python<'_>,
        name: String,
        path: PathBuf,
        settings: SettingValues<'_>,
        capabilities: SettingValues<'_>,
        is_isolated: bool,
    ) -> PyResult<PyModel> {
        let mut engine = EngineConfig {
            model: name,
            driver: config::capabilities(py, &capabilities)?,
            names: SettingNames {
                n_pages: "n_pages or kv_bytes of the model",
                driver_timeout: "engine.driver_timeout_s",
            },
            ..EngineConfig::default()
        };
        config::apply(py, "model", &settings, |name, value| {
            engine.set(name, value)
        })?;
        let host = self.0.clone();
        let model = beside(py, move || {
            host.add_model(ModelConfig {
                folder: path,
                engine,
                is_isolated,
            })
        })?;
        Ok(PyModel {
            host: self.0.clone(),
            model,
        })
    }

    fn is_prepared(&self, py: Python<'_>, program: Prepared) -> PyResult<bool> {
        match program {
            Prepared::Language(name) => {
                let language = language_of(py, &name)?;
                Ok(py.detach(|| self.0.is_prepared(language)))
            }
            Prepared::Component(bytes) => {
                Ok(py.detach(|| self.0.is_compiled(&Component::new(bytes))))
            }
        }
    }

    fn prepare(&self, py: Python<'_>, program: Prepared) -> PyResult<()> {
        let preparation = match program {
            Prepared::Language(name) => {
                let language = language_of(py, &name)?;
                detached(py, || self.0.prepare(language))?
            }
            Prepared::Component(bytes) => detached(py, || self.0.compile(&Component::new(bytes)))?,
        };
        waiting(py, None, move |slice| preparation.wait_for(slice)).map(drop)
    }

    fn check(&self, py: Python<'_>, program: Vec<u8>) -> PyResult<()> {
        let check = detached(py, || self.0.check(Component::new(program).into(), ""))?;
        waiting(py, None, move |slice| check.wait_for(slice)).map(drop)
    }

    fn launch(
        &self,
        py: Python<'_>,
        program: ProgramArgument,
        launch: Asked<'_>,
    ) -> PyResult<PyProcess> {
        let launch = launched(py, program, launch)?;
        let process = detached(py, || self.0.launch(launch))?;
        Ok(PyProcess::new(process))
    }

    #[pyo3(signature = (data_dir, settings = None))]
    fn serve(
        &self,
        py: Python<'_>,
        data_dir: PathBuf,
        settings: SettingValues<'_>,
    ) -> PyResult<PyServer> {
        server::serve(py, self.0.clone(), data_dir, &settings, None)
    }

    #[pyo3(signature = (program, launch, *, label, data_dir, shared = false, settings = None))]
    #[expect(
        clippy::too_many_arguments,
        reason = "each is a keyword of the Python method"
    )]
    fn serve_program(
        &self,
        py: Python<'_>,
        program: ProgramArgument,
        launch: Asked<'_>,
        label: String,
        data_dir: PathBuf,
        shared: bool,
        settings: SettingValues<'_>,
    ) -> PyResult<PyServer> {
        let mounted = MountedProgram {
            label,
            launch: launched(py, program, launch)?,
            instance: if shared {
                HttpInstance::Shared
            } else {
                HttpInstance::Request
            },
        };
        server::serve(py, self.0.clone(), data_dir, &settings, Some(mounted))
    }

    fn stop(&self, py: Python<'_>) {
        py.detach(|| self.0.stop());
    }
}

/// A launch as the host takes it.
fn launched(py: Python<'_>, program: ProgramArgument, launch: Asked<'_>) -> PyResult<Launch> {
    let manifest = program::manifest(py, launch.manifest)?;
    let program = described(program.program(py)?, manifest);
    Ok(Launch {
        args: launch.args,
        seed: launch.seed,
        username: launch.username,
        token_budget: launch.token_budget,
        credits: launch.credits,
        limits: config::launch_limits(py, &launch.limits)?,
        programs: named(py, launch.programs)?,
        is_alone: launch.is_alone,
        ..Launch::new(program, launch.input)
    })
}

/// Programs by the names that a launch gives them.
fn named(
    py: Python<'_>,
    given: BTreeMap<String, (ProgramArgument, Option<String>)>,
) -> PyResult<BTreeMap<String, Program>> {
    let program = |(name, (content, manifest)): (String, (ProgramArgument, Option<String>))| {
        let manifest = program::manifest(py, manifest)?;
        Ok((name, described(content.program(py)?, manifest)))
    };
    given.into_iter().map(program).collect()
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
