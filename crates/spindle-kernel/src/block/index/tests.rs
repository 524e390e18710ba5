//! Nodes by themselves, and against an ordered map.

use std::collections::BTreeMap;

use super::*;
use rand_xoshiro::rand_core::RngCore;
use spindle_io::env::seeded_rng;

const ADDRESS: BlockAddress = BlockAddress { file: 3, block: 77 };

fn row(number: u64) -> RowId {
    RowId {
        address: ADDRESS,
        slot: number as u16,
    }
}

fn leaf<'a>(low: EntryPlace<'a>, high: Option<EntryPlace<'a>>) -> Node<'a> {
    Node {
        level: 0,
        low,
        high,
        right: high.map(|_| ADDRESS),
    }
}

fn made(node: &Node<'_>, block_bytes: usize) -> Vec<u8> {
    let mut block = vec![0x5A; block_bytes];
    let bytes = node.with(std::iter::empty());
    assert!(node_fits(&bytes, block_bytes));
    format_node(&mut block, ADDRESS, 9, &bytes);
    block
}

fn content(block: &[u8]) -> Vec<(Vec<u8>, RowId, Option<u64>, bool)> {
    assert_eq!(check(block), None);
    let all = entries(block);
    all.map(|entry| {
        (
            key_of(block, &entry),
            entry.row,
            entry.number,
            entry.is_ghost,
        )
    })
    .collect()
}

fn put_key(block: &mut [u8], key: &[u8], number: u64) -> bool {
    let place = EntryPlace {
        key,
        row: row(number),
    };
    let suffix = key[prefix(block).len()..].to_vec();
    let entry = IndexEntry {
        suffix: &suffix,
        row: row(number),
        number: None,
        is_ghost: false,
    };
    let bytes = entry.to_bytes();
    let position = find(block, place).unwrap_err();
    let fits = fit(block, bytes.len(), true, None, |_| false) == Fit::Now;
    assert_eq!(fits, takes(block, position, false, &bytes));
    if fits {
        put_entry(block, position, false, &bytes);
    }
    fits
}

#[test]
fn what_the_fences_share_is_stored_once() {
    let place = |key| EntryPlace { key, row: row(0) };
    let narrow = leaf(place(b"customer 00017"), Some(place(b"customer 00018")));
    let mut narrow = made(&narrow, 2048);
    assert_eq!(prefix(&narrow), b"customer 0001");
    let mut wide = made(&leaf(EntryPlace::FIRST, None), 2048);
    let fill = |block: &mut Vec<u8>| {
        let mut keys = (0..).map(|number| (format!("customer 00017 {number:04}"), number));
        keys.find(|(key, number)| !put_key(block, key.as_bytes(), *number))
            .unwrap()
            .1
    };
    let (with, without) = (fill(&mut narrow), fill(&mut wide));
    assert!(
        with > without + without / 3,
        "{with} keys with a prefix, {without} without"
    );
    assert_eq!(content(&narrow)[7].0, b"customer 00017 0007");
}

/// A block with a right checksum may still be made to break the database.
#[test]
fn a_node_that_cannot_be_is_not_read() {
    let place = |key| EntryPlace { key, row: row(0) };
    let node = leaf(place(b"customer 00017"), Some(place(b"customer 00018")));
    let mut good = made(&node, 2048);
    let long = [&b"customer 00017 "[..], &[b'x'; 200]].concat();
    assert!(put_key(&mut good, &long, 1));
    for number in 2..30 {
        let key = format!("customer 00017 {number:04}");
        assert!(put_key(&mut good, key.as_bytes(), number));
    }
    assert_eq!(check(&good), None);
    let said = |tamper: &dyn Fn(&mut [u8])| {
        let mut block = good.clone();
        tamper(&mut block);
        check(&block).unwrap_or_default()
    };
    let no_neighbour = said(&|block| put(block, RIGHT_AT, &[0; 8]));
    assert!(
        no_neighbour.contains("no right neighbour"),
        "{no_neighbour}"
    );
    let no_end = said(&|block| block[HEADER_BYTES + 1] = 0);
    assert!(no_end.contains("a neighbour and no end"), "{no_end}");
    let prefix = said(&|block| set_size(block, 8, 14));
    assert!(prefix.contains("share 13 bytes, not the 14"), "{prefix}");
    // All entries are the long one.
    let shared = said(&|block| {
        let (at, last) = (directory(block), count(block) - 1);
        let start = get_u16(block, at + 2 * usize::from(last));
        for position in 0..count(block) {
            put(block, at + 2 * usize::from(position), &start.to_le_bytes());
        }
        let taken = stored_at(block, last) * usize::from(count(block));
        set_size(block, 6, taken);
    });
    assert!(shared.contains("bytes of the"), "{shared}");
}

#[test]
fn a_node_stands_to_a_place() {
    let (low, high) = (
        EntryPlace {
            key: b"b",
            row: row(5),
        },
        EntryPlace {
            key: b"d",
            row: row(1),
        },
    );
    let block = made(&leaf(low, Some(high)), 2048);
    let of = |key, number| {
        covers(
            &block,
            9,
            EntryPlace {
                key,
                row: row(number),
            },
        )
    };
    assert_eq!(of(b"b", 4), Covers::Elsewhere);
    assert_eq!(of(b"b", 5), Covers::Here);
    assert_eq!(of(b"cccccc", 0), Covers::Here);
    assert_eq!(of(b"d", 0), Covers::Here);
    assert_eq!(of(b"d", 1), Covers::Right(ADDRESS));
    assert_eq!(covers(&block, 8, low), Covers::Elsewhere, "another index");
    let mut free = block.clone();
    format_free(&mut free, ADDRESS, 9, 0);
    assert_eq!(covers(&free, 9, low), Covers::Elsewhere);
}

#[test]
fn where_keys_only_grow_nine_tenths_stay() {
    let mut block = made(&leaf(EntryPlace::FIRST, None), 8192);
    let mut keys = (0..).map(|number: u64| (number.to_be_bytes(), number));
    let (_, full) = keys
        .find(|(key, number)| !put_key(&mut block, key, *number))
        .unwrap();
    let share = |keep: u16| u64::from(keep) * 100 / full;
    assert!((88..=90).contains(&share(split_at(&block, count(&block)))));
    assert!((48..=50).contains(&share(split_at(&block, 7))));
}

#[test]
fn the_shortest_key_divides_two_leaves() {
    let mut block = made(&leaf(EntryPlace::FIRST, None), 2048);
    for (number, key) in [&b"apple"[..], b"apricot", b"apricot", b"b"]
        .iter()
        .enumerate()
    {
        assert!(put_key(&mut block, key, number as u64));
    }
    assert_eq!(
        separator(&block, 1),
        (b"apr".to_vec(), EntryPlace::FIRST.row)
    );
    assert_eq!(separator(&block, 2), (b"apricot".to_vec(), row(2)));
    assert_eq!(separator(&block, 3), (b"b".to_vec(), EntryPlace::FIRST.row));
}

#[test]
fn ghosts_go_when_nobody_wants_them() {
    let mut block = made(&leaf(EntryPlace::FIRST, None), 2048);
    for number in 0..6 {
        put_key(&mut block, &[number; 200], u64::from(number));
    }
    for (position, number, is_ghost) in [(1, 71, true), (2, 72, true), (3, 71, false)] {
        let suffix = [position as u8; 200];
        let entry = IndexEntry {
            suffix: &suffix,
            row: row(u64::from(position)),
            number: Some(number),
            is_ghost,
        };
        assert_eq!(fit(&block, 218, false, Some(position), |_| true), Fit::Now);
        put_entry(&mut block, position, true, &entry.to_bytes());
    }
    assert_eq!(
        fit(&block, 600, true, None, |_| false),
        Fit::Tidied(vec![], vec![])
    );
    let by_71 = |number| number == 71;
    assert_eq!(
        fit(&block, 800, true, None, by_71),
        Fit::Tidied(vec![1], vec![3])
    );
    assert_eq!(fit(&block, 1600, true, None, |_| true), Fit::No);
    tidy(&mut block, &[1], &[3]);
    let left = content(&block);
    let numbers: Vec<_> = left
        .iter()
        .map(|entry| (entry.1.slot, entry.2, entry.3))
        .collect();
    let kept = [
        (0, None, false),
        (2, Some(72), true),
        (3, None, false),
        (4, None, false),
    ];
    assert_eq!(numbers[..4], kept);
    assert_eq!(numbers.len(), 5);
}

/// Random entries put, replaced, dropped, tidied and split off, against an ordered map.
#[test]
fn random_changes_do_what_they_do_to_a_map() {
    for seed in 0..300 {
        let mut rng = seeded_rng(seed, 0);
        let mut below = |limit: usize| (rng.next_u64() % limit as u64) as usize;
        let block_bytes = [2048, 4096][below(2)];
        let (low, high) = (b"pre".to_vec(), b"prez".to_vec());
        let at = |key| EntryPlace {
            key,
            row: EntryPlace::FIRST.row,
        };
        let bounded = below(2) == 0;
        let mut block = made(&leaf(at(&low), bounded.then(|| at(&high))), block_bytes);
        let mut model: BTreeMap<(Vec<u8>, RowId), (Option<u64>, bool)> = BTreeMap::new();
        for _ in 0..300 {
            let key: Vec<u8> = if below(3) > 0 || model.is_empty() {
                let mut key = low.clone();
                key.resize(3 + below(block_bytes / 16), b'a' + below(3) as u8);
                key
            } else {
                model.keys().nth(below(model.len())).unwrap().0.clone()
            };
            let place = EntryPlace {
                key: &key,
                row: row(below(3) as u64),
            };
            if high_is_past(&block, place) {
                continue;
            }
            let known = (key.clone(), place.row);
            let found = find(&block, place);
            assert_eq!(found.is_ok(), model.contains_key(&known));
            let position = found.unwrap_or_else(|position| position);
            if found.is_ok() && below(2) == 0 {
                drop_entry(&mut block, position);
                model.remove(&known);
            } else {
                let number = (below(2) == 0).then(|| below(4) as u64);
                let suffix = key[prefix(&block).len()..].to_vec();
                let is_ghost = number.is_some() && below(2) == 0;
                let entry = IndexEntry {
                    suffix: &suffix,
                    row: place.row,
                    number,
                    is_ghost,
                };
                let bytes = entry.to_bytes();
                match fit(&block, bytes.len(), found.is_err(), found.ok(), |by| by < 2) {
                    Fit::Now => {}
                    Fit::Tidied(gone, bare) => {
                        let all: Vec<_> = model.keys().cloned().collect();
                        gone.iter().for_each(|at| {
                            model.remove(&all[usize::from(*at)]);
                        });
                        for at in &bare {
                            model.insert(all[usize::from(*at)].clone(), (None, false));
                        }
                        tidy(&mut block, &gone, &bare);
                    }
                    Fit::No if count(&block) > 1 => {
                        let keep = split_at(&block, position);
                        let (key, row) = separator(&block, keep);
                        assert!(takes_cut(&block, keep, EntryPlace { key: &key, row }));
                        let right = Node {
                            low: EntryPlace { key: &key, row },
                            ..Node::of(&block)
                        };
                        let moved = entries(&block).skip(usize::from(keep));
                        let moved = right.with(moved.map(|entry| (prefix(&block), entry)));
                        assert!(node_fits(&moved, block_bytes));
                        cut(&mut block, keep, EntryPlace { key: &key, row }, ADDRESS);
                        model = model.into_iter().take(usize::from(keep)).collect();
                        continue;
                    }
                    Fit::No => continue,
                }
                let found = find(&block, place);
                let position = found.unwrap_or_else(|position| position);
                assert!(takes(&block, position, found.is_ok(), &bytes));
                put_entry(&mut block, position, found.is_ok(), &bytes);
                model.insert(known, (number, is_ghost));
            }
            let is = content(&block);
            let expected = model
                .iter()
                .map(|((key, row), (number, is_ghost))| (key.clone(), *row, *number, *is_ghost));
            assert!(is.into_iter().eq(expected), "seed {seed}");
        }
    }
}

fn high_is_past(block: &[u8], place: EntryPlace<'_>) -> bool {
    high(block).is_some_and(|high| place >= high)
}
