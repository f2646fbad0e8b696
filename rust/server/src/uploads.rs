//! What one connection has uploaded: parts that arrive, and wholes that wait to be installed or launched.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use pie_host::{Charge, Component, Error, ErrorCode, Program, Purpose};
use tokio::time::Instant;

use crate::ServerConfig;
use crate::address_share::AddressShare;
use crate::client_places::User;
use crate::names;
use crate::protocol::incoming::Upload;
use crate::protocol::{OPEN_REQUESTS, UPLOAD_PART_BYTES, violation};

/// Uploads of one connection, those on their way among them: what each costs beside its bytes is bounded so.
const MAX_UPLOADS: usize = 256;

/// What has arrived of an upload gets room by so many bytes, so that many small parts do not move it many times.
const STEP_BYTES: usize = UPLOAD_PART_BYTES;

/// The uploads of one connection.
pub(crate) struct Uploads {
    user: Arc<User>,
    address: Arc<AddressShare>,
    /// Bytes that this connection, and that all of its user, may hold.
    most: usize,
    most_of_user: usize,
    /// How long nothing may come of an upload.
    time: Duration,
    /// By the id of their request.
    arriving: HashMap<u64, Arriving>,
    /// The ids of requests that were answered with an error before their last part: what still comes of them is
    /// skipped.
    refused: HashSet<u64>,
    /// By digest.
    arrived: HashMap<String, Arrived>,
    /// The room of both.
    held_bytes: usize,
    charge: Charge,
}

/// An upload whose last part has not come.
struct Arriving {
    digest: String,
    /// What its client calls it.
    name: Option<String>,
    total_bytes: u64,
    bytes: Vec<u8>,
    /// Bytes that it has room for; they are charged.
    room_bytes: usize,
    /// When its last part came.
    touched: Instant,
}

/// What was uploaded whole.
#[derive(Clone, Debug)]
pub(crate) struct Arrived {
    pub(crate) component: Component,
    /// The same, as it is launched.
    pub(crate) program: Program,
    /// What its client calls it, as the name of a file.
    pub(crate) name: Option<String>,
}

/// What is to be done after a part.
pub(crate) enum Part {
    /// Nothing until the next one.
    More,
    /// All has come: it is to be verified, off the threads of the connections.
    Whole {
        digest: String,
        bytes: Vec<u8>,
        name: Option<String>,
        /// Pays for the copy that is made of them meanwhile.
        copy: Charge,
    },
}

impl Uploads {
    pub(crate) fn new(config: &ServerConfig, user: Arc<User>, address: Arc<AddressShare>) -> Self {
        Self {
            most: config.max_upload_bytes,
            most_of_user: config.max_user_upload_bytes,
            time: config.upload_timeout,
            charge: user.account.empty(Purpose::Upload),
            user,
            address,
            arriving: HashMap::new(),
            refused: HashSet::new(),
            arrived: HashMap::new(),
            held_bytes: 0,
        }
    }

    /// True when the request is known: what comes is a further part.
    pub(crate) fn is_arriving(&self, id: u64) -> bool {
        self.arriving.contains_key(&id)
    }

    /// True when the request was refused: what comes is skipped, and after the `last` part the id is free again.
    pub(crate) fn skips(&mut self, id: u64, last: bool) -> bool {
        if last {
            self.refused.remove(&id)
        } else {
            self.refused.contains(&id)
        }
    }

    /// Gives an upload up, whose request is answered with an error; unless that was the `last` part, the others will be
    /// skipped.
    ///
    /// # Errors
    /// `protocol-error`, which ends the connection, when the parts of too many are to be skipped.
    pub(crate) fn refuse(&mut self, id: u64, last: bool) -> Result<(), Error> {
        if let Some(arriving) = self.arriving.remove(&id) {
            self.free(arriving.room_bytes);
        }
        if last {
            return Ok(());
        }
        if self.refused.len() >= OPEN_REQUESTS {
            return Err(violation(format!(
                "{OPEN_REQUESTS} uploads were refused and not ended; send the last part of each, as in {{\"last\": true}}"
            )));
        }
        self.refused.insert(id);
        Ok(())
    }

    /// When the next upload is given up, unless something comes of it.
    pub(crate) fn due(&self) -> Option<Instant> {
        let touched = self.arriving.values().map(|arriving| arriving.touched);
        touched.min().map(|touched| touched + self.time)
    }

    /// The uploads of which nothing came for too long, each with what its client is told; [`Uploads::refuse`] is to
    /// follow.
    pub(crate) fn stopped(&self, now: Instant) -> Vec<(u64, Error)> {
        let stopped = self
            .arriving
            .iter()
            .filter(|(_, arriving)| arriving.touched + self.time <= now);
        let told = stopped.map(|(id, arriving)| {
            let message = format!(
                "nothing came of an upload for server.upload_timeout_s = {} s, {} of {} bytes have arrived; send it again without stopping, or raise the limit",
                self.time.as_secs_f64(),
                arriving.bytes.len(),
                arriving.total_bytes
            );
            (*id, Error::new(ErrorCode::UploadDamaged, message))
        });
        told.collect()
    }

    /// Takes a part.
    ///
    /// # Errors
    /// `limit-upload`, `limit-engine-memory`, `upload-damaged`, `protocol-error`, `invalid-argument`, `invalid-name`;
    /// [`Uploads::refuse`] is to follow.
    pub(crate) fn part(&mut self, id: u64, header: Upload, payload: &[u8]) -> Result<Part, Error> {
        let Upload {
            digest,
            bytes: total_bytes,
            offset,
            last,
            name,
        } = header;
        if let Some(name) = &name {
            names::check_file(name)?;
        }
        let is_whole = self.take(id, &digest, total_bytes, offset, payload, last)?;
        if let (Some(name), Some(arriving)) = (name, self.arriving.get_mut(&id)) {
            arriving.name = Some(name);
        }
        if !is_whole {
            return Ok(Part::More);
        }
        let copy = self.user.account.charge(Purpose::Upload, total_bytes)?;
        let (bytes, name) = self
            .arriving
            .remove(&id)
            .map(|arriving| (arriving.bytes, arriving.name))
            .unwrap_or_default();
        Ok(Part::Whole {
            digest,
            bytes,
            name,
            copy,
        })
    }

    /// Adds the payload; true when it was the last part and the length is right.
    fn take(
        &mut self,
        id: u64,
        digest: &str,
        total_bytes: u64,
        offset: u64,
        payload: &[u8],
        last: bool,
    ) -> Result<bool, Error> {
        if payload.len() > UPLOAD_PART_BYTES {
            return Err(violation(format!(
                "a part of an upload has {} bytes; at most {UPLOAD_PART_BYTES} go into one",
                payload.len()
            )));
        }
        if !self.arriving.contains_key(&id) {
            self.begin(id, digest, total_bytes)?;
        }
        let arrived = self
            .arriving
            .get(&id)
            .map_or(0, |arriving| arriving.bytes.len() as u64);
        let same = self.arriving.get(&id).is_some_and(|arriving| {
            arriving.digest == digest && arriving.total_bytes == total_bytes
        });
        let after = arrived + payload.len() as u64;
        if !same || offset != arrived || after > total_bytes || (last && after != total_bytes) {
            let message = format!(
                "a part at {offset} of {total_bytes} bytes does not continue the upload, of which {arrived} bytes have arrived; send it again"
            );
            return Err(Error::new(ErrorCode::UploadDamaged, message));
        }
        self.make_room(id, payload.len())?;
        if let Some(arriving) = self.arriving.get_mut(&id) {
            arriving.bytes.extend_from_slice(payload);
            arriving.touched = Instant::now();
        }
        Ok(last)
    }

    fn begin(&mut self, id: u64, digest: &str, total_bytes: u64) -> Result<(), Error> {
        names::check_digest(digest)?;
        let most = self.most;
        if total_bytes > most as u64 {
            let message = format!(
                "an upload of {total_bytes} bytes is larger than server.max_upload_bytes = {most}; make the program smaller, or raise the limit"
            );
            return Err(Error::new(ErrorCode::LimitUpload, message));
        }
        if self.arriving.len() + self.arrived.len() >= MAX_UPLOADS {
            let message = format!(
                "this connection holds {MAX_UPLOADS} uploads, the most that one may; install what has arrived, or connect again"
            );
            return Err(Error::new(ErrorCode::LimitUpload, message));
        }
        let arriving = Arriving {
            digest: digest.to_owned(),
            name: None,
            total_bytes,
            bytes: Vec::new(),
            room_bytes: 0,
            touched: Instant::now(),
        };
        self.arriving.insert(id, arriving);
        Ok(())
    }

    /// Makes room for `n_bytes` more of an upload, after charging them: a step at a time, and never beyond its end.
    /// Growing by doubling would hold twice as much.
    fn make_room(&mut self, id: u64, n_bytes: usize) -> Result<(), Error> {
        let Some(arriving) = self.arriving.get(&id) else {
            return Ok(());
        };
        let needed = arriving.bytes.len() + n_bytes;
        let before = arriving.room_bytes;
        if needed <= before {
            return Ok(());
        }
        let total_bytes = usize::try_from(arriving.total_bytes).unwrap_or(usize::MAX);
        let room = needed.next_multiple_of(STEP_BYTES).min(total_bytes);
        self.reserve(room - before)?;
        if let Some(arriving) = self.arriving.get_mut(&id) {
            arriving.room_bytes = room;
            arriving.bytes.reserve_exact(room - arriving.bytes.len());
        }
        Ok(())
    }

    fn reserve(&mut self, n_bytes: usize) -> Result<(), Error> {
        let most = self.most;
        if self.held_bytes + n_bytes > most {
            let message = format!(
                "the uploads of this connection would hold more than server.max_upload_bytes = {most}; install what has arrived, or connect again"
            );
            return Err(Error::new(ErrorCode::LimitUpload, message));
        }
        let most_of_user = self.most_of_user;
        let held = &self.user.upload_bytes;
        let reserved = held.try_update(Ordering::Relaxed, Ordering::Relaxed, |held| {
            held.checked_add(n_bytes)
                .filter(|held| *held <= most_of_user)
        });
        if reserved.is_err() {
            let message = format!(
                "the uploads of your connections would hold more than server.max_user_upload_bytes = {most_of_user}; install what has arrived, close a connection, or raise the limit"
            );
            return Err(Error::new(ErrorCode::LimitUpload, message));
        }
        let of_address = self.address.hold_upload(n_bytes);
        let charged = of_address.and_then(|()| {
            let charged = self.charge.grow(n_bytes as u64);
            charged.inspect_err(|_| self.address.free_upload(n_bytes))
        });
        if let Err(error) = charged {
            held.fetch_sub(n_bytes, Ordering::Relaxed);
            return Err(error);
        }
        self.held_bytes += n_bytes;
        Ok(())
    }

    /// Keeps a whole that was verified, with the name that it came with last.
    pub(crate) fn keep(&mut self, digest: String, component: Component, name: Option<String>) {
        let name = name.or_else(|| self.get(&digest)?.name);
        let n_bytes = component.n_bytes();
        let program = component.clone().into();
        let arrived = Arrived {
            component,
            program,
            name,
        };
        if self.arrived.insert(digest, arrived).is_some() {
            self.free(n_bytes);
        }
    }

    /// Gives up a whole of so many bytes that was not what its digest says.
    pub(crate) fn free(&mut self, n_bytes: usize) {
        self.held_bytes -= n_bytes;
        self.charge.shrink(n_bytes as u64);
        self.user.upload_bytes.fetch_sub(n_bytes, Ordering::Relaxed);
        self.address.free_upload(n_bytes);
    }

    /// What was uploaded under a digest.
    pub(crate) fn get(&self, digest: &str) -> Option<Arrived> {
        self.arrived.get(digest).cloned()
    }

    /// Forgets what was uploaded under a digest.
    pub(crate) fn forget(&mut self, digest: &str) {
        if let Some(arrived) = self.arrived.remove(digest) {
            self.free(arrived.component.n_bytes());
        }
    }
}

impl Drop for Uploads {
    fn drop(&mut self) {
        self.free(self.held_bytes);
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;
    use std::path::PathBuf;

    use pie_host::Budget;

    use super::*;
    use crate::client_places::{ClientPlaces, Visitor};

    fn part(total_bytes: u64, offset: u64, last: bool) -> Upload {
        Upload {
            digest: format!("sha256:{}", "0".repeat(64)),
            bytes: total_bytes,
            offset,
            last,
            name: None,
        }
    }

    #[test]
    fn an_upload_holds_room_for_what_arrived_and_moves_seldom() {
        const TOTAL: u64 = 5 * STEP_BYTES as u64 / 2;
        let budget = Budget::new(64 << 20, None);
        let config = ServerConfig::new(PathBuf::new());
        let places = Arc::new(ClientPlaces::new(&config, budget.clone()));
        let (place, _lost) = places
            .enter("a", IpAddr::from([1, 2, 3, 4]).into(), Visitor::default())
            .unwrap();
        let mut uploads =
            Uploads::new(&config, place.user().clone(), place.address_share().clone());
        let step = STEP_BYTES as u64;
        // What it says that it will be is not held.
        assert!(matches!(
            uploads.part(1, part(TOTAL, 0, false), b"x"),
            Ok(Part::More)
        ));
        assert_eq!(budget.held_bytes(), step);
        let (mut n_moves, mut offset) = (0, 1);
        while offset < TOTAL - 1 {
            let at = uploads.arriving[&1].bytes.as_ptr();
            let n_bytes = usize::try_from(TOTAL - 1 - offset).unwrap().min(1000);
            let payload = vec![b'x'; n_bytes];
            uploads
                .part(1, part(TOTAL, offset, false), &payload)
                .unwrap();
            offset += n_bytes as u64;
            n_moves += usize::from(uploads.arriving[&1].bytes.as_ptr() != at);
        }
        assert!(n_moves <= 2, "{n_moves}");
        assert_eq!(budget.held_bytes(), TOTAL);
        // Another one is no larger than it is.
        uploads.part(2, part(3, 0, false), b"x").unwrap();
        assert_eq!(budget.held_bytes(), TOTAL + 3);
        uploads.refuse(2, false).unwrap();
        let whole = uploads.part(1, part(TOTAL, TOTAL - 1, true), b"x").unwrap();
        assert!(matches!(&whole, Part::Whole { bytes, .. } if bytes.len() as u64 == TOTAL));
        assert_eq!(budget.held_bytes(), 2 * TOTAL);
        drop(whole);
        drop(uploads);
        assert_eq!(budget.held_bytes(), 0);
    }
}
