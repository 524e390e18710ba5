//! Requests that cross the border of an extent or a fine stripe: each piece goes its own way, all at once. A write's
//! buffers are cut where the border falls; a read's belong to one piece each, and where one does not, the read goes by
//! way of buffers that do.

use crate::arena::{Arena, WriteHold};
use crate::device::{BlockDevice, Completion, IoOutcome, Operation, Request, Submission};
use crate::disk_group::file::group_file::GroupFile;

/// Starts all pieces of a request.
pub(crate) fn submit(file: &GroupFile, request: Request) -> Completion {
    let at = request.offset;
    let pieces = borders(file, at, request.bytes());
    match request.operation {
        Operation::Read(into) => read(file, at, into, &pieces),
        Operation::Write { atomic: true, .. } => {
            let reason =
                "a write that is not to be torn crosses the border of an extent".to_owned();
            Completion::ready(file.refused(at, request.operation, reason))
        }
        write => begin_write(file, at, write, &pieces),
    }
}

/// Lengths of the pieces.
fn borders(file: &GroupFile, mut at: u64, bytes: usize) -> Vec<usize> {
    let (mut left, mut pieces) = (bytes, Vec::new());
    while left > 0 {
        let piece = (file.locate(at).left).min(left as u64) as usize;
        pieces.push(piece);
        (at, left) = (at + piece as u64, left - piece);
    }
    pieces
}

fn begin_write(file: &GroupFile, at: u64, write: Operation, pieces: &[usize]) -> Completion {
    let Operation::Write { from, durable, .. } = &write else {
        unreachable!("a write is written")
    };
    let (mut under_way, mut offset) = (Vec::new(), at);
    let (mut hold, mut start) = (0, 0);
    for &piece in pieces {
        let (mut parts, mut left) = (Vec::new(), piece);
        while left > 0 {
            let length = left.min(from[hold].len() - start);
            if length > 0 {
                parts.push(from[hold].part(start, length));
            }
            (start, left) = (start + length, left - length);
            if start == from[hold].len() {
                (hold, start) = (hold + 1, 0);
            }
        }
        under_way.push(file.submit(Request::write(offset, parts, *durable, Submission::Batched)));
        offset += piece as u64;
    }
    file.in_steps(async move {
        let mut result = Ok(());
        for piece in under_way {
            result = result.and(piece.await.result);
        }
        IoOutcome {
            result,
            operation: write,
        }
    })
}

fn read(file: &GroupFile, at: u64, into: Vec<WriteHold>, pieces: &[usize]) -> Completion {
    let mut lengths = into.iter().map(|hold| hold.len());
    let fits = |piece: &usize| {
        let mut sum = 0;
        while sum < *piece {
            sum += lengths.next().expect("pieces are as long as buffers");
        }
        sum == *piece
    };
    if pieces.iter().all(fits) {
        return read_direct(file, at, into, pieces);
    }
    read_by_way(file, at, into, pieces)
}

fn read_direct(file: &GroupFile, at: u64, into: Vec<WriteHold>, pieces: &[usize]) -> Completion {
    let (mut under_way, mut offset) = (Vec::new(), at);
    let mut holds = into.into_iter();
    for &piece in pieces {
        let (mut own, mut bytes) = (Vec::new(), 0);
        while bytes < piece {
            let hold = holds.next().expect("pieces are as long as buffers");
            bytes += hold.len();
            own.push(hold);
        }
        under_way.push(file.submit(Request::read(offset, own, Submission::Batched)));
        offset += piece as u64;
    }
    file.in_steps(async move {
        let (mut result, mut into) = (Ok(()), Vec::new());
        for piece in under_way {
            let outcome = piece.await;
            result = result.and(outcome.result);
            if let Operation::Read(own) = outcome.operation {
                into.extend(own);
            }
        }
        IoOutcome {
            result,
            operation: Operation::Read(into),
        }
    })
}

fn read_by_way(
    file: &GroupFile,
    at: u64,
    mut into: Vec<WriteHold>,
    pieces: &[usize],
) -> Completion {
    let (mut under_way, mut offset) = (Vec::new(), at);
    for &piece in pieces {
        let arena = match Arena::new(piece.next_multiple_of(512), 1) {
            Ok(arena) if piece.is_multiple_of(512) => arena,
            _ => {
                let reason = "no memory to read it in pieces of whole sectors".to_owned();
                return Completion::ready(file.refused(at, Operation::Read(into), reason));
            }
        };
        let frame = arena.allocate().expect("a new arena has its frame");
        let own = frame.try_write_hold().expect("the frame is nobody else's");
        under_way.push(file.submit(Request::read(offset, vec![own], Submission::Batched)));
        offset += piece as u64;
    }
    file.in_steps(async move {
        let (mut result, mut bytes) = (Ok(()), Vec::new());
        for piece in under_way {
            let outcome = piece.await;
            result = result.and(outcome.result);
            if let Operation::Read(own) = outcome.operation {
                own.iter().for_each(|hold| bytes.extend_from_slice(hold));
            }
        }
        let mut rest = &bytes[..];
        for hold in &mut into {
            let (now, later) = rest.split_at(hold.len().min(rest.len()));
            hold[..now.len()].copy_from_slice(now);
            rest = later;
        }
        IoOutcome {
            result,
            operation: Operation::Read(into),
        }
    })
}
