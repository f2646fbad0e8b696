//! What is in a component that a user supplies: code that runs by itself, or sources for a language runtime.

use std::sync::Arc;

use pie_core::ErrorCode;
use tokio::sync::OnceCell;

use super::artefact;
use super::component::Component;
use super::holders::Holders;
use super::manifest::Manifest;
use super::packed::{Packed, runtime_name};
use super::source::{LazySource, SourceBundle};
use crate::Error;
use crate::budget::{Budget, Charge};
use crate::limits::Limits;

/// Code that can be made ready.
#[derive(Clone, Debug)]
pub(crate) enum Code {
    /// A component that runs by itself.
    Component(Component),
    /// Sources, and the runtime that runs them.
    Source {
        source: Arc<LazySource>,
        runtime: RuntimeChoice,
    },
}

/// Which runtime runs the sources of a program.
#[derive(Clone, Debug)]
pub(crate) enum RuntimeChoice {
    /// The one that the engine has.
    Any,
    /// The one of a digest.
    Named([u8; 32]),
    /// The one that the program brings.
    Carried(Component),
}

/// A component, looked into.
#[derive(Clone, Debug)]
pub(crate) struct Opened {
    pub(crate) code: Code,
    /// The manifest that it carries.
    pub(crate) manifest: Option<Arc<Manifest>>,
}

/// A component, looked into when it is first launched.
#[derive(Debug)]
pub(crate) struct LazyComponent {
    component: Component,
    opened: OnceCell<Result<Opened, Error>>,
    holders: Holders,
}

impl LazyComponent {
    pub(crate) fn new(component: Component) -> Self {
        Self {
            component,
            opened: OnceCell::new(),
            holders: Holders::default(),
        }
    }

    /// The digest of its bytes.
    pub(crate) const fn digest(&self) -> [u8; 32] {
        self.component.digest
    }

    /// Charges `user` for its bytes.
    ///
    /// # Errors
    /// `limit-engine-memory`.
    pub(crate) fn hold(&self, budget: &Arc<Budget>, user: &str) -> Result<Arc<Charge>, Error> {
        self.holders.hold(budget, user, self.component.n_bytes())
    }

    /// What is in it; see [`Opened::new`]. Looks off the threads that run programs.
    pub(crate) async fn opened(&self, limits: &Limits) -> Result<Opened, Error> {
        let open = || async {
            let (component, limits) = (self.component.clone(), limits.clone());
            let opened =
                tokio::task::spawn_blocking(move || Opened::new(&component, &limits)).await;
            opened.unwrap_or_else(|error| Err(Error::internal(error)))
        };
        self.opened.get_or_init(open).await.clone()
    }
}

impl Opened {
    /// What tells the program from others, whatever its version: the name of its manifest; of sources without one the
    /// path of their entry, and of a component its digest.
    pub(crate) fn name(&self) -> String {
        match (&self.manifest, &self.code) {
            (Some(manifest), _) => format!("name/{}", manifest.package.name),
            (None, Code::Source { source, .. }) => format!("entry/{}", source.entry()),
            (None, Code::Component(component)) => {
                format!("digest/{}", runtime_name(&component.digest))
            }
        }
    }

    /// Looks into a component.
    ///
    /// # Errors
    /// Those of [`Packed::read`] and [`Manifest::parse`]; `invalid-program` for what is not a component.
    pub(crate) fn new(component: &Component, limits: &Limits) -> Result<Self, Error> {
        artefact::check_bytes(&component.bytes, limits)?;
        let Some(packed) = Packed::read(&component.bytes, limits.source_bytes)? else {
            return Ok(Self {
                code: Code::Component(component.clone()),
                manifest: None,
            });
        };
        let manifest = packed
            .manifest
            .as_deref()
            .map(|text| Manifest::parse(text, "Pie.toml"))
            .transpose()?;
        let carried = packed.component.map(Component::new);
        if let (Some(component), Some(digest)) = (&carried, packed.runtime)
            && component.digest != digest
        {
            return Err(Error::new(
                ErrorCode::InvalidProgram,
                format!(
                    "the built program names the runtime {}, but carries {}; build it again",
                    runtime_name(&digest),
                    runtime_name(&component.digest)
                ),
            ));
        }
        let code = match (packed.language, carried) {
            (Some(language), carried) => Code::Source {
                source: Arc::new(LazySource::new(SourceBundle {
                    language,
                    files: Arc::new(packed.files),
                    entry: packed.entry,
                })),
                runtime: match (carried, packed.runtime) {
                    (Some(runtime), _) => RuntimeChoice::Carried(runtime),
                    (None, Some(digest)) => RuntimeChoice::Named(digest),
                    (None, None) => RuntimeChoice::Any,
                },
            },
            (None, Some(program)) => Code::Component(program),
            (None, None) => {
                return Err(Error::internal("a compiled program was read without code"));
            }
        };
        Ok(Self {
            code,
            manifest: manifest.map(Arc::new),
        })
    }
}
