//! Stacks of devices drawn by bytes: loop devices over partitions over loop devices over files, some of them in use.
//! What the guard says is compared with an oracle that knows of every unit of every device which unit of which file it
//! is, and walks nowhere: a device is free when no used device, and no other loop device, has one of its units. Whoever
//! includes this has the described machine of the guard's tests beside it, as `machine`.

use std::collections::BTreeSet;
use std::path::Path;

use super::machine::Machine;

/// Devices and files are measured in these.
const UNIT_SECTORS: u64 = 2048;

/// A file and one of its units.
type Unit = (usize, u64);

struct Node {
    name: String,
    number: String,
    units: Vec<Unit>,
    is_loop: bool,
    is_used: bool,
    /// What it stands on, and what that stands on.
    beneath: BTreeSet<usize>,
}

struct Drawn<'a> {
    machine: Machine,
    nodes: Vec<Node>,
    choices: &'a [u8],
}

impl Drawn<'_> {
    /// The next choice; the first one when there are none left.
    fn below(&mut self, limit: u64) -> u64 {
        let Some((choice, rest)) = self.choices.split_first() else {
            return 0;
        };
        self.choices = rest;
        u64::from(*choice) % limit
    }

    fn by(choices: &[u8]) -> Drawn<'_> {
        let mut drawn = Drawn {
            machine: Machine::new(),
            nodes: Vec::new(),
            choices,
        };
        for file in 0..2 {
            let name = format!("files/{file}.img");
            drawn.machine.add(&format!("file {name}"));
            let units = (0..16).map(|unit| (file, unit)).collect();
            drawn.push(name, String::new(), units, None, false);
        }
        for number in 0..2 + drawn.below(4) {
            drawn.attach(number);
        }
        for index in 0..drawn.nodes.len() {
            if drawn.below(8) == 1 {
                drawn.use_it(index);
            }
        }
        drawn
    }

    fn push(
        &mut self,
        name: String,
        number: String,
        units: Vec<Unit>,
        on: Option<usize>,
        is_loop: bool,
    ) {
        let mut beneath: BTreeSet<usize> =
            on.map_or_else(BTreeSet::new, |on| self.nodes[on].beneath.clone());
        beneath.extend(on);
        self.nodes.push(Node {
            name,
            number,
            units,
            is_loop,
            is_used: false,
            beneath,
        });
    }

    fn path(&self, index: usize) -> String {
        match self.nodes[index].number.is_empty() {
            true => self.nodes[index].name.clone(),
            false => format!("/dev/{}", self.nodes[index].name),
        }
    }

    /// A loop device over a range of something, now and then with two partitions.
    fn attach(&mut self, number: u64) {
        let on = self.below(self.nodes.len() as u64) as usize;
        let length = self.nodes[on].units.len() as u64;
        let first = self.below(length);
        let count = 1 + self.below(length - first);
        let (name, device) = (format!("loop{number}"), format!("7:{number}"));
        let (path, offset, sectors) = (
            self.path(on),
            first * UNIT_SECTORS * 512,
            count * UNIT_SECTORS,
        );
        self.machine
            .add(&format!("loop {name} {device} {path} {offset} {sectors}"));
        let units = self.nodes[on].units[first as usize..][..count as usize].to_vec();
        self.push(name.clone(), device, units.clone(), Some(on), true);
        let disk = self.nodes.len() - 1;
        if count < 3 || self.below(2) == 0 {
            return;
        }
        // The table takes the first unit.
        for (part, range) in [(1, 1..2), (2, 2..count as usize)] {
            let (part_name, device) = (
                format!("{name}p{part}"),
                format!("259:{}", number * 2 + part),
            );
            let sectors = range.len() as u64 * UNIT_SECTORS;
            self.machine
                .add(&format!("part {name} {part_name} {device} {sectors}"));
            self.push(part_name, device, units[range].to_vec(), Some(disk), false);
        }
    }

    fn use_it(&mut self, index: usize) {
        let path = self.path(index);
        let number = self.nodes[index].number.clone();
        let line = match self.below(4) {
            0 if !number.is_empty() => format!("mount {number} /data ext4 {path}"),
            1 if !number.is_empty() => {
                format!("othermount 500000{index} {number} /data ext4 {path}")
            }
            2 => format!("swap {path}"),
            _ => format!("open 500000{index} qemu {index} 02 {path}"),
        };
        self.machine.add(&line);
        self.nodes[index].is_used = true;
    }

    fn is_free(&self, asked: usize) -> bool {
        let own = &self.nodes[asked];
        let shares = |node: &Node| node.units.iter().any(|unit| own.units.contains(unit));
        let stands_in_the_way = |(index, node): (usize, &Node)| {
            let is_other_loop = node.is_loop && index != asked && !own.beneath.contains(&index);
            (node.is_used || is_other_loop) && shares(node)
        };
        !self.nodes.iter().enumerate().any(stands_in_the_way)
    }
}

/// Draws a stack and asks the guard about each of its devices. Returns how many are free, and how many are used.
pub fn run(choices: &[u8]) -> (u64, u64) {
    let drawn = Drawn::by(choices);
    let (mut free, mut used) = (0, 0);
    let is_device = |(_, node): &(usize, &Node)| !node.number.is_empty();
    for (index, node) in drawn.nodes.iter().enumerate().filter(is_device) {
        let state = drawn.machine.state(&node.number, Path::new(&node.name));
        let (uses, expected) = (state.unwrap().uses, drawn.is_free(index));
        let name = &node.name;
        assert_eq!(uses.is_empty(), expected, "{choices:?}, {name}: {uses:?}");
        *if expected { &mut free } else { &mut used } += 1;
    }
    (free, used)
}
