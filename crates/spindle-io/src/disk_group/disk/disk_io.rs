//! The group's own I/O to its disks: headers, metadata, change maps and copies of extents. Buffers are made for each
//! use; none of this is on the way of a database's I/O.

use std::sync::Arc;

use crate::arena::{Arena, ReadHold, WriteHold};
use crate::device::{
    BlockDevice, Completion, Fault, IoError, IoFailure, Request, Submission, read_blocks,
};
use crate::disk_group::disk::format::BLOCK_BYTES;

/// A device of the group.
pub(crate) type Device = Arc<dyn BlockDevice>;

/// Memory for `bytes` bytes, rounded up to whole blocks.
pub(crate) fn buffer(device: &Device, bytes: usize) -> Result<WriteHold, IoError> {
    let bytes = bytes.next_multiple_of(BLOCK_BYTES);
    let arena = Arena::new(bytes, 1).map_err(|error| {
        IoError::from(IoFailure {
            device: device.name().to_owned(),
            operation: "read",
            offset: 0,
            bytes,
            reason: format!("no memory for it: {error}"),
            fault: Fault::Other,
        })
    })?;
    let frame = arena.allocate().expect("a new arena has its frame");
    Ok(frame.try_write_hold().expect("the frame is nobody else's"))
}

/// The bytes, padded with zeros to whole blocks, ready to be written.
pub(crate) fn filled(device: &Device, bytes: &[u8]) -> Result<ReadHold, IoError> {
    let mut hold = buffer(device, bytes.len())?;
    hold[..bytes.len()].copy_from_slice(bytes);
    hold[bytes.len()..].fill(0);
    let length = hold.len();
    Ok(hold.share(length))
}

/// Reads `bytes` bytes, rounded up to whole blocks.
pub(crate) async fn read(device: &Device, offset: u64, bytes: usize) -> Result<WriteHold, IoError> {
    let into = buffer(device, bytes)?;
    read_into(device, offset, into).await
}

/// Fills a buffer.
pub(crate) async fn read_into(
    device: &Device,
    offset: u64,
    into: WriteHold,
) -> Result<WriteHold, IoError> {
    let mut into = read_blocks(&**device, offset, vec![into], Submission::Batched).await?;
    Ok(into.remove(0))
}

/// Begins to write.
pub(crate) fn begin_write(
    device: &Device,
    offset: u64,
    from: ReadHold,
    durable: bool,
) -> Completion {
    device.submit(Request::write(
        offset,
        vec![from],
        durable,
        Submission::Batched,
    ))
}

/// Writes bytes, padded to whole blocks, to stable storage.
pub(crate) async fn write(device: &Device, offset: u64, bytes: &[u8]) -> Result<(), IoError> {
    let from = filled(device, bytes)?;
    begin_write(device, offset, from, true).await.result
}
