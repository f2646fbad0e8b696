//! What programs reach of the network: settings of `[runtime]`, and what limits give one process.

use std::time::Duration;

use pie_core::settings;

use super::allowed::Allowed;
use super::request::Timeouts;
use crate::Limits;

settings! {
    /// What programs reach of the network.
    pub struct NetworkConfig in "runtime" {
        /// Servers that programs may send HTTP requests to, each as `HOST` or `HOST:PORT`: a name, `*.NAME` for all
        /// names below it, an address or a range (`10.0.0.0/8`), or `*` for every public server. Addresses of this
        /// machine and of private networks have to be named by address or range, or as `localhost`, even where a name
        /// that has them is allowed.
        allow "allow_net": Vec<Allowed> = Vec::new();
        /// Requests of one user that are under way at once, and no more than a half of what others leave of a half of
        /// `net_requests`; the other half is for a few requests of each user.
        user_requests "net_user_requests": usize = 128, 1 => 1 << 16;
        /// Requests of all users that are under way at once.
        requests "net_requests": usize = 1024, 1 => 1 << 16;
        /// The file of certificates (PEM) that servers are trusted by, in the place of Mozilla's, which are built in;
        /// empty: none.
        ca_file "net_ca_file": String = String::new(), 0 => 4096;
    }
}

/// What one process may use of the network.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HttpLimits {
    pub(crate) sent_bytes: u64,
    pub(crate) received_bytes: u64,
    pub(crate) header_bytes: usize,
    pub(crate) connect: Duration,
    pub(crate) first_byte: Duration,
    pub(crate) idle: Duration,
    pub(crate) whole: Duration,
}

impl HttpLimits {
    /// These limits with lower times of a program's own.
    pub(crate) fn within(mut self, own: &Timeouts) -> Self {
        for (limit, own) in [
            (&mut self.connect, own.connect),
            (&mut self.first_byte, own.first_byte),
            (&mut self.idle, own.idle),
            (&mut self.whole, own.whole),
        ] {
            *limit = own.map_or(*limit, |own| own.min(*limit));
        }
        self
    }
}

impl From<&Limits> for HttpLimits {
    fn from(limits: &Limits) -> Self {
        Self {
            sent_bytes: limits.http_sent_bytes,
            received_bytes: limits.http_received_bytes,
            header_bytes: limits.http_header_bytes,
            connect: limits.http_connect,
            first_byte: limits.http_first_byte,
            idle: limits.http_idle,
            whole: limits.http,
        }
    }
}
