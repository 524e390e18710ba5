//! Index blocks: one node of a B+tree each. A node holds the entries from its low fence up to its high fence, in order,
//! and the address of its right neighbour (Lehman and Yao 1981; fence keys as in Graefe, "Modern B-Tree Techniques",
//! 2011). What the two fences have in common all keys between them begin with: that prefix is stored once, as part of
//! the fence. An entry is a key and a rowid; entries of equal keys are in the order of their rowids, so no two are the
//! same. In a branch the entry is the low fence of a child and bears the child's address.
//!
//! After the block's header: level (1; 0 is a leaf), whether there is a high fence (1), entries (2), where the lowest
//! entry begins (2), bytes of entries in use (2), length of the prefix (2), of the low fence's key (2), of the high
//! fence's (2), unused (2), right neighbour (8), rowids of the fences (8 each), their keys; then the directory, two
//! bytes for where each entry begins; free space; and entries, from the end downwards. Entry: length of its key without
//! the prefix (2; upper bits: it is a ghost, it bears a number), rowid (8), number if it bears one (8), key. The number
//! is a child's address, or the transaction that deleted the entry: deleted entries stay as ghosts while any reader
//! may want them.
//!
//! The first block of an index is its header, level 255: first free block (8) and first block never used (4).

use std::cmp::Ordering;

use super::{
    BlockAddress, BlockKind, HEADER_BYTES, RowId, format, get_u16, get_u32, get_u64, kind, put,
};

const RIGHT_AT: usize = HEADER_BYTES + 16;
const LOW_ROW_AT: usize = RIGHT_AT + 8;
const HIGH_ROW_AT: usize = LOW_ROW_AT + 8;
const FENCES_AT: usize = HIGH_ROW_AT + 8;
/// Level of a block that is in no tree.
const FREE: u8 = 254;
/// Level of an index's first block.
const HEAD: u8 = 255;
const GHOST: u16 = 1 << 15;
const NUMBERED: u16 = 1 << 14;
const LENGTH: u16 = NUMBERED - 1;
/// Room that is set aside for the bytes of a node: those of the usual block.
const LIKELY_NODE_BYTES: usize = 8192;
/// Room is set aside for as many entries as there would be of this length.
const LIKELY_ENTRY_BYTES: usize = 20;

/// A place in the order of entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct EntryPlace<'a> {
    /// The key.
    pub key: &'a [u8],
    /// Among equal keys.
    pub row: RowId,
}

impl EntryPlace<'_> {
    /// Before every entry.
    pub const FIRST: EntryPlace<'static> = EntryPlace {
        key: &[],
        row: RowId {
            address: BlockAddress { file: 0, block: 0 },
            slot: 0,
        },
    };
}

/// An entry of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IndexEntry<'a> {
    /// Its key, without the node's prefix.
    pub suffix: &'a [u8],
    /// Its rowid.
    pub row: RowId,
    /// A child's address; of an entry that was ever deleted, the last transaction that did so.
    pub number: Option<u64>,
    /// It is deleted.
    pub is_ghost: bool,
}

impl IndexEntry<'_> {
    /// As stored.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(stored_bytes(self.suffix.len(), self.number.is_some()));
        self.store(&[], &mut bytes);
        bytes
    }

    /// Adds it to `bytes` as stored, its key longer by what comes `before`.
    pub fn store(&self, before: &[u8], bytes: &mut Vec<u8>) {
        let ghost = if self.is_ghost { GHOST } else { 0 };
        let numbered = self.number.map_or(0, |_| NUMBERED);
        let head = (before.len() + self.suffix.len()) as u16 | ghost | numbered;
        bytes.extend_from_slice(&head.to_le_bytes());
        bytes.extend_from_slice(&self.row.to_bytes());
        if let Some(number) = self.number {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        bytes.extend_from_slice(before);
        bytes.extend_from_slice(self.suffix);
    }

    /// The entry at the beginning of `bytes`, and its length as stored; `None` when there is none.
    fn read(bytes: &[u8]) -> Option<(IndexEntry<'_>, usize)> {
        let head = u16::from_le_bytes(*bytes.first_chunk()?);
        let (key_bytes, is_numbered) = (usize::from(head & LENGTH), head & NUMBERED != 0);
        let length = stored_bytes(key_bytes, is_numbered);
        let bytes = bytes.get(..length)?;
        let entry = IndexEntry {
            suffix: &bytes[length - key_bytes..],
            row: RowId::from_bytes(&bytes[2..]),
            number: is_numbered.then(|| get_u64(bytes, 2 + RowId::BYTES)),
            is_ghost: head & GHOST != 0,
        };
        Some((entry, length))
    }
}

/// Bytes that an entry takes, without its place in the directory.
pub fn stored_bytes(key_bytes: usize, is_numbered: bool) -> usize {
    2 + RowId::BYTES + if is_numbered { 8 } else { 0 } + key_bytes
}

/// The longest key: of the longest, with the fences, five fit into a block.
pub fn key_bytes_max(block_bytes: usize) -> usize {
    block_bytes / 8
}

/// What an index's first block says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IndexHead {
    /// The first of the blocks that are free again; each knows the next.
    pub free: Option<BlockAddress>,
    /// The first block that was never used, counted over the extents.
    pub fresh: u32,
}

impl IndexHead {
    /// Bytes as stored.
    pub const BYTES: usize = 12;

    /// As stored.
    pub fn to_bytes(self) -> [u8; IndexHead::BYTES] {
        let mut bytes = [0; IndexHead::BYTES];
        put(&mut bytes, 0, &link(self.free).to_le_bytes());
        put(&mut bytes, 8, &self.fresh.to_le_bytes());
        bytes
    }

    /// That of an index's first block.
    pub fn of(block: &[u8]) -> IndexHead {
        IndexHead {
            free: linked(block, RIGHT_AT),
            fresh: get_u32(block, RIGHT_AT + 8),
        }
    }

    /// Writes it into the first block.
    pub fn set(block: &mut [u8], bytes: &[u8]) {
        put(block, RIGHT_AT, bytes);
    }
}

fn link(address: Option<BlockAddress>) -> u64 {
    address.map_or(0, BlockAddress::to_u64)
}

fn linked(block: &[u8], at: usize) -> Option<BlockAddress> {
    let number = get_u64(block, at);
    (number != 0).then(|| BlockAddress::from_u64(number))
}

/// Makes an index's first block.
pub fn format_head(block: &mut [u8], address: BlockAddress, segment: u32, head: IndexHead) {
    format(block, BlockKind::Index, address, segment);
    block[HEADER_BYTES..].fill(0);
    block[HEADER_BYTES] = HEAD;
    IndexHead::set(block, &head.to_bytes());
}

/// Makes a block that is in no tree; `next` is the next free one.
pub fn format_free(block: &mut [u8], address: BlockAddress, segment: u32, next: u64) {
    format(block, BlockKind::Index, address, segment);
    block[HEADER_BYTES..].fill(0);
    block[HEADER_BYTES] = FREE;
    put(block, RIGHT_AT, &next.to_le_bytes());
}

/// True when the block is an index's first.
pub fn is_head(block: &[u8]) -> bool {
    kind(block) == BlockKind::Index as u8 && block[HEADER_BYTES] == HEAD
}

/// True when the block is free, to be used again.
pub fn is_free(block: &[u8]) -> bool {
    kind(block) == BlockKind::Index as u8 && block[HEADER_BYTES] == FREE
}

/// True when the block is a node of a tree.
pub fn is_node(block: &[u8]) -> bool {
    kind(block) == BlockKind::Index as u8 && block[HEADER_BYTES] < FREE
}

/// A node's level; 0 is a leaf.
pub fn level(block: &[u8]) -> u8 {
    block[HEADER_BYTES]
}

/// Entries of a node.
pub fn count(block: &[u8]) -> u16 {
    get_u16(block, HEADER_BYTES + 2)
}

/// A node's right neighbour; of a free block the next free one.
pub fn right(block: &[u8]) -> Option<BlockAddress> {
    linked(block, RIGHT_AT)
}

fn size(block: &[u8], at: usize) -> usize {
    usize::from(get_u16(block, HEADER_BYTES + at))
}

fn set_size(block: &mut [u8], at: usize, size: usize) {
    put(block, HEADER_BYTES + at, &(size as u16).to_le_bytes());
}

fn start(block: &[u8]) -> usize {
    size(block, 4)
}

fn used(block: &[u8]) -> usize {
    size(block, 6)
}

/// What all keys of the node begin with.
pub fn prefix(block: &[u8]) -> &[u8] {
    &block[FENCES_AT..FENCES_AT + size(block, 8)]
}

/// The first place that the node covers.
pub fn low(block: &[u8]) -> EntryPlace<'_> {
    EntryPlace {
        key: &block[FENCES_AT..FENCES_AT + size(block, 10)],
        row: RowId::from_bytes(&block[LOW_ROW_AT..]),
    }
}

/// The first place after those that the node covers; `None`: it covers all there are.
pub fn high(block: &[u8]) -> Option<EntryPlace<'_>> {
    let at = FENCES_AT + size(block, 10);
    (block[HEADER_BYTES + 1] != 0).then(|| EntryPlace {
        key: &block[at..at + size(block, 12)],
        row: RowId::from_bytes(&block[HIGH_ROW_AT..]),
    })
}

fn directory(block: &[u8]) -> usize {
    FENCES_AT + size(block, 10) + size(block, 12)
}

fn gap(block: &[u8]) -> usize {
    start(block) - directory(block) - 2 * usize::from(count(block))
}

/// Where a node stands to a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Covers {
    /// It is the node's.
    Here,
    /// It is further right: the node was split since its address was found.
    Right(BlockAddress),
    /// The block is not a node of this index any longer, or one of places further right.
    Elsewhere,
}

/// Whether the block is the node of `segment` that covers a place.
pub fn covers(block: &[u8], segment: u32, place: EntryPlace<'_>) -> Covers {
    if !is_node(block) || super::segment(block) != segment || place < low(block) {
        return Covers::Elsewhere;
    }
    match (high(block), right(block)) {
        (Some(high), Some(right)) if place >= high => Covers::Right(right),
        _ => Covers::Here,
    }
}

/// The entry at a position.
pub fn entry(block: &[u8], position: u16) -> IndexEntry<'_> {
    let at = directory(block) + 2 * usize::from(position);
    let start = usize::from(get_u16(block, at));
    IndexEntry::read(&block[start..])
        .expect("the directory leads to entries")
        .0
}

/// Every entry, in order.
pub fn entries(block: &[u8]) -> impl DoubleEndedIterator<Item = IndexEntry<'_>> {
    (0..count(block)).map(move |position| entry(block, position))
}

/// An entry's whole key.
pub fn key_of(block: &[u8], entry: &IndexEntry<'_>) -> Vec<u8> {
    [prefix(block), entry.suffix].concat()
}

/// Where the entry of a place is, which the node covers; else where it would be put.
pub fn find(block: &[u8], place: EntryPlace<'_>) -> Result<u16, u16> {
    let suffix = &place.key[size(block, 8).min(place.key.len())..];
    let starts = &block[directory(block)..];
    let order_at = |position: u16| {
        let stored = &block[usize::from(get_u16(starts, 2 * usize::from(position)))..];
        stored_order(stored, suffix, place.row)
    };
    let (mut from, mut to) = (0, count(block));
    // Rows often come in the order of their keys.
    if to > 0 && order_at(to - 1) == Ordering::Less {
        return Err(to);
    }
    while from < to {
        let middle = from + (to - from) / 2;
        match order_at(middle) {
            Ordering::Less => from = middle + 1,
            Ordering::Equal => return Ok(middle),
            Ordering::Greater => to = middle,
        }
    }
    Err(from)
}

/// Whether a leaf holds a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holds {
    /// It has an entry of it that is not deleted.
    Key,
    /// It has none, and neither has any other leaf.
    Nothing,
    /// It has none from the place on that was asked for; its right neighbour may, among rows from this one on.
    PerhapsRight(RowId),
}

/// Whether a leaf that covers a place holds its key, from there on.
pub fn holds(block: &[u8], place: EntryPlace<'_>) -> Holds {
    let from = find(block, place).unwrap_or_else(|position| position);
    let suffix = &place.key[prefix(block).len()..];
    let entries = (from..count(block)).map(|position| entry(block, position));
    let mut same = entries.take_while(|entry| entry.suffix == suffix);
    if same.any(|entry| !entry.is_ghost) {
        return Holds::Key;
    }
    match high(block) {
        Some(high) if high.key == place.key => Holds::PerhapsRight(high.row),
        _ => Holds::Nothing,
    }
}

/// How the entry at the beginning of `stored` stands to a place, without reading more of it than that takes.
fn stored_order(stored: &[u8], suffix: &[u8], row: RowId) -> Ordering {
    let head = get_u16(stored, 0);
    let length = stored_bytes(usize::from(head & LENGTH), head & NUMBERED != 0);
    let key = &stored[length - usize::from(head & LENGTH)..length];
    key.cmp(suffix)
        .then_with(|| RowId::from_bytes(&stored[2..]).cmp(&row))
}

/// Where in a branch the child is that covers a place: its position and its address.
pub fn child(block: &[u8], place: EntryPlace<'_>) -> (u16, BlockAddress) {
    let position = find(block, place).unwrap_or_else(|after| after.saturating_sub(1));
    let number = entry(block, position).number;
    (position, BlockAddress::from_u64(number.unwrap_or(0)))
}

/// How a node makes room.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fit {
    /// The room exists already.
    Now,
    /// When it is tidied up: the entries at these positions go, and those at the others lose their numbers.
    Tidied(Vec<u16>, Vec<u16>),
    /// Only when it is split.
    No,
}

/// How `bytes` get room, and two more in the directory if they are a `new` entry's. Ghosts may go when `is_spent` says
/// so of the transaction that deleted them; an entry loses the number of one that has ended when `is_spent` says so,
/// unless it is the one at `kept`.
pub fn fit(
    block: &[u8],
    bytes: usize,
    new: bool,
    kept: Option<u16>,
    is_spent: impl Fn(u64) -> bool,
) -> Fit {
    let needed = bytes + if new { 2 } else { 0 };
    if gap(block) >= needed {
        return Fit::Now;
    }
    let (mut gone, mut bare) = (Vec::new(), Vec::new());
    let mut free = block.len() - directory(block) - 2 * usize::from(count(block)) - used(block);
    if level(block) == 0 {
        for position in (0..count(block)).filter(|&position| is_numbered(block, position)) {
            let entry = entry(block, position);
            let spent = entry.number.is_some_and(&is_spent);
            if Some(position) == kept || !spent {
                continue;
            }
            if entry.is_ghost {
                gone.push(position);
                free += 2 + stored_bytes(entry.suffix.len(), true);
            } else {
                bare.push(position);
                free += 8;
            }
        }
    }
    match free >= needed {
        true => Fit::Tidied(gone, bare),
        false => Fit::No,
    }
}

/// What the entry at a position begins with.
fn head_at(block: &[u8], position: u16) -> u16 {
    let at = directory(block) + 2 * usize::from(position);
    get_u16(block, usize::from(get_u16(block, at)))
}

/// True when the entry at a position bears a number.
fn is_numbered(block: &[u8], position: u16) -> bool {
    head_at(block, position) & NUMBERED != 0
}

/// True when [`put_entry`] has room for an entry of `bytes`.
pub fn takes(block: &[u8], position: u16, replaces: bool, bytes: &[u8]) -> bool {
    let Some((_, length)) = IndexEntry::read(bytes) else {
        return false;
    };
    let fits = match replaces {
        true => {
            position < count(block)
                && (stored_at(block, position) == length || gap(block) >= length)
        }
        false => position <= count(block) && gap(block) >= length + 2,
    };
    fits && length == bytes.len()
}

fn stored_at(block: &[u8], position: u16) -> usize {
    let head = head_at(block, position);
    stored_bytes(usize::from(head & LENGTH), head & NUMBERED != 0)
}

/// Puts an entry, as stored, at a position: replacing the one there, or before it.
pub fn put_entry(block: &mut [u8], position: u16, replaces: bool, bytes: &[u8]) {
    let directory = directory(block);
    let at = directory + 2 * usize::from(position);
    let mut in_use = used(block) + bytes.len();
    if replaces {
        let before = stored_at(block, position);
        if before == bytes.len() {
            let start = usize::from(get_u16(block, at));
            return put(block, start, bytes);
        }
        in_use -= before;
    } else {
        let end = directory + 2 * usize::from(count(block));
        block.copy_within(at..end, at + 2);
        let count = count(block) + 1;
        set_size(block, 2, usize::from(count));
    }
    let start = start(block) - bytes.len();
    put(block, start, bytes);
    put(block, at, &(start as u16).to_le_bytes());
    set_size(block, 4, start);
    set_size(block, 6, in_use);
}

/// Takes the entry at a position away.
pub fn drop_entry(block: &mut [u8], position: u16) {
    let in_use = used(block) - stored_at(block, position);
    let directory = directory(block);
    let (at, end) = (
        directory + 2 * usize::from(position),
        directory + 2 * usize::from(count(block)),
    );
    block.copy_within(at + 2..end, at);
    let count = count(block) - 1;
    set_size(block, 2, usize::from(count));
    set_size(block, 6, in_use);
}

/// Takes the entries at positions `gone` away and the numbers of those at `bare`, both in order, and moves the others
/// together.
pub fn tidy(block: &mut [u8], gone: &[u16], bare: &[u16]) {
    let before = block.to_vec();
    let has = |positions: &[u16], position| positions.binary_search(&position).is_ok();
    let kept = (0..)
        .zip(entries(&before))
        .filter(|(position, _)| !has(gone, *position));
    let bared = kept.map(|(position, entry)| IndexEntry {
        number: entry.number.filter(|_| !has(bare, position)),
        ..entry
    });
    fill(block, bared.map(|entry| entry.to_bytes()));
}

/// Puts entries, as stored and in order, into a node without any. Bytes of no entry become zero.
fn fill(block: &mut [u8], entries: impl Iterator<Item = impl AsRef<[u8]>>) {
    let directory = directory(block);
    let (mut start, mut count) = (block.len(), 0);
    block[directory..].fill(0);
    for entry in entries {
        let entry = entry.as_ref();
        start -= entry.len();
        put(block, start, entry);
        put(block, directory + 2 * count, &(start as u16).to_le_bytes());
        count += 1;
    }
    let in_use = block.len() - start;
    set_size(block, 2, count);
    set_size(block, 4, start);
    set_size(block, 6, in_use);
}

/// A node as it is to be made: its entries with whole keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node<'a> {
    /// 0: a leaf.
    pub level: u8,
    /// Where it begins.
    pub low: EntryPlace<'a>,
    /// Where its right neighbour does.
    pub high: Option<EntryPlace<'a>>,
    /// Its right neighbour.
    pub right: Option<BlockAddress>,
}

fn common(left: &[u8], right: &[u8]) -> usize {
    left.iter()
        .zip(right)
        .take_while(|(left, right)| left == right)
        .count()
}

impl<'a> Node<'a> {
    /// That of a block.
    pub fn of(block: &'a [u8]) -> Node<'a> {
        Node {
            level: level(block),
            low: low(block),
            high: high(block),
            right: right(block),
        }
    }

    fn prefix_bytes(&self) -> usize {
        self.high.map_or(0, |high| common(self.low.key, high.key))
    }

    /// The node with entries of another, or of others, as the redo has it: what stands between the block's header and
    /// the directory, then the entries.
    pub fn with<'b>(&self, entries: impl Iterator<Item = (&'b [u8], IndexEntry<'b>)>) -> Vec<u8> {
        let high = self.high.unwrap_or(EntryPlace::FIRST);
        let mut bytes = Vec::with_capacity(LIKELY_NODE_BYTES);
        bytes.resize(FENCES_AT - HEADER_BYTES, 0);
        bytes[0] = self.level;
        bytes[1] = u8::from(self.high.is_some());
        put(&mut bytes, 8, &(self.prefix_bytes() as u16).to_le_bytes());
        put(&mut bytes, 10, &(self.low.key.len() as u16).to_le_bytes());
        put(&mut bytes, 12, &(high.key.len() as u16).to_le_bytes());
        put(
            &mut bytes,
            RIGHT_AT - HEADER_BYTES,
            &link(self.right).to_le_bytes(),
        );
        put(
            &mut bytes,
            LOW_ROW_AT - HEADER_BYTES,
            &self.low.row.to_bytes(),
        );
        put(&mut bytes, HIGH_ROW_AT - HEADER_BYTES, &high.row.to_bytes());
        bytes.extend_from_slice(self.low.key);
        bytes.extend_from_slice(high.key);
        let shared = self.prefix_bytes();
        for (prefix, entry) in entries {
            let suffix = &entry.suffix[shared.saturating_sub(prefix.len())..];
            let before = &prefix[shared.min(prefix.len())..];
            IndexEntry { suffix, ..entry }.store(before, &mut bytes);
        }
        bytes
    }
}

/// Cuts a node as the redo has it into what stands before the directory, and its entries.
fn parse(bytes: &[u8]) -> Option<(&[u8], Vec<&[u8]>)> {
    let length = |at: usize| {
        Some(usize::from(u16::from_le_bytes(
            *bytes.get(at..)?.first_chunk()?,
        )))
    };
    let (prefix, low) = (length(8)?, length(10)?);
    let fixed = FENCES_AT - HEADER_BYTES + low + length(12)?;
    let (before, mut rest) = bytes.split_at_checked(fixed)?;
    let mut entries = Vec::with_capacity(rest.len() / LIKELY_ENTRY_BYTES);
    while !rest.is_empty() {
        let (entry, after) = rest.split_at(IndexEntry::read(rest)?.1);
        entries.push(entry);
        rest = after;
    }
    (prefix <= low && before[0] < FREE).then_some((before, entries))
}

/// True when a node as the redo has it fits a block of `block_bytes`.
pub fn node_fits(bytes: &[u8], block_bytes: usize) -> bool {
    parse(bytes)
        .is_some_and(|(_, entries)| HEADER_BYTES + bytes.len() + 2 * entries.len() <= block_bytes)
}

/// Makes a node of what the redo has.
pub fn format_node(block: &mut [u8], address: BlockAddress, segment: u32, bytes: &[u8]) {
    let (before, entries) = parse(bytes).expect("a node that was checked");
    format(block, BlockKind::Index, address, segment);
    block[HEADER_BYTES..].fill(0);
    put(block, HEADER_BYTES, before);
    fill(block, entries.into_iter());
}

/// True when [`cut`] can be carried out.
pub fn takes_cut(block: &[u8], keep: u16, high: EntryPlace<'_>) -> bool {
    if !(1..count(block)).contains(&keep) {
        return false;
    }
    let [last, first] = [keep - 1, keep].map(|position| entry(block, position));
    let [last_key, first_key] = [&last, &first].map(|entry| key_of(block, entry));
    let place = |key, row| EntryPlace { key, row };
    let divides = place(&last_key[..], last.row) < high && high <= place(&first_key[..], first.row);
    divides && node_fits(&cut_node(block, keep, high, None), block.len())
}

fn cut_node(block: &[u8], keep: u16, high: EntryPlace<'_>, right: Option<BlockAddress>) -> Vec<u8> {
    let node = Node {
        high: Some(high),
        right,
        ..Node::of(block)
    };
    let kept = entries(block).take(usize::from(keep));
    node.with(kept.map(|entry| (prefix(block), entry)))
}

/// Leaves a node the first `keep` of its entries: the others have gone to its new right neighbour, which begins at
/// `high`.
pub fn cut(block: &mut [u8], keep: u16, high: EntryPlace<'_>, right: BlockAddress) {
    let node = cut_node(block, keep, high, Some(right));
    let address = BlockAddress::from_u64(get_u64(block, 8));
    let (segment, scn) = (super::segment(block), super::scn(block));
    format_node(block, address, segment, &node);
    super::set_scn(block, scn);
}

/// Where to split a node that has no room for an entry at `position`: how many of its entries stay. Where keys only
/// grow, the left one keeps 90 % of the bytes, for nothing will be put there again.
pub fn split_at(block: &[u8], position: u16) -> u16 {
    let grows = right(block).is_none() && position == count(block);
    let share = if grows { 90 } else { 50 };
    let limit = used(block) * share / 100;
    let (mut bytes, mut keep) = (0, 0);
    for position in 0..count(block) {
        bytes += stored_at(block, position);
        if bytes > limit {
            break;
        }
        keep += 1;
    }
    keep.clamp(1, count(block) - 1)
}

/// The place from which entries go to the right when a node is split: of a leaf the shortest that divides the entries
/// on both sides; of a branch the child's own.
pub fn separator(block: &[u8], keep: u16) -> (Vec<u8>, RowId) {
    let [left, right] = [keep - 1, keep].map(|position| entry(block, position));
    let mut key = key_of(block, &right);
    if level(block) > 0 || left.suffix == right.suffix {
        return (key, right.row);
    }
    key.truncate(prefix(block).len() + common(left.suffix, right.suffix) + 1);
    (key, EntryPlace::FIRST.row)
}

/// What the block says of itself that cannot be; `None` when all of it can.
pub fn check(block: &[u8]) -> Option<String> {
    if !is_node(block) {
        return None;
    }
    let (directory, start, count) = (directory(block), start(block), usize::from(count(block)));
    if directory + 2 * count > start || start > block.len() || size(block, 8) > size(block, 10) {
        return Some(format!(
            "its directory of {count} entries begins at byte {directory}, its entries at byte {start} of its {}",
            block.len()
        ));
    }
    if count == 0 && level(block) > 0 {
        return Some("it is a branch without an entry".to_string());
    }
    if high(block).is_some_and(|high| high <= low(block)) {
        return Some("it ends before it begins".to_string());
    }
    if high(block).is_some() != right(block).is_some() {
        return Some("it has an end and no right neighbour, or a neighbour and no end".to_string());
    }
    let shared = Node::of(block).prefix_bytes();
    if size(block, 8) != shared {
        let prefix = size(block, 8);
        return Some(format!(
            "its fences share {shared} bytes, not the {prefix} of its prefix"
        ));
    }
    let mut taken = 0;
    for place in block[directory..directory + 2 * count].chunks_exact(2) {
        let at = usize::from(u16::from_le_bytes([place[0], place[1]]));
        match block.get(at..).and_then(IndexEntry::read) {
            Some((_, length)) if at >= start => taken += length,
            _ => return Some(format!("an entry of its {count} begins at byte {at}")),
        }
    }
    if taken > block.len() - start {
        return Some(format!(
            "its {count} entries take {taken} bytes of the {} that they have",
            block.len() - start
        ));
    }
    if taken == used(block) {
        return None;
    }
    Some(format!(
        "its {count} entries take {taken} bytes, not the {} it says",
        used(block)
    ))
}

#[cfg(test)]
mod tests;
