//! What files of a database are for, in a word: experiments place each kind, layouts make a directory for it, engines
//! say which they can have elsewhere. Any crate may use the words.

crate::words! {
    /// What files of a database are for.
    #[derive(PartialOrd, Ord)]
    pub enum FileKind {
        /// The control file.
        Control = "control",
        /// Redo: the log of changes.
        Redo = "redo",
        /// Undo.
        Undo = "undo",
        /// Tables, and whatever has no place of its own.
        Data = "data",
        /// Indexes.
        Index = "index",
        /// Temporary files.
        Temp = "temp",
    }
}
