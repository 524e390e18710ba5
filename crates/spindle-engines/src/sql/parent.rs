//! A server that the kernel ends together with this process (`setpriv --pdeathsig`), without the gap at its beginning:
//! a process that dies before the new one has asked for that signal leaves one that never gets it
//! (PR_SET_PDEATHSIG(2const)).

use std::ffi::OsString;

/// Words to put between `setpriv --pdeathsig` and the program: the program is run only if this process is there when
/// the signal has been asked for.
pub(crate) fn if_this_process_lives() -> [OsString; 4] {
    if_parent_is(std::process::id())
}

fn if_parent_is(process: u32) -> [OsString; 4] {
    let script = "[ \"$PPID\" = \"$0\" ] && exec \"$@\"";
    ["sh", "-c", script, &process.to_string()].map(OsString::from)
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn nothing_is_run_for_a_parent_that_is_gone() {
        let runs = |words: [OsString; 4]| {
            let mut command = Command::new(&words[0]);
            command.args(&words[1..]).args(["printf", "%s", "a b"]);
            let ended = command.output().unwrap();
            (ended.status.success(), ended.stdout)
        };
        assert_eq!(runs(if_this_process_lives()), (true, b"a b".to_vec()));
        // Whoever has lost its parent is a child of another process.
        assert_eq!(runs(if_parent_is(1)), (false, Vec::new()));
    }
}
