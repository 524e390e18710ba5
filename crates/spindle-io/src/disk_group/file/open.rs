//! Opening the files of a group, and removing them.

use std::sync::{Arc, Weak};

use crate::device::BlockDevice;
use crate::disk_group::DiskGroup;
use crate::disk_group::error::DiskGroupError;
use crate::disk_group::file::group_file::GroupFile;
use crate::disk_group::metadata::state::{Change, FileEntry};
use crate::disk_group::mounted::core::{Book, Core};

impl DiskGroup {
    /// Opens a file; all who open it share one device. Errors: there is no such file.
    pub fn open_file(&self, name: &str) -> Result<Arc<dyn BlockDevice>, DiskGroupError> {
        self.core.check_mounted()?;
        let mut book = self.core.book.lock();
        let (number, file) = self.core.find_file(&book, name)?;
        if let Some(open) = book.open.get(&number).and_then(Weak::upgrade) {
            return Ok(open);
        }
        let file: Arc<dyn BlockDevice> = GroupFile::new(&self.core, name, &file.map);
        book.open.insert(number, Arc::downgrade(&file));
        Ok(file)
    }

    /// Removes a file. Errors: there is none, or it is open.
    pub async fn remove_file(&self, name: &str) -> Result<(), DiskGroupError> {
        let turn = self.core.turn().await?;
        let mut removed = None;
        let decide = |book: &mut Book| {
            let (number, file) = self.core.find_file(book, name)?;
            if book
                .open
                .get(&number)
                .is_some_and(|open| open.strong_count() > 0)
            {
                return Err(DiskGroupError::FileInUse {
                    group: self.core.name.clone(),
                    file: name.to_owned(),
                });
            }
            removed = Some(Arc::clone(&file.map));
            book.open.remove(&number);
            Ok(Change::FileRemoved { file: number })
        };
        self.core.change(&turn, decide).await?;
        let map = removed.expect("decided to remove it");
        let mut book = self.core.book.lock();
        for (extent, places) in map.extents().iter().enumerate() {
            for place in places.places() {
                book.space.free(place, map.shape.aus(extent));
            }
        }
        Ok(())
    }
}

impl Core {
    fn find_file<'a>(
        &self,
        book: &'a Book,
        name: &str,
    ) -> Result<(u32, &'a FileEntry), DiskGroupError> {
        let found = book.state.files.iter().find(|(_, file)| file.name == name);
        let (number, file) = found.ok_or_else(|| DiskGroupError::NoSuchFile {
            group: self.name.clone(),
            file: name.to_owned(),
            has: book
                .state
                .files
                .values()
                .map(|file| file.name.clone())
                .collect(),
        })?;
        Ok((*number, file))
    }
}
