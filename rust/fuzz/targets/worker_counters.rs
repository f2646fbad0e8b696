//! What a worker runs counts for the fuzzer that started it. Both are one program: the worker lays the pages of its
//! counters over memory of the fuzzer, which shows them to libFuzzer after each input.
#![allow(
    unsafe_code,
    reason = "counters lie between two symbols of the linker and are shared by mmap, whole pages of them"
)]

use std::fs::File;
use std::io::Error;
use std::ops::Range;
use std::os::fd::{AsRawFd, FromRawFd};
use std::ptr::{self, NonNull};
use std::sync::OnceLock;

/// Counters of the worker's that libFuzzer sees; beyond, several share one.
const N_SEEN: usize = 1 << 17;
const PAGE_BYTES: usize = 4096;

unsafe extern "C" {
    #[link_name = "__start___sancov_cntrs"]
    static mut FIRST: u8;
    #[link_name = "__stop___sancov_cntrs"]
    static mut END: u8;
}

/// libFuzzer looks at this section after each input, and clears it before the next one.
#[unsafe(link_section = "__libfuzzer_extra_counters")]
static mut SEEN: [u8; N_SEEN] = [0; N_SEEN];

/// Memory that a fuzzer shares with its workers.
pub(crate) struct Shared {
    file: File,
    counters: NonNull<u8>,
}

// SAFETY: the memory is there for as long as the process, and one thread runs inputs.
unsafe impl Send for Shared {}
// SAFETY: the same.
unsafe impl Sync for Shared {}

/// The memory of this fuzzer.
pub(crate) fn shared() -> &'static Shared {
    static SHARED: OnceLock<Shared> = OnceLock::new();
    SHARED.get_or_init(|| Shared::new().expect("memory for the counters of workers"))
}

impl Shared {
    fn new() -> Result<Self, Error> {
        // SAFETY: the name is a literal; the descriptor is new, and nobody else's.
        let file = unsafe {
            let descriptor = libc::memfd_create(c"counters".as_ptr(), libc::MFD_CLOEXEC);
            if descriptor < 0 {
                return Err(Error::last_os_error());
            }
            File::from_raw_fd(descriptor)
        };
        file.set_len(pages().len() as u64)?;
        let counters = mapped(&file, ptr::null_mut(), 0)?;
        Ok(Self { file, counters })
    }

    /// Where a worker finds it.
    pub(crate) fn path(&self) -> String {
        format!("/proc/{}/fd/{}", std::process::id(), self.file.as_raw_fd())
    }

    /// Shows libFuzzer what the worker counted, and clears it for the next one.
    pub(crate) fn show(&self) {
        let n_counters = pages().len();
        // SAFETY: the memory has so many bytes, and the worker has ended; libFuzzer does not look while an input runs.
        unsafe {
            let counters = std::slice::from_raw_parts_mut(self.counters.as_ptr(), n_counters);
            let seen = (&raw mut SEEN).cast::<u8>();
            for (place, counter) in counters.iter_mut().enumerate() {
                if *counter != 0 {
                    let one = seen.add(place % N_SEEN);
                    *one = (*one).saturating_add(*counter);
                    *counter = 0;
                }
            }
        }
    }
}

/// Has this worker count in the memory of its fuzzer.
pub(crate) fn count_in(path: &str) -> Result<(), Error> {
    let file = File::options().read(true).write(true).open(path)?;
    let pages = pages();
    let place = ptr::with_exposed_provenance_mut(pages.start);
    mapped(&file, place, libc::MAP_FIXED).map(drop)
}

/// The addresses of the pages that hold counters and nothing else.
fn pages() -> Range<usize> {
    let (first, end) = (&raw const FIRST, &raw const END);
    let start = first.expose_provenance().next_multiple_of(PAGE_BYTES);
    let end = end.expose_provenance() / PAGE_BYTES * PAGE_BYTES;
    start..end.max(start)
}

fn mapped(file: &File, place: *mut u8, flags: libc::c_int) -> Result<NonNull<u8>, Error> {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_SHARED | flags;
    // SAFETY: where the place is fixed, whole pages of counters lie there, which are numbers of any value.
    let mapped = unsafe {
        libc::mmap(
            place.cast(),
            pages().len(),
            protection,
            flags,
            file.as_raw_fd(),
            0,
        )
    };
    if mapped == libc::MAP_FAILED {
        return Err(Error::last_os_error());
    }
    NonNull::new(mapped.cast()).ok_or_else(|| Error::other("memory at address 0"))
}
