//! Tables of random bytes: the guard never panics, and never allows a device that a line names as mounted, swap or
//! held, whatever stands around that line. The same seeds in every run; `SPINDLE_FUZZ_CASES` asks for more of them.

use std::path::Path;

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{RngCore, SeedableRng};
use spindle_layout::guard::{DeviceContent, DeviceState, GuardSurvey, Signature, Want, verdict};
use spindle_system::mounts::{parse_mounts, parse_swaps};

use super::machine::Machine;

/// Beginnings for mutation: what the kernel and blkid write, and what would be awkward.
const MOUNTS: [&str; 6] = [
    "27 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard\n",
    "40 27 8:17 / /data\\040one rw,noatime shared:5 master:1 - xfs /dev/sdc1 rw\n",
    "41 27 0:45 /sub /b rw unbindable - btrfs /dev/sdd rw,subvol=/sub\n",
    "42 27 0:3 net:[4026531840] /run/netns/a rw - nsfs nsfs rw\n",
    "43 27 0:60 / /nfs rw - nfs4 server:/export\\011x rw,addr=1.2.3.4\n",
    "44 27 7:1 / /very/long - squashfs - rw\n",
];
const SWAPS: [&str; 3] = [
    "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n",
    "/dev/sdc2                               partition\t4194300\t\t0\t\t-2\n",
    "/swap\\040file\\040(deleted)              file\t\t1024\t\t0\t\t-3\n",
];
const BLKID: [&str; 4] = [
    "DEVNAME=/dev/stdin\nUUID=1-2\nTYPE=ext4\n",
    "PTUUID=1\nPTTYPE=gpt\n",
    "PART_ENTRY_SCHEME=gpt\n",
    "LABEL=a b=c\\x20\n",
];

fn cases() -> u64 {
    std::env::var("SPINDLE_FUZZ_CASES").map_or(1000, |text| text.parse().unwrap())
}

struct Chance(Xoshiro256PlusPlus);

impl Chance {
    fn below(&mut self, limit: usize) -> usize {
        (self.0.next_u64() % limit.max(1) as u64) as usize
    }

    /// A few of `beginnings`, changed here and there, ending with a whole line.
    fn table(&mut self, beginnings: &[&str]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for _ in 0..self.below(4) {
            bytes.extend_from_slice(beginnings[self.below(beginnings.len())].as_bytes());
        }
        for _ in 0..self.below(6) {
            let at = self.below(bytes.len() + 1);
            match self.below(4) {
                0 => bytes.truncate(at),
                1 => bytes.insert(at, self.0.next_u64() as u8),
                2 if at < bytes.len() => bytes[at] = b" \n\\-/:=\t\x000"[self.below(10)],
                _ if at < bytes.len() => drop(bytes.remove(at)),
                _ => {}
            }
        }
        if !bytes.is_empty() && !bytes.ends_with(b"\n") {
            bytes.push(b'\n');
        }
        bytes
    }

    fn around(&mut self, line: &str, beginnings: &[&str]) -> Vec<u8> {
        [
            self.table(beginnings),
            line.as_bytes().to_vec(),
            self.table(beginnings),
        ]
        .concat()
    }
}

#[test]
fn a_device_that_a_line_names_is_never_allowed() {
    let mut machine = Machine::new();
    for line in ["disk sdb 8:16 1000000", "part sdb sdb1 8:17 500000"] {
        machine.add(line);
    }
    let (tree, path) = (machine.tree(), Path::new("/dev/sdb"));
    let erase = ["/dev/sdb".to_owned()];
    let want = Want {
        path,
        least_bytes: 0,
        erase: &erase,
    };
    let is_allowed = || {
        let survey = GuardSurvey::with_tables(&tree, "");
        let state =
            survey.map(|survey| DeviceState::of(&tree, &survey, "8:16".parse().unwrap(), path));
        state.is_ok_and(|state| {
            state.is_ok_and(|state| {
                verdict(&tree, &want, &state, &DeviceContent::Unknown(String::new())).is_ok()
            })
        })
    };
    let lines = [
        (
            "proc/self/mountinfo",
            "50 1 8:16 / /data rw - ext4 /dev/sdb rw\n",
        ),
        (
            "proc/self/mountinfo",
            "50 1 8:17 / / rw - ext4 /dev/root rw\n",
        ),
        (
            "proc/self/mountinfo",
            "50 1 0:99 / /data rw shared:9 - btrfs /dev/sdb1 rw\n",
        ),
        ("proc/swaps", "/dev/sdb partition 1 0 -2\n"),
        ("proc/swaps", "/dev/sdb1\tpartition\t1\t0\t-2\n"),
    ];
    let mut allowed_without = 0;
    for seed in 0..cases() {
        let mut chance = Chance(Xoshiro256PlusPlus::seed_from_u64(seed));
        let mounts = chance.table(&MOUNTS);
        let swaps = chance.table(&SWAPS);
        machine.write("proc/self/mountinfo", &mounts);
        machine.write("proc/swaps", &swaps);
        allowed_without += u64::from(is_allowed());
        let (file, line) = lines[chance.below(lines.len())];
        let beginnings: &[&str] = if file == "proc/swaps" {
            &SWAPS
        } else {
            &MOUNTS
        };
        machine.write(file, chance.around(line, beginnings));
        assert!(!is_allowed(), "seed {seed}: {line}");
    }
    assert!(
        allowed_without > cases() / 10,
        "{allowed_without}: the tables alone refuse nearly always"
    );

    machine.write("proc/self/mountinfo", "");
    machine.write("proc/swaps", "");
    assert!(is_allowed());
    for holder in [
        "sdb/holders/dm-0",
        "sdb/sdb1/holders/md127",
        "sdb/holders/ \u{1}x",
    ] {
        machine.write(&format!("sys/devices/{holder}"), "");
        assert!(!is_allowed(), "{holder}");
        std::fs::remove_file(machine.path(&format!("sys/devices/{holder}"))).unwrap();
    }
    assert!(is_allowed());
}

#[test]
fn random_bytes_are_parsed_without_panic_and_no_signature_is_overlooked() {
    for seed in 0..cases() {
        let mut chance = Chance(Xoshiro256PlusPlus::seed_from_u64(seed));
        let _ = parse_mounts(&chance.table(&MOUNTS));
        let _ = parse_swaps(&chance.table(&SWAPS));
        let code = [0, 2, 4, 8, -1][chance.below(5)];
        let _ = Signature::parse(code, &chance.table(&BLKID));
        let found = Signature::parse(0, &chance.around("TYPE=ext4\n", &BLKID));
        assert!(matches!(found, Ok(Some(_))), "seed {seed}: {found:?}");
        let mut noise = vec![0; chance.below(200)];
        chance.0.fill_bytes(&mut noise);
        let _ = (
            parse_mounts(&noise),
            parse_swaps(&noise),
            Signature::parse(0, &noise),
        );
    }
}
