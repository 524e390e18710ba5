//! Leaves that hold nothing any longer are taken out of the tree, and their blocks are used again. So an index does not
//! grow forever when entries go at one end while they come at the other. A leaf becomes one with a neighbour under the
//! same branch, in one redo record. Branches stay. A leaf for which that cannot be is set aside, and looked at again
//! when no other waits: its neighbours may have changed.

use crate::block::BlockAddress;
use crate::block::index::{self, Covers, EntryPlace, IndexHead, Node};
use crate::block::space_map::{self, Fill};
use crate::cache::{ExclusiveBlock, Wanted};
use crate::change::blocks::{change, change_and_note};
use crate::change::space::{push_fill, tell_unless};
use crate::error::Result;
use crate::index::Index;
use crate::log::redo::{RecordBuilder, VectorKind};
use crate::probe::{self, Probe};
use crate::sga::Sga;
use crate::wait_event::ProcessWaits;

use super::{descend, is_spent, push_head, push_node};

/// Two leaves under one branch, and where the branch has the right one.
struct Pair {
    branch: BlockAddress,
    left: BlockAddress,
    right: BlockAddress,
    position: u16,
}

/// What became of an attempt.
enum Attempt {
    /// Both leaves are one.
    Merged([BlockAddress; 2]),
    /// It may be possible when others have come further.
    Later,
    /// Not before the leaves have changed.
    NotNow,
}

/// Which neighbour a leaf may become one with.
#[derive(Clone, Copy)]
enum Beside {
    Right,
    Left,
}

/// Takes a leaf out of the tree that holds nothing but ghosts, if there is one.
pub(super) async fn reclaim(
    sga: &Sga,
    waits: &ProcessWaits,
    builder: &mut RecordBuilder,
    index: &Index,
) -> Result<()> {
    let Some(address) = index.emptied.take_waiting() else {
        return Ok(());
    };
    let reclaimed = reclaim_leaf(sga, waits, builder, index, address).await;
    if reclaimed.is_err() {
        index.emptied.give_back(address);
    }
    reclaimed
}

async fn reclaim_leaf(
    sga: &Sga,
    waits: &ProcessWaits,
    builder: &mut RecordBuilder,
    index: &Index,
    address: BlockAddress,
) -> Result<()> {
    let low = {
        let pin = sga.cache.get(sga, waits, address).await?;
        let block = pin.read(sga, waits).await?;
        let low = holds_nothing(&block, index).then(|| index::low(&block));
        low.map(|low| (low.key.to_vec(), low.row))
    };
    let Some((key, row)) = low else {
        return settle(sga, waits, builder, index, address).await;
    };
    let place = EntryPlace { key: &key, row };
    for beside in [Beside::Right, Beside::Left] {
        match merge(sga, waits, builder, index, place, beside).await? {
            Attempt::NotNow => {}
            Attempt::Later => {
                index.emptied.wait_again(address);
                return Ok(());
            }
            Attempt::Merged(leaves) => {
                for leaf in leaves {
                    settle(sga, waits, builder, index, leaf).await?;
                }
                return Ok(());
            }
        }
    }
    index.emptied.set_aside(address);
    Ok(())
}

/// Makes one of the leaf of a place and a neighbour.
async fn merge(
    sga: &Sga,
    waits: &ProcessWaits,
    builder: &mut RecordBuilder,
    index: &Index,
    place: EntryPlace<'_>,
    beside: Beside,
) -> Result<Attempt> {
    let pair = match find_pair(sga, waits, index, place, beside).await? {
        Ok(pair) => pair,
        Err(why_not) => return Ok(why_not),
    };
    let wanted = [pair.branch, pair.left, pair.right, index.root.head].map(Wanted::Present);
    let pins = sga.cache.get_all(sga, waits, wanted).await?;
    let pins = [&pins[0], &pins[1], &pins[2], &pins[3]];
    let (attempt, _) = change(sga, waits, builder, &pins, |blocks, builder| {
        Ok(plan(sga, builder, index, &pair, blocks))
    })
    .await?;
    Ok(attempt)
}

/// A leaf has been split. Tells the map of a half that holds nothing, if it does not know.
pub(super) async fn tell_if_emptied(
    sga: &Sga,
    waits: &ProcessWaits,
    builder: &mut RecordBuilder,
    index: &Index,
    address: BlockAddress,
) -> Result<()> {
    let is_news = |block: &[u8]| {
        address != index.root.address
            && holds_nothing(block, index)
            && !index.emptied.is_known(address)
    };
    {
        let pin = sga.cache.get(sga, waits, address).await?;
        let block = pin.read(sga, waits).await?;
        if !is_news(&block) {
            return Ok(());
        }
    }
    let (map, _) = space_map::place_of(sga.settings.block_bytes, address);
    let [map, leaf] = sga.cache.get_two(sga, waits, [map, address]).await?;
    let plan = |blocks: &[ExclusiveBlock<'_>], builder: &mut RecordBuilder| {
        let is_told = is_news(&blocks[0]);
        if is_told {
            push_fill(sga, builder, address, Fill::Room);
        }
        Ok(is_told)
    };
    let learn = |is_told: &bool| {
        if *is_told {
            index.emptied.learn(address);
        }
    };
    change_and_note(sga, waits, builder, &[&leaf, &map], plan, learn).await?;
    Ok(())
}

/// Tells the map that a leaf is no longer one that holds nothing, if that is so.
async fn settle(
    sga: &Sga,
    waits: &ProcessWaits,
    builder: &mut RecordBuilder,
    index: &Index,
    address: BlockAddress,
) -> Result<()> {
    if !index.emptied.is_mapped() || !index.emptied.is_known(address) {
        return Ok(());
    }
    let (emptied, told) = (&index.emptied, (address, Fill::Untold));
    let is_empty = |block: &[u8]| holds_nothing(block, index);
    if tell_unless(sga, waits, builder, emptied, told, is_empty).await? {
        emptied.wait_again(address);
    }
    Ok(())
}

/// True when a block is a leaf without an entry that counts.
fn holds_nothing(block: &[u8], of: &Index) -> bool {
    index::is_node(block)
        && crate::block::segment(block) == of.root.segment
        && index::level(block) == 0
        && index::entries(block).all(|entry| entry.is_ghost)
}

/// The leaf of a place and the one beside it, or why there are none.
async fn find_pair(
    sga: &Sga,
    waits: &ProcessWaits,
    index: &Index,
    place: EntryPlace<'_>,
    beside: Beside,
) -> Result<std::result::Result<Pair, Attempt>> {
    let Some(branch) = descend(sga, waits, index.root, place, 0).await?.parent else {
        return Ok(Err(Attempt::NotNow));
    };
    let pin = sga.cache.get(sga, waits, branch).await?;
    let block = pin.read(sga, waits).await?;
    let is_above = index::covers(&block, index.root.segment, place) == Covers::Here
        && index::level(&block) == 1;
    if !is_above {
        // It has split, or merged, since it led to the leaf.
        return Ok(Err(Attempt::Later));
    }
    let (leaf, _) = index::child(&block, place);
    // Of the right one of the two.
    let position = match beside {
        Beside::Right => leaf + 1,
        Beside::Left => leaf,
    };
    if position == 0 || position == index::count(&block) {
        return Ok(Err(Attempt::NotNow));
    }
    Ok(Ok(Pair {
        branch,
        left: child_at(&block, position - 1),
        right: child_at(&block, position),
        position,
    }))
}

fn child_at(branch: &[u8], position: u16) -> BlockAddress {
    BlockAddress::from_u64(index::entry(branch, position).number.unwrap_or(0))
}

/// Adds the vectors that make one of two leaves; the blocks are the branch, both leaves, and the header.
fn plan(
    sga: &Sga,
    builder: &mut RecordBuilder,
    of: &Index,
    pair: &Pair,
    blocks: &[ExclusiveBlock<'_>],
) -> Attempt {
    let [branch, left, right, head] = [0, 1, 2, 3].map(|number| &*blocks[number]);
    let (root, position) = (of.root, pair.position);
    let is_branch = index::is_node(branch)
        && crate::block::segment(branch) == root.segment
        && index::level(branch) == 1
        && position < index::count(branch);
    let is_pair = is_branch
        && (child_at(branch, position - 1), child_at(branch, position)) == (pair.left, pair.right);
    if !is_pair {
        return Attempt::Later;
    }
    let spent = is_spent(sga);
    let is_wanted =
        |entry: &index::IndexEntry<'_>| !(entry.is_ghost && entry.number.is_some_and(&spent));
    let are_wanted = |block| index::entries(block).any(|entry| is_wanted(&entry));
    if are_wanted(left) && are_wanted(right) {
        let has_live = |block| index::entries(block).any(|entry| !entry.is_ghost);
        return match has_live(left) && has_live(right) {
            true => Attempt::NotNow,
            false => Attempt::Later,
        };
    }
    let kept = |block| {
        let wanted = index::entries(block).filter(is_wanted);
        wanted.map(move |entry| (index::prefix(block), entry))
    };
    let merged = Node {
        high: index::high(right),
        right: index::right(right),
        ..Node::of(left)
    };
    let merged = merged.with(kept(left).chain(kept(right)));
    if !index::node_fits(&merged, left.len()) {
        return Attempt::NotNow;
    }
    probe::hit(Probe::LeafReclaimed);
    let before = IndexHead::of(head);
    let next = before.free.map_or(0, BlockAddress::to_u64);
    builder.push(
        VectorKind::DropEntry,
        pair.branch,
        &[&position.to_le_bytes()],
    );
    push_node(builder, pair.left, root, &merged);
    let segment = root.segment.to_le_bytes();
    builder.push(
        VectorKind::FreeNode,
        pair.right,
        &[&segment, &next.to_le_bytes()],
    );
    let head = IndexHead {
        free: Some(pair.right),
        ..before
    };
    push_head(builder, root, head);
    Attempt::Merged([pair.left, pair.right])
}
