//! A page of content in the tree.

use super::super::content::Content;
use crate::ids::{BatchId, ContentId, HostSlot, PageId, UserId};

/// A page of content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct NodeId(pub(super) u64);

impl NodeId {
    /// By which it is known outside of the engine. No other node ever has that name.
    pub(crate) const fn name(self) -> ContentId {
        ContentId(self.0)
    }

    /// The node of a name, which may be gone.
    pub(crate) const fn of(name: ContentId) -> Self {
        Self(name.0)
    }
}

/// In which memory the keys and values of a node are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tier {
    Device(PageId),
    Host(HostSlot),
    /// To be computed again.
    Gone,
}

#[derive(Debug)]
pub(in super::super) struct Node {
    pub(in super::super) parent: Option<NodeId>,
    pub(in super::super) owner: UserId,
    pub(in super::super) content: Content,
    /// It or a node that it stands behind has masks that are too long to be kept for nobody.
    pub(super) has_long_masks: bool,
    /// The hash of its content, by which it is found. None: it is not found, since it is a part of a page, a second
    /// copy, or one with long masks.
    pub(super) hash: Option<u64>,
    /// Digest of all tokens up to its end.
    pub(super) digest: u64,
    /// Slots up to its end.
    pub(in super::super) end: u32,
    pub(in super::super) tier: Tier,
    /// The batch that moves it between device and host.
    pub(in super::super) moving: Option<BatchId>,
    pub(in super::super) holders: u32,
    pub(in super::super) users: u32,
    pub(in super::super) n_device_children: u32,
    /// When it was last used.
    pub(super) stamp: u64,
}

impl Node {
    /// Whether it is found by its content.
    pub(in super::super) const fn is_indexed(&self) -> bool {
        self.hash.is_some()
    }
}
