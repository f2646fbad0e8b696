//! What a bus counts. Every message that was ever pushed was pulled, was dropped or waits, and every copy was received,
//! was dropped because its subscription lagged, was discarded with it, or waits.

/// One topic that is in use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicStats {
    /// Its name.
    pub name: String,
    /// Messages that wait in its queue.
    pub n_queued: u64,
    /// Bytes of these messages.
    pub queued_bytes: u64,
    /// Pushes that wait for room.
    pub n_waiting_pushes: u64,
    /// Pulls that wait for a message.
    pub n_waiting_pulls: u64,
    /// Subscriptions.
    pub n_subscriptions: u64,
}

macro_rules! bus_stats {
    ($($(#[$comment:meta])* $name:ident;)*) => {
        /// What happened on a bus so far, and what there is.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct BusStats { $($(#[$comment])* pub $name: u64,)* }

        impl BusStats {
            /// Every figure with its name, in their order.
            pub fn figures(&self) -> impl Iterator<Item = (&'static str, u64)> {
                [$((stringify!($name), self.$name)),*].into_iter()
            }

            /// Adds the figures of another bus.
            pub fn add(&mut self, other: &Self) {
                $(self.$name += other.$name;)*
            }
        }
    };
}

bus_stats! {
    /// Messages that entered queues so far.
    n_pushed;
    /// Messages that were taken from queues so far.
    n_pulled;
    /// Messages that were dropped from queues so far: their user had gone for long, or an operator dropped them.
    n_dropped;
    /// Pushes that found no room in time, or whose program ended while they waited.
    n_refused;
    /// Broadcasts so far.
    n_broadcasts;
    /// Copies that broadcasts gave to subscriptions so far.
    n_copies;
    /// Copies that were received so far.
    n_received;
    /// Copies that subscriptions dropped because they held too much.
    n_lagged;
    /// Copies that subscriptions held when they ended.
    n_discarded;
    /// Topics in use.
    n_topics;
    /// Messages that wait in queues.
    n_queued;
    /// Bytes of the messages that wait in queues.
    queued_bytes;
    /// Pushes that wait for room.
    n_waiting_pushes;
    /// Pulls that wait for a message.
    n_waiting_pulls;
    /// Subscriptions.
    n_subscriptions;
    /// Copies that wait in subscriptions.
    n_held;
}
