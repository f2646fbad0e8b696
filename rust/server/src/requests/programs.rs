//! Requests about programs: uploads, and what is installed.

use pie_host::{Component, HttpInstance, HttpService, Manifest, Packed, Program};

use super::*;
use crate::names;
use crate::protocol::incoming::{HttpAsked, Install, Uninstall, Upload};
use crate::registry;
use crate::uploads::Part;

impl Session {
    /// Takes a part of an upload; the last one is answered.
    ///
    /// # Errors
    /// One that ends the connection.
    pub(super) async fn upload(
        &mut self,
        mut request: Request,
        payload: &[u8],
    ) -> Result<(), Error> {
        let id = request.id;
        let last = request.says("last");
        let part = request
            .fields::<Upload>()
            .and_then(|header| lock(&self.uploads).part(id, header, payload));
        match part {
            Ok(Part::More) => {}
            Ok(Part::Whole {
                digest,
                bytes,
                name,
                copy,
            }) => {
                let uploads = self.uploads.clone();
                let note = self.note("upload", digest.clone());
                let arrived = async move {
                    let n_bytes = bytes.len();
                    let component = blocking(move || Ok(Component::new(bytes))).await?;
                    drop(copy);
                    let actual = registry::digest_of(&component);
                    let mut uploads = lock(&uploads);
                    if actual != digest {
                        uploads.free(n_bytes);
                        let message = format!(
                            "what arrived has the digest {actual} and not {digest}; send it again"
                        );
                        return Err(Error::new(ErrorCode::UploadDamaged, message));
                    }
                    uploads.keep(digest.clone(), component, name);
                    Ok(json!({ "digest": digest, "bytes": n_bytes }))
                };
                self.later(id, async move { note.of(arrived.await) });
            }
            Err(error) => {
                let refused = lock(&self.uploads).refuse(id, last);
                self.answer(id, self.note("upload", "").of(Err(error)))
                    .await;
                return refused;
            }
        }
        Ok(())
    }

    /// Installs an upload, once it was looked at: what cannot run is refused here and not at its first launch.
    pub(super) async fn install(&mut self, mut request: Request) {
        let id = request.id;
        match self.checked_install(&mut request) {
            Ok((mut install, program, http)) => {
                let note = self.note("install", format!("{}@{}", install.name, install.version));
                let (shared, uploads) = (self.shared.clone(), self.uploads.clone());
                let (installing, address) = (self.address.install(), self.counted_address);
                self.later(id, async move {
                    let (name, version, digest) =
                        (install.name.clone(), install.version.clone(), install.digest.clone());
                    tracing::info!(user = install.user, name, version, digest, "installing");
                    let installed = async {
                        let _until_it_is_done = installing?;
                        look_at(&shared, program.clone(), &install.user, address).await?;
                        if let Some(asked) = http {
                            let most = shared.host.limits().source_bytes;
                            install = blocking(move || for_http(install, asked, most)).await?;
                        }
                        let manifest = install.manifest.as_deref();
                        install.is_public = is_public(&shared, program, manifest).await?;
                        let turn = shared.registry.turn().await;
                        blocking(move || shared.registry.install(turn, install))
                        .await
                    };
                    let installed = installed.await.map(|replaced| {
                        lock(&uploads).forget(&digest);
                        json!({ "name": name, "version": version, "digest": digest, "replaced": replaced })
                    });
                    note.of(installed)
                });
            }
            Err(error) => self.answer(id, Err(error)).await,
        }
    }

    fn checked_install(
        &self,
        request: &mut Request,
    ) -> Result<(registry::Install, Program, Option<HttpAsked>), Error> {
        let Install {
            name,
            version,
            digest,
            manifest,
            http,
        } = request.fields()?;
        names::check_program(&name)?;
        names::check_version(&version)?;
        let arrived = lock(&self.uploads).get(&digest).ok_or_else(|| {
            let message =
                "nothing of that digest was uploaded over this connection; upload it first";
            Error::new(ErrorCode::UnknownProgram, message)
        })?;
        let install = registry::Install {
            user: self.user.clone(),
            name,
            version,
            digest,
            component: arrived.component,
            manifest,
            // It is looked at once it is known that the program can run.
            is_public: false,
        };
        Ok((install, arrived.program, http))
    }

    /// Uninstalls a program.
    pub(super) async fn uninstall(&mut self, mut request: Request) {
        let id = request.id;
        let checked = request.fields::<Uninstall>().and_then(|fields| {
            let user = permits::user(&self.who, fields.user.as_deref())?.to_owned();
            Ok((fields, user))
        });
        match checked {
            Ok((Uninstall { name, version, .. }, user)) => {
                let note = self.note("uninstall", format!("{user}: {name}@{version}"));
                let shared = self.shared.clone();
                self.later(id, async move {
                    let turn = shared.registry.turn().await;
                    let (serving, owner) = (shared.clone(), user.clone());
                    let label = format!("{name}@{version}");
                    let uninstall = move || shared.registry.uninstall(turn, &user, &name, &version);
                    let uninstalled = blocking(uninstall).await;
                    if uninstalled.is_ok() {
                        serving.http.instances.retire(&owner, &label).await;
                    }
                    note.of(uninstalled.map(|()| json!({})))
                });
            }
            Err(error) => {
                let answer = self.note("uninstall", "").of(Err(error));
                self.answer(id, answer).await;
            }
        }
    }
}

/// A program that shall serve HTTP. Its manifest is the one that was given, else the one that it carries, else a new
/// one; files of a built program have at most `most` bytes. Slow: reads the program.
///
/// # Errors
/// `invalid-manifest`, and `invalid-argument` where its manifest says otherwise.
fn for_http(
    install: registry::Install,
    asked: HttpAsked,
    most: usize,
) -> Result<registry::Install, Error> {
    let registry::Install {
        name,
        version,
        component,
        manifest,
        ..
    } = &install;
    let carried = match manifest {
        Some(given) => Some(given.clone()),
        None => Packed::read(component.bytes(), most)?.and_then(|packed| packed.manifest),
    };
    let text = carried
        .unwrap_or_else(|| format!("[package]\nname = \"{name}\"\nversion = \"{version}\"\n"));
    let service = HttpService {
        instance: match asked.shared {
            true => HttpInstance::Shared,
            false => HttpInstance::Request,
        },
        public: asked.public,
    };
    let manifest = Some(Manifest::with_http(&text, service)?);
    Ok(registry::Install {
        manifest,
        ..install
    })
}

/// Whether anybody may ask a program by HTTP: its manifest says so, which takes the place of the one that it carries.
async fn is_public(
    shared: &ServerState,
    program: Program,
    manifest: Option<&str>,
) -> Result<bool, Error> {
    let program = match manifest {
        Some(text) => program.with_manifest(Manifest::parse(text, "Pie.toml")?),
        None => program,
    };
    let service = program.http_service(shared.host.limits()).await?;
    Ok(service.is_some_and(|service| service.public))
}

/// Looks whether a program can run. Where every place of a process is taken, one is freed for that as for a launch: who
/// finds the server full could install nothing otherwise.
async fn look_at(
    shared: &ServerState,
    program: Program,
    user: &str,
    address: Option<Address>,
) -> Result<(), Error> {
    match shared.host.checked(program.clone(), user).await {
        Err(error) if error.code == ErrorCode::LimitProcesses => {
            let _place = shared.processes.place(user, address).await?;
            shared.host.checked(program, user).await
        }
        looked => looked,
    }
}
