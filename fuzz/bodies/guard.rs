//! Any content on a device before the guard: what holds anything but zeros, or a signature, is never taken for
//! empty, and never allowed unless the experiment names it. libblkid is asked through its tool, so this is slow.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use spindle_layout::guard::{
    DeviceContent, DeviceState, EDGE_BYTES, Footprint, Permit, Want, probe, verdict,
};
use spindle_layout::tool::Tools;
use spindle_system::SystemTree;

/// Size of the device: two ends, and something between them.
const DEVICE_BYTES: u64 = 3 * EDGE_BYTES;

/// Signatures by which others know their data: where, and what. Sources: libblkid's superblocks/*.c and partitions/*.c.
const SIGNATURES: [(u64, &[u8]); 10] = [
    (1080, b"\x53\xef"),
    (0, b"XFSB"),
    (0x10040, b"_BHRfS_M"),
    (512, b"LABELONE"),
    (512, b"EFI PART"),
    (510, b"\x55\xaa"),
    (4086, b"SWAPSPACE2"),
    (0, b"LUKS\xba\xbe"),
    (4096, b"\xfc\x4e\x2b\xa9"),
    (0, b"SPNDLDSK"),
];

/// The first byte chooses signatures, the rest are pieces: where in the device (2 bytes, scaled), how long, and what.
pub fn run(bytes: &[u8]) {
    let device = tempfile::tempfile().expect("a file for the device");
    device.set_len(DEVICE_BYTES).expect("its size");
    fill(&device, bytes);
    let mut held = vec![0; DEVICE_BYTES as usize];
    device.read_exact_at(&mut held, 0).expect("its content");
    let Ok(content) = probe(&Tools::new(), &device, DEVICE_BYTES) else {
        return; // What cannot be looked at is refused.
    };
    let has_something = held.iter().any(|byte| *byte != 0);
    if content == DeviceContent::Empty {
        assert!(!has_something, "it is not empty");
    } else {
        assert!(has_something, "{content}: there is nothing on it");
    }
    judge(&content, has_something);
}

fn fill(device: &File, bytes: &[u8]) {
    let Some((choice, mut pieces)) = bytes.split_first() else {
        return;
    };
    for (number, (at, signature)) in SIGNATURES.into_iter().enumerate() {
        if usize::from(*choice) % 16 == number || usize::from(*choice) / 16 == number + 1 {
            device.write_all_at(signature, at).expect("a signature");
        }
    }
    while let [high, low, length, rest @ ..] = pieces {
        let part = u64::from(u16::from_be_bytes([*high, *low]));
        let (piece, rest) = rest.split_at(usize::from(*length).min(rest.len()));
        let at = part * DEVICE_BYTES / 0x1_0000;
        let fits = (DEVICE_BYTES - at).min(piece.len() as u64) as usize;
        device.write_all_at(&piece[..fits], at).expect("a piece");
        pieces = rest;
    }
}

/// A device that nobody uses, with that content.
fn judge(content: &DeviceContent, has_something: bool) {
    let state = DeviceState {
        number: "8:16".parse().expect("a number"),
        name: "sdb".to_owned(),
        size_bytes: DEVICE_BYTES,
        read_only: false,
        uses: Vec::new(),
        identities: vec!["disk-of-mine".to_owned()],
        sequence: None,
        footprint: Footprint::default(),
        unseen: None,
    };
    let want = |erase| Want {
        path: Path::new("/dev/sdb"),
        least_bytes: 0,
        erase,
    };
    let tree = SystemTree::default();
    let other = ["disk-of-yours".to_owned()];
    for erase in [&[][..], &other] {
        let permit = verdict(&tree, &want(erase), &state, content);
        assert_eq!(permit.is_err(), has_something, "{content}: {permit:?}");
    }
    let mine = ["disk-of-mine".to_owned()];
    let permit = verdict(&tree, &want(&mine), &state, content);
    let permit = permit.expect("it is named in the experiment");
    assert_eq!(permit != Permit::Empty, has_something);
}

/// Each signature alone, nothing, and a byte in each end.
pub fn beginnings() -> Vec<Vec<u8>> {
    let mut beginnings: Vec<Vec<u8>> = (0..16).map(|choice| vec![choice]).collect();
    beginnings.push(Vec::new());
    beginnings.push(vec![15, 0, 9, 1, 1]);
    beginnings.push(vec![15, 0xff, 0xff, 2, 0, 1]);
    beginnings
}
