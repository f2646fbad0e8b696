//! The keys by which clients come in: what `pie key` calls.

use std::path::PathBuf;

use pie_host::{Error, ErrorCode};
use pie_server::{NewKey, Role};
use pyo3::prelude::*;
use serde::Serialize;

use crate::boundary::{detached, raise};

/// See the stub.
#[pyfunction]
#[pyo3(signature = (data_dir, name, user, *, scope="user", expires_s=None, public_key=None))]
pub(crate) fn add_key(
    py: Python<'_>,
    data_dir: PathBuf,
    name: String,
    user: String,
    scope: &str,
    expires_s: Option<u64>,
    public_key: Option<String>,
) -> PyResult<(String, Option<String>)> {
    let scope = Role::named(scope).ok_or_else(|| {
        let message = format!("{scope:?} is not a scope; give read, user or operator");
        raise(py, Error::new(ErrorCode::InvalidArgument, message))
    })?;
    let new = NewKey {
        name,
        user,
        scope,
        expires_s,
        public_key,
    };
    detached(py, || {
        let (key, text) = pie_server::add_key(&data_dir, new)?;
        Ok((json(&key)?, text))
    })
}

/// See the stub.
#[pyfunction]
pub(crate) fn list_keys(py: Python<'_>, data_dir: PathBuf) -> PyResult<String> {
    detached(py, || json(&pie_server::list_keys(&data_dir)?))
}

/// See the stub.
#[pyfunction]
pub(crate) fn revoke_key(py: Python<'_>, data_dir: PathBuf, key_id: &str) -> PyResult<String> {
    detached(py, || json(&pie_server::revoke_key(&data_dir, key_id)?))
}

fn json(value: &impl Serialize) -> Result<String, Error> {
    serde_json::to_string(value).map_err(Error::internal)
}
