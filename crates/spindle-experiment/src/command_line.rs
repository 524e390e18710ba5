//! The command line that an experiment was written for, where there is no file: which argument each part of the text
//! comes from. A mistake in such a text is shown at that argument, as there is no file to look up. `spindle try` and
//! `spindle init` make one; [`Document`](super::document::Document) asks it.

use std::ops::Range;

/// A command as it was given, and what of it became which part of a text.
#[derive(Clone, Debug, Default)]
pub struct CommandLine {
    /// All of it; where a part of the text comes from no single argument, this is shown.
    pub whole: String,
    /// Parts of the text, in bytes, each with the argument that it comes from.
    pub parts: Vec<(Range<usize>, String)>,
}

impl CommandLine {
    /// The texts that mistakes are shown in: the whole command, then each argument.
    pub(super) fn texts(&self) -> impl Iterator<Item = &str> {
        let arguments = self.parts.iter().map(|(_, argument)| argument.as_str());
        std::iter::once(self.whole.as_str()).chain(arguments)
    }

    /// Which of these texts is to be shown for the place `at`.
    pub(super) fn text_for(&self, at: usize) -> usize {
        let mut parts = self.parts.iter();
        parts
            .position(|(part, _)| part.contains(&at))
            .map_or(0, |index| index + 1)
    }
}
