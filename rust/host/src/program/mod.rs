//! Programs: what can be launched.

pub(crate) mod apart;
pub(crate) mod artefact;
pub(crate) mod blocking;
mod cache;
mod compilation;
pub(crate) mod compiler;
mod component;
pub(crate) mod confine;
pub(crate) mod disk;
pub(crate) mod failures;
pub(crate) mod fair_turns;
pub(crate) mod fields;
pub(crate) mod holders;
pub(crate) mod language;
pub(crate) mod manifest;
pub(crate) mod opened;
mod own_runtime;
pub(crate) mod packed;
pub(crate) mod parameters;
pub(crate) mod parts;
pub(crate) mod preparation;
pub(crate) mod runtimes;
pub(crate) mod shape;
pub(crate) mod shared_components;
pub(crate) mod single_flight;
pub(crate) mod source;
pub(crate) mod store;
pub(crate) mod stripping;
pub(crate) mod typescript;
pub(crate) mod worker;

use std::sync::{Arc, Weak};

pub use component::Component;
pub use fields::did_you_mean;
pub(crate) use fields::{after_hint, shown};
pub use language::Language;
pub use manifest::{HttpInstance, HttpService, Manifest, is_program_name, is_program_version};
use opened::{Code, LazyComponent, Opened, RuntimeChoice};
pub use packed::{Packed, parse_digest, runtime_name};
pub use parameters::{Kind as ParameterKind, Parameter, Parameters};
pub use preparation::Preparation;
use source::LazySource;
pub use source::SourceBundle;

use crate::Error;
use crate::budget::{Budget, Charge};
use crate::limits::Limits;

/// What can be launched, any number of times. Work that is needed once is done at its first launch.
#[derive(Clone, Debug)]
pub struct Program {
    form: Form,
    manifest: Option<Arc<Manifest>>,
}

#[derive(Clone, Debug)]
enum Form {
    Component(Arc<LazyComponent>),
    Source(Arc<LazySource>, RuntimeChoice),
}

impl Program {
    /// The program with a manifest, which takes the place of the one that it carries: inputs are checked against it.
    #[must_use]
    pub fn with_manifest(self, manifest: Manifest) -> Self {
        Self {
            manifest: Some(Arc::new(manifest)),
            ..self
        }
    }

    /// How it serves requests by HTTP, as its manifest says; none: it serves none.
    ///
    /// # Errors
    /// `invalid-program` and `invalid-manifest` for a built program that is damaged.
    pub async fn http_service(&self, limits: &Limits) -> Result<Option<HttpService>, Error> {
        let manifest = self.opened(limits).await?.manifest;
        Ok(manifest.and_then(|manifest| manifest.http))
    }

    /// Whether the other one has the same content and the same manifest.
    pub fn is_same(&self, other: &Self) -> bool {
        let same_content = match (&self.form, &other.form) {
            (Form::Component(one), Form::Component(another)) => one.digest() == another.digest(),
            (Form::Source(one, _), Form::Source(another, _)) => Arc::ptr_eq(one, another),
            _ => false,
        };
        same_content && self.manifest == other.manifest
    }

    /// The program as a process of `user` holds it, charged to them.
    ///
    /// # Errors
    /// `limit-engine-memory`.
    pub(crate) fn held(self, budget: &Arc<Budget>, user: &str) -> Result<ChargedProgram, Error> {
        let charge = match &self.form {
            Form::Component(component) => component.hold(budget, user),
            Form::Source(source, _) => source.hold(budget, user),
        }?;
        Ok(ChargedProgram {
            program: self,
            _charge: charge,
        })
    }

    /// The program, without holding it.
    pub(crate) fn downgraded(&self) -> WeakProgram {
        let form = match &self.form {
            Form::Component(component) => WeakForm::Component(Arc::downgrade(component)),
            Form::Source(source, runtime) => {
                WeakForm::Source(Arc::downgrade(source), runtime.clone())
            }
        };
        let manifest = self.manifest.clone();
        WeakProgram { form, manifest }
    }

    /// What is in it.
    ///
    /// # Errors
    /// Those of [`Opened::new`].
    pub(crate) async fn opened(&self, limits: &Limits) -> Result<Opened, Error> {
        let opened = match &self.form {
            Form::Component(component) => component.opened(limits).await?,
            Form::Source(source, runtime) => Opened {
                code: Code::Source {
                    source: source.clone(),
                    runtime: runtime.clone(),
                },
                manifest: None,
            },
        };
        Ok(Opened {
            manifest: self.manifest.clone().or(opened.manifest),
            ..opened
        })
    }

    /// The program that a file or a folder of this one is. None: it has no sources, or none of that path that can run.
    ///
    /// # Errors
    /// As [`Program::opened`].
    pub(crate) async fn part(&self, path: &str, limits: &Limits) -> Result<Option<Self>, Error> {
        let Code::Source { source, runtime } = self.opened(limits).await?.code else {
            return Ok(None);
        };
        let Some(part) = source.part(path) else {
            return Ok(None);
        };
        // The runtime that a program was built with runs its own language alone.
        let runtime = match part.language() == source.language() {
            true => runtime,
            false => RuntimeChoice::Any,
        };
        Ok(Some(Self {
            form: Form::Source(Arc::new(part), runtime),
            manifest: None,
        }))
    }
}

/// A program that others hold, or held.
pub(crate) struct WeakProgram {
    form: WeakForm,
    manifest: Option<Arc<Manifest>>,
}

enum WeakForm {
    Component(Weak<LazyComponent>),
    Source(Weak<LazySource>, RuntimeChoice),
}

impl WeakProgram {
    /// The program, where somebody holds it still.
    pub(crate) fn upgrade(&self) -> Option<Program> {
        let form = match &self.form {
            WeakForm::Component(component) => Form::Component(component.upgrade()?),
            WeakForm::Source(source, runtime) => Form::Source(source.upgrade()?, runtime.clone()),
        };
        let manifest = self.manifest.clone();
        Some(Program { form, manifest })
    }

    /// True while somebody holds it.
    pub(crate) fn is_held(&self) -> bool {
        let n_holders = match &self.form {
            WeakForm::Component(component) => component.strong_count(),
            WeakForm::Source(source, _) => source.strong_count(),
        };
        n_holders > 0
    }
}

/// A program that a process holds.
#[derive(Clone)]
pub(crate) struct ChargedProgram {
    pub(crate) program: Program,
    /// For its bytes.
    _charge: Arc<Charge>,
}

impl From<Component> for Program {
    fn from(component: Component) -> Self {
        Self {
            form: Form::Component(Arc::new(LazyComponent::new(component))),
            manifest: None,
        }
    }
}

impl From<SourceBundle> for Program {
    fn from(bundle: SourceBundle) -> Self {
        Self {
            form: Form::Source(Arc::new(LazySource::new(bundle)), RuntimeChoice::Any),
            manifest: None,
        }
    }
}
