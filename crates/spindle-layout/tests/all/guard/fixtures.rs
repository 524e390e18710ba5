//! Every machine of `fixtures.txt`, judged.

use std::path::Path;

use spindle_layout::guard::{DeviceContent, Permit, Refusal, Signature, Want, verdict};

use super::machine::Machine;

const FIXTURES: &str = include_str!("fixtures.txt");

/// What is asked of the guard about a machine.
struct Question {
    device: String,
    path: String,
    least_bytes: u64,
    erase: Vec<String>,
    blkid: (i32, String),
    edges_are_zero: bool,
}

fn judge(machine: &Machine, question: &Question) -> Result<Permit, Refusal> {
    let path = Path::new(&question.path);
    let want = Want {
        path,
        least_bytes: question.least_bytes,
        erase: &question.erase,
    };
    let tree = machine.tree();
    let state = machine.state(&question.device, path)?;
    let (code, printed) = &question.blkid;
    let content = match Signature::parse(*code, printed.as_bytes()) {
        Ok(Some(signature)) => DeviceContent::Signature(signature),
        Ok(None) if question.edges_are_zero => DeviceContent::Empty,
        Ok(None) => DeviceContent::Unknown("data of an unknown kind".to_owned()),
        Err(error) => {
            return Err(Refusal::Unknown {
                path: path.to_owned(),
                reason: error.to_string(),
            });
        }
    };
    verdict(&tree, &want, &state, &content)
}

/// Judges one fixture; what is wrong, if anything.
fn check(name: &str, lines: &[&str]) -> Option<String> {
    let mut machine = Machine::new();
    let mut question = Question {
        device: "8:16".to_owned(),
        path: "/dev/sdb".to_owned(),
        least_bytes: 0,
        erase: Vec::new(),
        blkid: (2, String::new()),
        edges_are_zero: true,
    };
    let mut expected = "";
    for line in lines {
        match line.split_once(' ').unwrap_or((line, "")) {
            ("ask", rest) => {
                (question.device, question.path) = {
                    let (device, path) = rest.split_once(' ').unwrap();
                    (device.to_owned(), path.to_owned())
                }
            }
            ("least", bytes) => question.least_bytes = bytes.parse().unwrap(),
            ("erase", identity) => question.erase.push(identity.to_owned()),
            ("blkid", rest) => {
                let (code, printed) = rest.split_once(' ').unwrap_or((rest, ""));
                question.blkid = (code.parse().unwrap(), printed.replace(' ', "\n"));
            }
            ("bytes", _) => question.edges_are_zero = false,
            ("expect", rest) => expected = rest,
            _ => machine.add(line),
        }
    }
    let found = match judge(&machine, &question) {
        Ok(Permit::Empty) => "empty".to_owned(),
        Ok(Permit::Erase { content, identity }) => format!("erase {identity}: {content}"),
        Err(refusal) => format!("refused: {refusal}"),
    };
    let agrees = found == expected
        || expected.starts_with("refused") && found.starts_with("refused") && {
            let words = expected.strip_prefix("refused: ").unwrap_or_default();
            found.contains(words)
        };
    (!agrees).then(|| format!("{name}: {found}\n  instead of: {expected}"))
}

#[test]
fn every_machine_gets_its_verdict() {
    let mut wrong = Vec::new();
    let mut count = 0;
    for fixture in FIXTURES.split("\n## ").skip(1) {
        let mut lines = fixture
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty() && !line.starts_with('#'));
        let name = lines.next().expect("a name");
        let lines: Vec<&str> = lines.collect();
        assert!(
            lines.iter().any(|line| line.starts_with("expect ")),
            "{name} expects nothing"
        );
        wrong.extend(check(name, &lines));
        count += 1;
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count >= 30, "{count} fixtures");
}

#[test]
fn a_wrong_expectation_is_noticed() {
    let mounted = [
        "disk sdb 8:16 1000000",
        "mount 8:16 /data ext4 /dev/sdb",
        "expect empty",
    ];
    assert!(check("planted", &mounted).is_some());
    let empty = ["disk sdb 8:16 1000000", "expect refused: is in use"];
    assert!(check("planted", &empty).is_some());
}
