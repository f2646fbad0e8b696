//! The state behind one instance: what its calls reach, in parts. Each interface sees the parts that it needs.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use wasmtime_wasi::{WasiCtx, WasiCtxBuilder, WasiCtxView, WasiView};
use wasmtime_wasi_http::WasiHttpCtx;

use super::handles::HandleTable;
use super::joined::Joined;
use super::mail::Mail;
use super::random::seed_wasi;
use super::record::ProcessRecord;
use super::stdio::Output;
use super::surroundings::Surroundings;
use super::texts::Texts;
use crate::mcp::held::HeldMcp;
use crate::network::held::HeldNetwork;
use crate::program::source::RuntimeInput;
use crate::sandbox::memory::MemoryLimiter;
use crate::scratch::folders::Owner;
use crate::scratch::process_files::ProcessFiles;

/// What the calls of one instance reach. It lives in the store and is thrown away with it.
pub(crate) struct ProcessState {
    /// Dropped first: what the process holds in the engine is released at once, and not handle by handle.
    pub(crate) joined: Joined,
    pub(crate) table: HandleTable,
    pub(crate) wasi: WasiCtx,
    pub(crate) memory: MemoryLimiter,
    pub(crate) texts: Texts,
    pub(crate) mail: Mail,
    pub(crate) files: ProcessFiles,
    pub(crate) network: HeldNetwork,
    pub(crate) wasi_http: WasiHttpCtx,
    pub(crate) mcp: HeldMcp,
    /// The program, where a language runtime runs it.
    pub(crate) source: Option<RuntimeInput>,
    pub(crate) surroundings: Arc<Surroundings>,
    pub(crate) record: Arc<ProcessRecord>,
}

impl ProcessState {
    /// The state of a new instance of the program of that name, whose output goes to `outputs` (standard output and
    /// error).
    pub(crate) fn new(
        surroundings: Arc<Surroundings>,
        record: Arc<ProcessRecord>,
        program: String,
        source: Option<RuntimeInput>,
        outputs: &[Output; 2],
    ) -> Self {
        let mut wasi = WasiCtxBuilder::new();
        // No arguments, environment, network or name lookup: what is not given cannot leak. Folders are given when the
        // program asks for them.
        wasi.stdout(outputs[0].clone())
            .stderr(outputs[1].clone())
            .allow_tcp(false)
            .allow_udp(false);
        seed_wasi(&mut wasi, record.launch_seed);
        let owner = Owner {
            user: record.username.clone(),
            program,
        };
        let network = HeldNetwork::new(
            surroundings.network.clone(),
            surroundings.foreground.clone(),
            &record.limits,
            record.account.clone(),
        );
        let mut wasi_http = WasiHttpCtx::new();
        wasi_http.set_field_size_limit(record.limits.http_header_bytes);
        let mcp = HeldMcp::new(
            surroundings.mcp.clone(),
            record.mcp.clone(),
            &record.limits,
            (surroundings.foreground.clone(), record.account.clone()),
        );
        let folders = surroundings.folders.clone();
        let threads = surroundings.foreground.clone();
        let turns = folders.turns_of(&record.username, record.cpu.clone(), threads);
        let memory = MemoryLimiter::new(record.limits.memory_bytes, record.footprint.clone());
        Self {
            joined: Joined::new(record.clone()),
            table: HandleTable::new(record.clone()),
            wasi: wasi.build(),
            memory,
            texts: Texts::new(record.clone(), surroundings.clone()),
            mail: Mail::new(surroundings.bus.clone(), record.clone()),
            files: ProcessFiles::new(folders, owner, record.account.clone(), turns),
            network,
            wasi_http,
            mcp,
            source,
            surroundings,
            record,
        }
    }

    /// Counts what arrives at the `pie:*` interfaces.
    pub(crate) fn count_arrival(&self) {
        self.record.n_arrivals.fetch_add(1, Ordering::Relaxed);
    }
}

impl WasiView for ProcessState {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView {
            ctx: &mut self.wasi,
            table: self.table.for_wasi(),
        }
    }
}
