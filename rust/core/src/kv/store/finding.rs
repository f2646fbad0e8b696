//! Nodes by their content.

use std::hash::BuildHasher;

use super::super::content::Content;
use super::node::Node;
use super::{NodeId, PageStore, Tier};
use crate::hash::fold;
use crate::ids::{PageId, UserId};

impl PageStore {
    /// The node of that content behind `parent`.
    pub(crate) fn find(
        &self,
        parent: Option<NodeId>,
        owner: UserId,
        content: &Content,
    ) -> Option<NodeId> {
        self.find_hashed(self.hash(parent, owner, content), parent, owner, content)
    }

    pub(super) fn find_hashed(
        &self,
        hash: u64,
        parent: Option<NodeId>,
        owner: UserId,
        content: &Content,
    ) -> Option<NodeId> {
        self.index
            .find(hash, |&id| {
                self.node(id).is_some_and(|node| {
                    node.parent == parent && node.owner == owner && node.content == *content
                })
            })
            .copied()
    }

    pub(super) fn hash(&self, parent: Option<NodeId>, owner: UserId, content: &Content) -> u64 {
        self.hasher.hash_one((parent, owner, content))
    }

    /// Adds a node with a page behind `parent`. It is found by its content where `indexed` is the hash of that.
    pub(super) fn insert(
        &mut self,
        parent: Option<NodeId>,
        owner: UserId,
        content: Content,
        page: PageId,
        indexed: Option<u64>,
    ) -> NodeId {
        let id = self.insert_gone(parent, owner, content, indexed);
        self.arrive(id, page);
        id
    }

    /// The same of one that has to be computed: nobody has its page. The caller holds it at once.
    pub(super) fn insert_gone(
        &mut self,
        parent: Option<NodeId>,
        owner: UserId,
        content: Content,
        indexed: Option<u64>,
    ) -> NodeId {
        let digest = content
            .tokens()
            .iter()
            .fold(self.digest(parent), |digest, &token| {
                fold(digest, u64::from(token))
            });
        self.clock += 1;
        let has_long_masks = !self.may_be_found(parent, &content);
        let node = Node {
            has_long_masks,
            end: self.end(parent) + content.len(),
            parent,
            owner,
            content,
            hash: indexed,
            digest,
            tier: Tier::Gone,
            moving: None,
            holders: 0,
            users: 0,
            n_device_children: 0,
            stamp: self.clock,
        };
        let id = NodeId(self.nodes.insert(node));
        if let Some(parent) = parent {
            self.hold(parent);
        }
        if let Some(hash) = indexed {
            let nodes = &self.nodes;
            let rehash = |id: &NodeId| nodes.get(id.0).and_then(|node| node.hash).unwrap_or(0);
            self.index.insert_unique(hash, id, rehash);
        }
        id
    }
}
