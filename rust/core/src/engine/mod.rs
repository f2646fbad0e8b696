//! The engine of one model: everything that the host keeps behind its lock.
//!
//! It has three parts: what is `owned` by users, what is `waiting` for the device, and the `device`.
//!
//! Calls of programs (`contexts`, `generators`, `accepting`, `bidding`) take effect at once and take microseconds. What
//! waits for a batch is a request (`requests`): it is entered (`submitting`, or `ahead` where it ran ahead), and its
//! answer is taken (`folding`); steps that somebody is `collecting` count together. The driver's side is `next_batch`
//! (`planning`: a `planner` has `admitting` give places, `displacing` find pages, `writing` fill the arena, and
//! `following` look a batch ahead), `complete` (`completing`: each pass goes on by `advancing`, each token is judged by
//! `judging`, rows wait for token masks in `late`), `complete_command` (`commands`; `page_moves` has those that move
//! pages), `abandon_overdue` (`abandoning`) where it hangs, and `lose_device` (`losing`) where it is gone.

mod abandoning;
mod accepting;
mod adapters;
mod admitting;
mod advancing;
mod ahead;
mod bidding;
mod check;
mod collecting;
mod command_queue;
mod commands;
mod completing;
mod contexts;
mod costs;
mod device;
mod displacing;
mod draft_models;
mod drafts;
mod folding;
mod following;
mod forward;
mod forwarding;
mod generators;
mod histogram;
mod idle;
mod images;
mod judging;
mod kept;
mod late;
mod late_list;
mod losing;
mod owned;
mod page_moves;
mod planner;
mod planning;
mod processes;
mod requests;
mod room;
mod snapshots;
mod state;
mod stats;
mod steps;
mod submitting;
mod totals;
mod waiting;
mod working_pages;
mod writing;

pub use contexts::check_tokens;
pub use forward::{Forward, Input, ReadMasks, RowRequest};
pub use forwarding::MAX_FORWARD_ROWS;
pub use histogram::Histogram;
pub use kept::HostData;
pub use planning::NextWork;
pub use requests::{Answer, Entering, Progress, Submission};
pub use snapshots::check_snapshot_name;
pub use state::Engine;
pub use stats::{Figure, Stats, UserStats};
pub use working_pages::PageCounts;
