//! Room in nodes: a node without room gives half of its entries, or the tenth behind keys that only grow, to a new
//! right neighbour. The node, the neighbour, the branch above and the index's header change in one redo record. A
//! branch without room for another child is split first; when the root has none, all it holds moves to a child, for
//! the root keeps its place.

use crate::block::BlockAddress;
use crate::block::index::{self, Covers, EntryPlace, Fit, IndexEntry, IndexHead, Node};
use crate::cache::{ExclusiveBlock, Wanted};
use crate::change::blocks::change;
use crate::error::Result;
use crate::index::{Index, Root};
use crate::log::redo::{RecordBuilder, VectorKind};
use crate::probe::{self, Probe};
use crate::settings::PlantedFault;
use crate::sga::Sga;
use crate::wait_event::ProcessWaits;

use super::merge::tell_if_emptied;
use super::{covers, descend, is_damaged, push_head, push_node, push_put, push_tidy};

/// What became of an attempt.
enum Attempt {
    /// The node has room, or another session has changed it.
    Done,
    /// The node is two.
    Split,
    /// The branch above has no room for an entry of this many bytes.
    BranchFull(usize),
}

/// A block for a new node.
#[derive(Clone, Copy)]
struct Spare {
    wanted: Wanted,
    address: BlockAddress,
    /// The header that offers it.
    head: IndexHead,
}

impl Spare {
    /// The header when the block is taken; `None`: another session was faster.
    fn take(&self, block: &[u8], head: &[u8]) -> Option<IndexHead> {
        let now = IndexHead::of(head);
        if now != self.head {
            return None;
        }
        Some(match now.free {
            Some(_) => IndexHead {
                free: index::right(block),
                ..now
            },
            None => IndexHead {
                fresh: now.fresh + 1,
                ..now
            },
        })
    }
}

/// Makes room for an entry in the leaf of a place, or some way towards it.
pub(crate) async fn make_room(
    sga: &Sga,
    waits: &ProcessWaits,
    builder: &mut RecordBuilder,
    index: &Index,
    place: EntryPlace<'_>,
) -> Result<()> {
    super::merge::reclaim(sga, waits, builder, index).await?;
    let (mut level, mut needed) = (0, index::stored_bytes(place.key.len(), true));
    loop {
        let found = descend(sga, waits, index.root, place, level).await?;
        let (address, parent) = (found.pin.address(), found.parent);
        drop(found);
        let attempt = match parent {
            None => grow(sga, waits, builder, index, level).await?,
            Some(parent) => {
                let nodes = (address, parent);
                split(sga, waits, builder, index, place, nodes, (level, needed)).await?
            }
        };
        match attempt {
            Attempt::Done | Attempt::Split => return Ok(()),
            Attempt::BranchFull(bytes) => (level, needed) = (level + 1, bytes),
        }
    }
}

/// A block that is free, or was never used; extends the index when there is none. The caller has the turn until the
/// block is a node: see [`Index::new_node_turn`].
async fn spare(sga: &Sga, waits: &ProcessWaits, index: &Index) -> Result<Spare> {
    loop {
        let head = {
            let pin = sga.cache.get(sga, waits, index.root.head).await?;
            let block = pin.read(sga, waits).await?;
            IndexHead::of(&block)
        };
        if let Some(address) = head.free {
            return Ok(Spare {
                wanted: Wanted::Present(address),
                address,
                head,
            });
        }
        let fresh = u64::from(head.fresh);
        match index.space.run(fresh) {
            Some((address, _)) => {
                return Ok(Spare {
                    wanted: Wanted::New(address),
                    address,
                    head,
                });
            }
            None => index.space.extend(sga, waits, fresh).await?,
        }
    }
}

/// Moves all that the root holds to a new child.
async fn grow(
    sga: &Sga,
    waits: &ProcessWaits,
    builder: &mut RecordBuilder,
    index: &Index,
    level: u8,
) -> Result<Attempt> {
    let root = index.root;
    let turn = index.new_node_turn.acquire().await;
    let _turn = turn.expect("the semaphore is never closed");
    let spare = spare(sga, waits, index).await?;
    let wanted = [
        Wanted::Present(root.address),
        spare.wanted,
        Wanted::Present(root.head),
    ];
    let pins = sga.cache.get_all(sga, waits, wanted).await?;
    let pins = [&pins[0], &pins[1], &pins[2]];
    change(sga, waits, builder, &pins, |blocks, builder| {
        let block = &*blocks[0];
        let Some(head) = spare.take(&blocks[1], &blocks[2]) else {
            return Ok(());
        };
        if index::level(block) != level {
            return Ok(());
        }
        probe::hit(Probe::RootGrown);
        let child = Node::of(block);
        let entries = index::entries(block).map(|entry| (index::prefix(block), entry));
        push_node(builder, spare.address, root, &child.with(entries));
        let entry = IndexEntry {
            suffix: &[],
            row: child.low.row,
            number: Some(spare.address.to_u64()),
            is_ghost: false,
        };
        let grown = Node {
            level: level + 1,
            ..child
        };
        let only = std::iter::once((&[][..], entry));
        push_node(builder, root.address, root, &grown.with(only));
        push_head(builder, root, head);
        Ok(())
    })
    .await?;
    Ok(Attempt::Done)
}

/// Splits a node, unless it has room for `needed` bytes by now.
async fn split(
    sga: &Sga,
    waits: &ProcessWaits,
    builder: &mut RecordBuilder,
    index: &Index,
    place: EntryPlace<'_>,
    (address, parent): (BlockAddress, BlockAddress),
    (level, needed): (u8, usize),
) -> Result<Attempt> {
    let turn = index.new_node_turn.acquire().await;
    let _turn = turn.expect("the semaphore is never closed");
    let spare = spare(sga, waits, index).await?;
    let wanted = [
        Wanted::Present(parent),
        Wanted::Present(address),
        Wanted::Present(index.root.head),
        spare.wanted,
    ];
    let pins = sga.cache.get_all(sga, waits, wanted).await?;
    let splitting = Splitting {
        sga,
        root: index.root,
        addresses: [parent, address],
        spare,
    };
    let all = [&pins[0], &pins[1], &pins[2], &pins[3]];
    let (attempt, _) = change(sga, waits, builder, &all, |blocks, builder| {
        let node = &*blocks[1];
        let is_there =
            covers(sga, node, index.root, place) == Covers::Here && index::level(node) == level;
        if !is_there || index::fit(node, needed, true, None, |_| false) != Fit::No {
            return Ok(Attempt::Done);
        }
        splitting.plan(blocks, builder, place)
    })
    .await?;
    drop(pins);
    if level == 0 && matches!(attempt, Attempt::Split) && index.emptied.is_mapped() {
        for leaf in [address, spare.address] {
            tell_if_emptied(sga, waits, builder, index, leaf).await?;
        }
    }
    Ok(attempt)
}

/// A node about to be split.
struct Splitting<'a> {
    sga: &'a Sga,
    root: Root,
    /// Of the branch above and of the node.
    addresses: [BlockAddress; 2],
    spare: Spare,
}

impl Splitting<'_> {
    /// Adds the vectors; the blocks are the branch, the node, the header and the new node.
    fn plan(
        &self,
        blocks: &[ExclusiveBlock<'_>],
        builder: &mut RecordBuilder,
        place: EntryPlace<'_>,
    ) -> Result<Attempt> {
        let Splitting {
            sga, root, spare, ..
        } = *self;
        let [branch_address, address] = self.addresses;
        let [branch, node, head, new] = [0, 1, 2, 3].map(|number| &*blocks[number]);
        let Some(head) = spare.take(new, head) else {
            return Ok(Attempt::Done);
        };
        if !leads_to(branch, node, root, address) {
            return Ok(Attempt::Done);
        }
        if index::count(node) < 2 {
            return Err(is_damaged(
                sga,
                root,
                address,
                "a node of one entry is full",
            ));
        }
        let position = index::find(node, place).unwrap_or_else(|position| position);
        let keep = index::split_at(node, position);
        let (key, row) = index::separator(node, keep);
        let low = EntryPlace { key: &key, row };
        let Err(position) = index::find(branch, low) else {
            let reason = "a branch has the place at which a node below is split";
            return Err(is_damaged(sga, root, branch_address, reason));
        };
        let entry = IndexEntry {
            suffix: &key[index::prefix(branch).len()..],
            row,
            number: Some(spare.address.to_u64()),
            is_ghost: false,
        };
        let entry_bytes = index::stored_bytes(entry.suffix.len(), true);
        match index::fit(branch, entry_bytes, true, None, |_| false) {
            Fit::Now => {}
            Fit::Tidied(gone, bare) => push_tidy(builder, branch_address, &gone, &bare),
            Fit::No => return Ok(Attempt::BranchFull(entry_bytes)),
        }
        probe::hit(Probe::NodeSplit);
        if !sga.settings.has_planted(PlantedFault::SplitUntold) {
            push_put(builder, branch_address, position, false, &entry);
        }
        let right = Node {
            low,
            ..Node::of(node)
        };
        let moved = index::entries(node).skip(usize::from(keep));
        let moved = moved.map(|entry| (index::prefix(node), entry));
        push_node(builder, spare.address, root, &right.with(moved));
        push_cut(builder, address, keep, spare.address, low);
        push_head(builder, root, head);
        Ok(Attempt::Split)
    }
}

/// True when a branch is the one above a node.
fn leads_to(branch: &[u8], node: &[u8], root: Root, address: BlockAddress) -> bool {
    let low = index::low(node);
    index::covers(branch, root.segment, low) == Covers::Here
        && index::level(branch) == index::level(node) + 1
        && index::child(branch, low).1 == address
}

fn push_cut(
    builder: &mut RecordBuilder,
    address: BlockAddress,
    keep: u16,
    right: BlockAddress,
    low: EntryPlace<'_>,
) {
    let parts: [&[u8]; 5] = [
        &keep.to_le_bytes(),
        &[0, 0],
        &right.to_u64().to_le_bytes(),
        &low.row.to_bytes(),
        low.key,
    ];
    builder.push(VectorKind::CutNode, address, &parts);
}
