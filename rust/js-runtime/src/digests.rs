//! What `crypto.subtle.digest` computes.

use rquickjs::{Ctx, Result, TypedArray};
use sha1::Sha1;
use sha2::{Digest, Sha256, Sha384, Sha512};

use crate::bridge::{byte_array, bytes_of};

/// The digest of bytes by `SHA-1`, `SHA-256`, `SHA-384` or `SHA-512`; none for another algorithm.
pub(crate) fn digest<'js>(
    ctx: Ctx<'js>,
    algorithm: String,
    bytes: TypedArray<'js, u8>,
) -> Result<Option<TypedArray<'js, u8>>> {
    let bytes = bytes_of(&ctx, &bytes)?;
    let digest = match algorithm.as_str() {
        "SHA-1" => Sha1::digest(&bytes).to_vec(),
        "SHA-256" => Sha256::digest(&bytes).to_vec(),
        "SHA-384" => Sha384::digest(&bytes).to_vec(),
        "SHA-512" => Sha512::digest(&bytes).to_vec(),
        _ => return Ok(None),
    };
    byte_array(&ctx, digest).map(Some)
}
