//! What a host is made with. Every value is checked when the host is made.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use pie_core::bus::{BusLimits, BusSettingNames};
use pie_core::market::MAX_CREDITS;
use pie_core::{ErrorCode, settings};

use crate::budget::{self, Budget};
use crate::bus::Bus;
use crate::mcp::config::{MAX_SERVERS, McpConfig, McpServerConfig};
use crate::network::config::NetworkConfig;
use crate::scratch::config::FilesConfig;
use crate::snapshots::config::{Durability, SnapshotConfig};
use crate::{Error, Limits};

/// One part in this many of the engine's memory is what all compilations together may take at most. It is reserved.
const COMPILE_PART: u64 = 4;

/// The folder of snapshots below that of data.
const SNAPSHOTS: &str = "snapshots";
/// What all users together may hold where nothing else is said.
const DEFAULT_MEMORY_BYTES: u64 = 4 << 30;

/// Where users find the bounds of messages.
const BUS_NAMES: BusSettingNames = BusSettingNames {
    message_bytes: "engine.bus_message_bytes",
    queue_messages: "engine.bus_queue_messages",
    queue_bytes: "engine.bus_queue_bytes",
    user_bytes: "engine.bus_user_bytes",
    topics: "engine.bus_topics",
    subscriptions: "engine.bus_subscriptions",
    push_wait: "engine.bus_push_s",
};

settings! {
    /// The configuration of a host.
    pub struct HostConfig in "engine" {
        /// Threads that run programs; 0: one a core.
        worker_threads "worker_threads": usize = 0, 0 => 1024;
        /// How much lower their priority is than that of the driver, in steps of `nice`.
        worker_niceness "worker_niceness": u8 = 5, 0 => 19;
        /// The same of programs that compute for long without waiting, never less than `worker_niceness`, and of one
        /// thread: the others that run such programs do so when no other thread wants the core.
        background_niceness "background_niceness": u8 = 10, 0 => 19;
        /// Processes that may live at once, children among them.
        max_processes "max_processes": u32 = 256, 1 => 20_000;
        /// Programs of users that may be compiled, or read, at once. Each takes up to a core and
        /// `limits.compile_bytes`, and all together at most a quarter of `memory_bytes`, which is kept free for them.
        max_compilations "max_compilations": usize = 2, 1 => 64;
        /// Bytes of stack that a program may use.
        stack_bytes "stack_bytes": usize = 32 << 20, 64 << 10 => 256 << 20;
        /// Bytes that all users together may make the engine hold, beside the models: programs, texts, queues,
        /// messages, uploads; at least 16 MiB. 0: three quarters of what the models and their drivers leave of the
        /// machine's memory, or of the control group's.
        memory_bytes "memory_bytes": u64 = 0, 0 => 1 << 50;
        /// Bytes of them that one user may hold, at least 1 MiB; 0: three eighths.
        user_memory_bytes "user_memory_bytes": u64 = 0, 0 => 1 << 50;
        /// Bytes of one message between programs.
        bus_message_bytes "bus_message_bytes": usize = 1 << 20, 1 => 1 << 30;
        /// Messages that wait in the queue of one topic before the next push waits.
        bus_queue_messages "bus_queue_messages": usize = 10_000, 1 => 10_000_000;
        /// Bytes in the queue of one topic before the next push waits.
        bus_queue_bytes "bus_queue_bytes": usize = 16 << 20, 1 => 1 << 40;
        /// Bytes in all queues of one user together, each message counted with 512 bytes beside its own.
        bus_user_bytes "bus_user_bytes": usize = 64 << 20, 1 << 10 => 1 << 40;
        /// How long a push waits for room in a queue until it is refused.
        bus_push "bus_push_s": Duration = Duration::from_secs(5),
            Duration::ZERO => Duration::from_secs(86_400);
        /// How long messages wait in the queues of a user of whom no program lives, until they are dropped and counted.
        bus_idle "bus_idle_s": Duration = Duration::from_secs(3600),
            Duration::from_millis(1) => Duration::from_secs(300_000_000);
        /// Broadcasts that wait in one subscription before it drops the oldest.
        bus_subscription_messages "bus_subscription_messages": usize = 1024, 1 => 10_000_000;
        /// Bytes of the broadcasts that wait in one subscription before it drops the oldest.
        bus_subscription_bytes "bus_subscription_bytes": usize = 4 << 20, 1 => 1 << 40;
        /// Topics that the programs of one user may use at once.
        bus_topics "bus_topics": usize = 1024, 1 => 1_000_000;
        /// Subscriptions that the programs of one user may hold at once.
        bus_subscriptions "bus_subscriptions": usize = 4096, 1 => 1_000_000;
        /// Credits that a process begins with in each model, where its launch does not say how many. They pay for what
        /// its contexts bid where pages are short. A child has half of what its parent has, and no more than this.
        credits "credits": u64 = 1000, 0 => MAX_CREDITS;
        /// Credits that a page of a context costs once, when it is full.
        page_price "page_price": u64 = 1, 0 => MAX_CREDITS;
        /// Tokens that may enter the contexts of a process and of its children, where its launch does not say how many;
        /// 0: any number.
        token_budget "token_budget": u64 = 0, 0 => 1 << 50;
        /// How long a driver may take for a batch until its requests fail; 0: any time. With `isolate`, its process is
        /// then killed and started again; without, new requests wait until it answers. Take many times what the
        /// largest batch takes: a slow driver is no faster for being given up.
        driver_timeout "driver_timeout_s": Duration = Duration::from_secs(60),
            Duration::ZERO => Duration::from_secs(300_000_000);
    }
    beside {
        /// Where compiled programs are kept between runs; none: nowhere.
        cache_dir: Option<PathBuf> = None;
        /// Where the engine keeps what has to outlive it; none: nowhere. The language runtimes that it ran with lie in
        /// `runtimes` below it, the files of programs in `scratch`, snapshots in `snapshots`, and as long as it runs,
        /// adapters in `adapters`.
        data_dir: Option<PathBuf> = None;
        /// The component that runs Python sources.
        python_runtime: Option<PathBuf> = None;
        /// The component that runs JavaScript and TypeScript sources.
        javascript_runtime: Option<PathBuf> = None;
        /// The name by which programs know this engine; none: a random one.
        instance_id: Option<String> = None;
        /// The command of the process that works on what users supply: a program that calls [`crate::compile_worker`].
        /// It compiles components and removes types from scripts. None: components are compiled in this process,
        /// without limits, which is for those that one trusts; and sources in JavaScript are refused, since nothing in
        /// this process reads them.
        compiler: Option<Vec<String>> = None;
        /// What programs send to each other by, where several hosts share it; none: this host has its own, within the
        /// bounds above.
        bus: Option<Arc<Bus>> = None;
        /// Compiled programs kept in memory, beside the language runtimes.
        max_programs: usize = 64;
        /// What each process may use.
        limits: Limits = Limits::default();
        /// What files programs have.
        files: FilesConfig = FilesConfig::default();
        /// How snapshots are kept.
        snapshots: SnapshotConfig = SnapshotConfig::default();
        /// What programs reach of the network.
        network: NetworkConfig = NetworkConfig::default();
        /// What all servers of MCP share.
        mcp: McpConfig = McpConfig::default();
        /// The servers of MCP that programs find, by name.
        mcp_servers: BTreeMap<String, McpServerConfig> = BTreeMap::new();
        /// Variables of this process that servers of MCP which are processes do not get, as keys of its user.
        mcp_withheld: Vec<String> = Vec::new();
    }
}

impl HostConfig {
    /// Checks every value.
    ///
    /// # Errors
    /// `invalid-config`, naming the setting, its value and the range.
    pub(crate) fn check(&self) -> Result<(), Error> {
        self.check_settings()?;
        for (name, value, least) in [
            ("memory_bytes", self.memory_bytes, budget::LEAST_BYTES),
            ("user_memory_bytes", self.user_memory_bytes, 1 << 20),
        ] {
            if (1..least).contains(&value) {
                let message =
                    format!("engine.{name} = {value} is too little; give at least {least}, or 0");
                return Err(Error::new(ErrorCode::InvalidConfig, message));
            }
        }
        self.limits.check_settings()?;
        self.files.check_settings()?;
        self.check_snapshots()?;
        self.network.check_settings()?;
        self.mcp.check_settings()?;
        if self.mcp_servers.len() > MAX_SERVERS {
            let message = format!(
                "there are {} MCP servers, of at most {MAX_SERVERS}; leave out those that are not used",
                self.mcp_servers.len()
            );
            return Err(Error::new(ErrorCode::InvalidConfig, message));
        }
        let mut servers = self.mcp_servers.iter();
        servers.try_for_each(|(name, server)| server.check(name))
    }

    /// Whether there is a folder for snapshots where they are kept on disk.
    fn check_snapshots(&self) -> Result<(), Error> {
        self.snapshots.check_settings()?;
        if self.snapshots.durability == Durability::Disk && self.snapshots_dir().is_none() {
            return Err(Error::new(
                ErrorCode::InvalidConfig,
                "snapshots.durability = \"disk\" wants a folder, and the engine keeps no data; set snapshots.folder or \
                 engine.data_dir",
            ));
        }
        Ok(())
    }

    /// Where snapshots are kept on disk; none where that is nowhere.
    pub(crate) fn snapshots_dir(&self) -> Option<PathBuf> {
        let given = &self.snapshots.folder;
        if given.as_os_str().is_empty() {
            self.data_dir.as_ref().map(|dir| dir.join(SNAPSHOTS))
        } else {
            Some(given.clone())
        }
    }

    /// Bytes that all users together may hold. The engine in Python looks at the machine where none are said.
    pub(crate) const fn memory_bytes(&self) -> u64 {
        match self.memory_bytes {
            0 => DEFAULT_MEMORY_BYTES,
            n_bytes => n_bytes,
        }
    }

    /// Bytes that one compilation may take: the limit, or its part of the engine's memory where that is less.
    pub(crate) fn compile_bytes(&self) -> u64 {
        self.limits
            .compile_bytes
            .min(self.memory_bytes() / (COMPILE_PART * self.max_compilations as u64))
    }

    /// What programs send to each other by.
    pub(crate) fn shared_bus(&self) -> Arc<Bus> {
        let own = || Arc::new(Bus::new(self.bus_limits(), self.bus_push, self.bus_idle));
        self.bus.clone().unwrap_or_else(own)
    }

    const fn bus_limits(&self) -> BusLimits {
        BusLimits {
            message_bytes: self.bus_message_bytes,
            queue_messages: self.bus_queue_messages,
            queue_bytes: self.bus_queue_bytes,
            user_bytes: self.bus_user_bytes,
            subscription_messages: self.bus_subscription_messages,
            subscription_bytes: self.bus_subscription_bytes,
            topics: self.bus_topics,
            subscriptions: self.bus_subscriptions,
            names: BUS_NAMES,
        }
    }

    /// The budget of what users may make the engine hold: its memory less what compiling may take.
    pub(crate) fn budget(&self) -> Arc<Budget> {
        let compiling = self.compile_bytes() * self.max_compilations as u64;
        let of_one = Some(self.user_memory_bytes).filter(|&n_bytes| n_bytes > 0);
        Budget::new(self.memory_bytes() - compiling, of_one)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_out_of_range_is_named_with_its_range() {
        let config = HostConfig {
            max_processes: 0,
            ..HostConfig::default()
        };
        let error = config.check().unwrap_err();
        assert_eq!(error.code, ErrorCode::InvalidConfig);
        assert_eq!(
            error.message,
            "engine.max_processes = 0 is outside 1 to 20000; give a whole number between them"
        );
    }

    #[test]
    fn all_compilations_together_have_a_quarter_of_the_memory() {
        for (max_compilations, compile_bytes) in [(1, 1 << 30), (2, 512 << 20), (64, 16 << 20)] {
            let config = HostConfig {
                max_compilations,
                ..HostConfig::default()
            };
            assert_eq!(config.memory_bytes(), 4 << 30);
            assert_eq!(config.compile_bytes(), compile_bytes);
        }
    }

    #[test]
    fn too_little_memory_is_named_with_the_least() {
        let config = HostConfig {
            user_memory_bytes: 1,
            ..HostConfig::default()
        };
        let message = config.check().unwrap_err().message;
        assert_eq!(
            message,
            "engine.user_memory_bytes = 1 is too little; give at least 1048576, or 0"
        );
    }

    #[test]
    fn snapshots_on_disk_want_a_folder() {
        let mut config = HostConfig::default();
        config.snapshots.durability = Durability::Disk;
        let refused = config.check().unwrap_err();
        assert_eq!(refused.code, ErrorCode::InvalidConfig);
        assert!(
            refused.message.contains("snapshots.folder"),
            "{}",
            refused.message
        );
        config.data_dir = Some(PathBuf::from("/data"));
        config.check().unwrap();
        assert_eq!(
            config.snapshots_dir(),
            Some(PathBuf::from("/data/snapshots"))
        );
        config.snapshots.folder = PathBuf::from("/elsewhere");
        assert_eq!(config.snapshots_dir(), Some(PathBuf::from("/elsewhere")));
    }

    #[test]
    fn the_defaults_are_valid() {
        HostConfig::default().check().unwrap();
    }
}
