//! External merge sort: records are sorted in memory, written as a run when it is full, and merged at the end. Their
//! order is that of their bytes.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::mem;

use super::TempWork;
use super::run::{Run, RunReader, RunWriter, arena};
use crate::error::Result;

/// What a record takes in memory beyond its bytes.
const RECORD_BYTES: usize = size_of::<Slot>();
/// Runs that are merged at once: their I/Os take half of the memory.
const FAN_IN: usize = 16;

/// A record in memory; its first bytes decide most comparisons.
#[derive(Clone, Copy)]
struct Slot {
    first: u64,
    start: u32,
    length: u32,
}

/// Records in memory.
#[derive(Default)]
pub(crate) struct InMemory {
    bytes: Vec<u8>,
    slots: Vec<Slot>,
    next: usize,
}

impl InMemory {
    fn add(&mut self, record: &[u8]) {
        let mut first = [0; 8];
        let length = record.len().min(8);
        first[..length].copy_from_slice(&record[..length]);
        self.slots.push(Slot {
            first: u64::from_be_bytes(first),
            start: self.bytes.len() as u32,
            length: record.len() as u32,
        });
        self.bytes.extend_from_slice(record);
    }

    fn size_bytes(&self) -> usize {
        self.bytes.len() + RECORD_BYTES * self.slots.len()
    }

    fn of(&self, slot: Slot) -> &[u8] {
        &self.bytes[slot.start as usize..][..slot.length as usize]
    }

    fn sort(&mut self) {
        let mut slots = mem::take(&mut self.slots);
        slots.sort_unstable_by(|a, b| {
            let by_first = a.first.cmp(&b.first);
            by_first.then_with(|| self.of(*a).cmp(self.of(*b)))
        });
        self.slots = slots;
    }

    fn next(&mut self, record: &mut Vec<u8>) -> bool {
        let Some(slot) = self.slots.get(self.next).copied() else {
            return false;
        };
        self.next += 1;
        record.clear();
        record.extend_from_slice(self.of(slot));
        true
    }
}

/// Sorts records.
pub(crate) struct Sorter {
    work: TempWork,
    memory: InMemory,
    runs: Vec<Run>,
}

/// What a sorter has come to: sorted records in memory or in runs, which are written or being read.
pub(crate) enum SortedPart<R = Run> {
    /// In memory, all of them.
    Memory(InMemory),
    /// In a run.
    Run(R),
}

impl Sorter {
    /// Without records.
    pub(crate) fn new(work: &TempWork) -> Sorter {
        Sorter {
            work: work.clone(),
            memory: InMemory::default(),
            runs: Vec::new(),
        }
    }

    /// Adds a record; [`Sorter::make_room`] is due now and then.
    pub(crate) fn add(&mut self, record: &[u8]) {
        self.memory.add(record);
    }

    /// Writes the records in memory as a run when they take all that there may be.
    pub(crate) async fn make_room(&mut self) -> Result<()> {
        match self.memory.size_bytes() >= self.work.memory_bytes {
            true => self.spill().await,
            false => Ok(()),
        }
    }

    async fn spill(&mut self) -> Result<()> {
        let mut memory = mem::take(&mut self.memory);
        memory.sort();
        let mut writer = RunWriter::new(&self.work, &arena(&self.work)?);
        for slot in &memory.slots {
            writer.put(memory.of(*slot)).await?;
        }
        self.runs.push(writer.finish().await?);
        memory.bytes.clear();
        memory.slots.clear();
        self.memory = memory;
        Ok(())
    }

    /// All records, sorted part by part.
    pub(crate) async fn finish(mut self) -> Result<Vec<SortedPart>> {
        if self.runs.is_empty() {
            self.memory.sort();
            return Ok(vec![SortedPart::Memory(self.memory)]);
        }
        if !self.memory.slots.is_empty() {
            self.spill().await?;
        }
        Ok(self.runs.into_iter().map(SortedPart::Run).collect())
    }
}

/// A part being read.
type Source = SortedPart<Box<RunReader>>;

impl Source {
    async fn next(&mut self, record: &mut Vec<u8>) -> Result<bool> {
        match self {
            SortedPart::Memory(memory) => Ok(memory.next(record)),
            SortedPart::Run(reader) => reader.next(record).await,
        }
    }
}

/// Sorted parts as one.
pub(crate) struct Merge {
    sources: Vec<Source>,
    /// The next record of each source that has one.
    heads: BinaryHeap<Reverse<(Vec<u8>, usize)>>,
}

impl Merge {
    /// Merges parts; where they are many, some first into longer runs.
    pub(crate) async fn new(work: &TempWork, mut parts: Vec<SortedPart>) -> Result<Merge> {
        while parts.len() > FAN_IN {
            // No more than needed, the oldest first: they are of about the same length.
            let count = (parts.len() - FAN_IN + 1).min(FAN_IN);
            let rest = parts.split_off(count);
            let mut merge = Merge::of(work, parts).await?;
            let mut writer = RunWriter::new(work, &arena(work)?);
            let mut record = Vec::new();
            while merge.next(&mut record).await? {
                writer.put(&record).await?;
            }
            parts = rest;
            parts.push(SortedPart::Run(writer.finish().await?));
        }
        Merge::of(work, parts).await
    }

    async fn of(work: &TempWork, parts: Vec<SortedPart>) -> Result<Merge> {
        let mut merge = Merge {
            sources: Vec::with_capacity(parts.len()),
            heads: BinaryHeap::new(),
        };
        for (number, part) in parts.into_iter().enumerate() {
            let mut source = match part {
                SortedPart::Memory(memory) => SortedPart::Memory(memory),
                SortedPart::Run(run) => SortedPart::Run(Box::new(RunReader::new(work, run)?)),
            };
            let mut record = Vec::new();
            if source.next(&mut record).await? {
                merge.heads.push(Reverse((record, number)));
            }
            merge.sources.push(source);
        }
        Ok(merge)
    }

    /// Puts the next record into `record`; false at the end.
    pub(crate) async fn next(&mut self, record: &mut Vec<u8>) -> Result<bool> {
        let Some(mut head) = self.heads.peek_mut() else {
            return Ok(false);
        };
        let (first, source) = &mut head.0;
        mem::swap(record, first);
        match self.sources[*source].next(first).await? {
            true => drop(head),
            false => {
                std::collections::binary_heap::PeekMut::pop(head);
            }
        }
        Ok(true)
    }
}
