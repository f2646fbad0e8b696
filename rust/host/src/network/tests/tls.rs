//! Servers that are asked by TLS.

use std::path::PathBuf;
use std::sync::Arc;

use pie_core::ErrorCode;
use pie_core::settings::Word;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::runtime::Handle;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

use super::server::ok;
use super::{Scripted, fetch};
use crate::Limits;
use crate::budget::Budget;
use crate::network::allowed::Allowed;
use crate::network::config::NetworkConfig;
use crate::network::connection::Network;
use crate::network::held::HeldNetwork;

fn file(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("src/network/tests")
        .join(name)
}

/// A server with the certificate of `secure.example`; its port.
async fn secure() -> u16 {
    let certificate = CertificateDer::from_pem_file(file("secure.example.pem")).unwrap();
    let key = PrivateKeyDer::from_pem_file(file("secure.example.key")).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let Ok(mut stream) = acceptor.accept(stream).await else {
                continue;
            };
            drop(stream.read(&mut [0; 4096]).await);
            drop(stream.write_all(ok("by TLS").as_bytes()).await);
            drop(stream.shutdown().await);
        }
    });
    port
}

fn process(ca_file: &str) -> HeldNetwork {
    let config = NetworkConfig {
        allow: ["*", "127.0.0.1"]
            .iter()
            .map(|text| Allowed::parse(text).unwrap())
            .collect(),
        ca_file: ca_file.to_owned(),
        ..NetworkConfig::default()
    };
    let network = Network::with_resolver(config, Scripted::new(&[&["127.0.0.1"]])).unwrap();
    let account = Budget::new(1 << 30, None).account("ada");
    HeldNetwork::new(
        Arc::new(network),
        Handle::current(),
        &Limits::default(),
        account,
    )
}

#[tokio::test]
async fn a_server_is_trusted_by_its_certificate() {
    let port = secure().await;
    let ours = file("ca.pem").to_str().unwrap().to_owned();
    for (ca_file, url, is_trusted) in [
        (&*ours, format!("https://secure.example:{port}/"), true),
        (&*ours, format!("https://SECURE.example.:{port}/"), true),
        (&*ours, format!("https://other.example:{port}/"), false),
        (&*ours, format!("https://127.0.0.1:{port}/"), false),
        ("", format!("https://secure.example:{port}/"), false),
    ] {
        let fetched = fetch(&process(ca_file), &url).await;
        match fetched {
            Ok((_, body)) => assert!(is_trusted && body == b"by TLS", "{url}"),
            Err(error) => {
                assert!(!is_trusted, "{url}: {error}");
                assert_eq!(error.code, ErrorCode::NetUnreachable);
                assert!(error.message.contains("TLS failed"), "{error}");
            }
        }
    }
}

#[tokio::test]
async fn what_speaks_no_tls_is_an_error() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!(
        "https://secure.example:{}/",
        listener.local_addr().unwrap().port()
    );
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        drop(stream.write_all(ok("plain").as_bytes()).await);
        drop(stream.shutdown().await);
    });
    let error = fetch(&process(""), &url).await.unwrap_err();
    assert_eq!(error.code, ErrorCode::NetUnreachable, "{error}");
}

#[test]
fn a_file_without_certificates_is_refused() {
    for name in ["no such file", "secure.example.key"] {
        let config = NetworkConfig {
            ca_file: file(name).to_str().unwrap().to_owned(),
            ..NetworkConfig::default()
        };
        let error = Network::new(config).unwrap_err();
        assert_eq!(error.code, ErrorCode::InvalidConfig);
        assert!(error.message.contains("runtime.net_ca_file"), "{error}");
    }
}
