//! B+trees: the way to a node. A session holds one node at a time and lets it go before it moves to the next, so no
//! latch is kept across a read. What it finds may be out of date when it arrives. Then the node's fences say whether
//! the place is here, further right, where the links lead, or elsewhere. If elsewhere, it begins again at the root
//! (Lehman and Yao 1981). A session that changes nodes checks their fences once more when it has all of them.
//!
//! A structure change is one redo record of all its blocks ([`split`], [`merge`]), so a crash leaves none half done,
//! and none is ever undone. Entries are undone by their keys, wherever they are by then ([`entries`]; Mohan and Levine,
//! ARIES/IM, 1992).

pub(crate) mod entries;
pub(crate) mod merge;
pub(crate) mod split;

use crate::block::BlockAddress;
use crate::block::index::{self, Covers, EntryPlace, IndexEntry};
use crate::buggify::Switch;
use crate::cache::Pin;
use crate::error::{KernelError, Result};
use crate::index::Root;
use crate::log::redo::{RecordBuilder, VectorKind};
use crate::probe::{self, Probe};
use crate::settings::PlantedFault;
use crate::sga::Sga;
use crate::transaction::slot_of;
use crate::transaction::visibility::Visibility;
use crate::wait_event::ProcessWaits;

use super::transaction::statement_scn;

/// More steps from node to node than any race takes: the index is damaged, and nodes may lead round in a ring.
const STEPS_MAX: usize = 1_000_000;

/// A node that was found.
pub(crate) struct FoundNode {
    /// No other may be waited for meanwhile.
    pub(crate) pin: Pin,
    /// The branch that led there; `None`: it is the root.
    pub(crate) parent: Option<BlockAddress>,
}

/// Finds the node of a level that covers a place. It may have changed when the caller gets there.
pub(crate) async fn descend(
    sga: &Sga,
    waits: &ProcessWaits,
    root: Root,
    place: EntryPlace<'_>,
    level: u8,
) -> Result<FoundNode> {
    let (mut address, mut parent) = (root.address, None);
    for _ in 0..STEPS_MAX {
        let pin = sga.cache.get(sga, waits, address).await?;
        let block = pin.read(sga, waits).await?;
        let next = match covers(sga, &block, root, place) {
            Covers::Right(right) => {
                probe::hit(Probe::MovedRight);
                Some((right, parent))
            }
            Covers::Here if index::level(&block) == level => {
                drop(block);
                return Ok(FoundNode { pin, parent });
            }
            Covers::Here if index::level(&block) > level => {
                Some((index::child(&block, place).1, Some(address)))
            }
            _ => None,
        };
        drop(block);
        drop(pin);
        (address, parent) = next.unwrap_or((root.address, None));
        sga.pause(Switch::SessionPausesOnItsWay).await;
    }
    let reason = "no way from the root leads to the place of a key";
    Err(is_damaged(sga, root, address, reason))
}

/// Where a node stands to a place.
fn covers(sga: &Sga, block: &[u8], root: Root, place: EntryPlace<'_>) -> Covers {
    match index::covers(block, root.segment, place) {
        Covers::Right(_) if sga.settings.has_planted(PlantedFault::NeighbourIgnored) => {
            Covers::Here
        }
        covers => covers,
    }
}

/// True when the block is the leaf of a place.
pub(crate) fn is_leaf_of(sga: &Sga, block: &[u8], root: Root, place: EntryPlace<'_>) -> bool {
    covers(sga, block, root, place) == Covers::Here && index::level(block) == 0
}

/// An index is not what it should be.
pub(crate) fn is_damaged(
    sga: &Sga,
    root: Root,
    address: BlockAddress,
    reason: impl Into<String>,
) -> KernelError {
    let name = sga.control.read(|contents| {
        let segment = contents.segment_index(root.segment);
        contents.segments[segment].name.clone()
    });
    KernelError::DamagedIndex {
        index: name,
        address,
        reason: reason.into(),
    }
}

/// Says of transactions whether what they deleted is no longer wanted: they have ended, and every statement sees that.
pub(crate) fn is_spent(sga: &Sga) -> impl Fn(u64) -> bool {
    let early = sga.settings.has_planted(PlantedFault::GhostGoneEarly);
    let oldest = if early {
        u64::MAX
    } else {
        sga.statements.oldest(|| statement_scn(sga))
    };
    move |transaction| {
        let (slot, wrap) = slot_of(transaction);
        sga.undo.endings().visibility(slot, wrap, oldest) == Visibility::Visible
    }
}

fn push_put(
    builder: &mut RecordBuilder,
    address: BlockAddress,
    position: u16,
    replaces: bool,
    entry: &IndexEntry<'_>,
) {
    builder.push_written(VectorKind::PutEntry, address, |bytes| {
        bytes.extend_from_slice(&position.to_le_bytes());
        bytes.extend_from_slice(&[u8::from(replaces), 0]);
        entry.store(&[], bytes);
    });
}

fn push_tidy(builder: &mut RecordBuilder, address: BlockAddress, gone: &[u16], bare: &[u16]) {
    probe::hit(Probe::NodeTidied);
    let count = gone.len() as u16;
    let positions = [&[count], gone, bare].concat();
    let bytes: Vec<u8> = positions.into_iter().flat_map(u16::to_le_bytes).collect();
    builder.push(VectorKind::TidyNode, address, &[&bytes]);
}

fn push_head(builder: &mut RecordBuilder, root: Root, head: index::IndexHead) {
    builder.push(VectorKind::SetIndexHead, root.head, &[&head.to_bytes()]);
}

fn push_node(builder: &mut RecordBuilder, address: BlockAddress, root: Root, node: &[u8]) {
    let segment = root.segment.to_le_bytes();
    builder.push(VectorKind::FormatNode, address, &[&segment, node]);
}
