//! Built programs and manifests.

use std::collections::BTreeMap;

use pie_host::{Error, Language, Manifest, Packed, parse_digest, runtime_name};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::boundary::{detached, raise};

/// The language of a program that was compiled.
const COMPILED: &str = "component";

/// The bytes of a built program; see the stub.
#[pyfunction]
#[pyo3(signature = (language, files, entry, manifest = None, runtime_digest = None, standalone = None))]
pub(crate) fn pack_program<'py>(
    py: Python<'py>,
    language: &str,
    files: BTreeMap<String, Vec<u8>>,
    entry: String,
    manifest: Option<String>,
    runtime_digest: Option<&str>,
    standalone: Option<Vec<u8>>,
) -> PyResult<Bound<'py, PyBytes>> {
    let bytes = detached(py, || {
        if let Some(text) = &manifest {
            Manifest::parse(text, "Pie.toml")?;
        }
        let language = match language {
            COMPILED => None,
            name => Some(Language::from_name(name)?),
        };
        let packed = Packed {
            language,
            entry,
            files,
            runtime: runtime_digest.map(parse_digest).transpose()?,
            manifest,
            component: standalone,
        };
        packed.to_bytes()
    })?;
    Ok(PyBytes::new(py, &bytes))
}

/// The parts of a built program; see the stub.
#[pyfunction]
#[pyo3(signature = (wasm, max_files_bytes = 64 << 20))]
pub(crate) fn read_packed<'py>(
    py: Python<'py>,
    wasm: Vec<u8>,
    max_files_bytes: usize,
) -> PyResult<Option<Bound<'py, PyDict>>> {
    let Some(packed) = detached(py, || Packed::read(&wasm, max_files_bytes))? else {
        return Ok(None);
    };
    let files = PyDict::new(py);
    for (path, content) in &packed.files {
        files.set_item(path, PyBytes::new(py, content))?;
    }
    let parts = PyDict::new(py);
    parts.set_item("language", packed.language.map_or(COMPILED, Language::name))?;
    parts.set_item("entry", packed.entry)?;
    parts.set_item("files", files)?;
    parts.set_item("runtime", packed.runtime.as_ref().map(runtime_name))?;
    parts.set_item("manifest", packed.manifest)?;
    parts.set_item(
        "standalone",
        packed.language.is_some() && packed.component.is_some(),
    )?;
    Ok(Some(parts))
}

/// A manifest as JSON; see the stub.
#[pyfunction]
#[pyo3(signature = (text, file = "Pie.toml"))]
pub(crate) fn read_manifest(py: Python<'_>, text: &str, file: &str) -> PyResult<String> {
    detached(py, || {
        let manifest = Manifest::parse(text, file)?;
        serde_json::to_string(&manifest).map_err(Error::internal)
    })
}

/// A manifest from Python.
///
/// # Errors
/// `invalid-manifest`.
pub(crate) fn manifest(py: Python<'_>, text: Option<String>) -> PyResult<Option<Manifest>> {
    text.map(|text| Manifest::parse(&text, "Pie.toml"))
        .transpose()
        .map_err(|error| raise(py, error))
}
