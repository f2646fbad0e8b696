//! By which certificates servers are trusted.

use std::path::Path;
use std::sync::Arc;

use pie_core::ErrorCode;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use crate::Error;

/// How TLS is spoken: by the certificates of a file, or by Mozilla's where it is empty.
///
/// # Errors
/// `invalid-config`.
pub(crate) fn client(ca_file: &str) -> Result<Arc<ClientConfig>, Error> {
    let mut roots = RootCertStore::empty();
    if ca_file.is_empty() {
        roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    } else {
        read(&mut roots, Path::new(ca_file)).map_err(|why| {
            invalid(&format!(
                "runtime.net_ca_file = {ca_file:?} holds no certificates: {why}"
            ))
        })?;
    }
    let mut config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| invalid(&error.to_string()))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

fn read(roots: &mut RootCertStore, file: &Path) -> Result<(), String> {
    let certificates = CertificateDer::pem_file_iter(file).map_err(|error| error.to_string())?;
    for certificate in certificates {
        let certificate = certificate.map_err(|error| error.to_string())?;
        roots.add(certificate).map_err(|error| error.to_string())?;
    }
    if roots.is_empty() {
        return Err("there is none in it".to_owned());
    }
    Ok(())
}

fn invalid(why: &str) -> Error {
    let message = format!("{why}; give a file of certificates in PEM, or none");
    Error::new(ErrorCode::InvalidConfig, message)
}
