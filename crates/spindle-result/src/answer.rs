//! One sentence of the headline, with how it opens: the opening depends on whether a group of layouts is named before
//! it.

/// How an answer opens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Opening {
    /// With the name of a layout.
    Name,
    /// `Too close to call`.
    TooClose,
    /// `Undecided`.
    Undecided,
    /// `Only`, and the one layout.
    Only,
    /// `No layout`.
    NoLayout,
    /// With the name of the one layout that keeps more than all others: it is said of no group.
    KeepsMost,
    /// The same, with nothing yet of the others.
    OnlyOfGroup,
}

impl Opening {
    /// At the beginning of a sentence, and after the group that it is said of.
    fn words(self) -> (&'static str, &'static str) {
        match self {
            Opening::Name | Opening::KeepsMost | Opening::OnlyOfGroup => ("", ""),
            Opening::TooClose => ("Too close to call ", "it is too close to call "),
            Opening::Undecided => ("Undecided ", "undecided "),
            Opening::Only => ("Only ", "only "),
            Opening::NoLayout => ("No layout ", "no layout "),
        }
    }
}

/// An answer, without a full stop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct AnswerSentence {
    opening: Opening,
    rest: String,
}

impl AnswerSentence {
    pub(super) fn new(opening: Opening, rest: String) -> AnswerSentence {
        AnswerSentence { opening, rest }
    }

    /// The same with more behind it.
    pub(super) fn with(mut self, more: &str) -> AnswerSentence {
        self.rest += more;
        self
    }

    /// As a sentence.
    pub(super) fn sentence(&self) -> String {
        format!("{}{}", self.opening.words().0, self.rest)
    }

    /// Whether it has told all of the layouts that keep less.
    pub(super) fn keeps_most(&self) -> bool {
        self.opening == Opening::KeepsMost
    }

    /// As a sentence about a group of the layouts: `Among layouts that keep every commit`.
    pub(super) fn sentence_among(&self, group: &str) -> String {
        if self.keeps_most() || self.opening == Opening::OnlyOfGroup {
            return self.sentence();
        }
        format!("{group}, {}{}", self.opening.words().1, self.rest)
    }
}
