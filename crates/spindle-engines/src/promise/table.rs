//! The table of promises: every setting, mount option and device that decides what a database keeps when the power
//! goes, with the place where that is written. Nothing else in Spindle knows such a thing; a line that no rule uses
//! fails a test.

use super::Keeps::{self, AllButTheLast, EveryCommit, MayBeDamaged, Nothing, Unknown};
use super::Loses::{self, Files, Tables};

/// What a line speaks of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subject {
    /// The embedded database.
    Kernel,
    /// SQLite.
    Sqlite,
    /// PostgreSQL.
    Postgres,
    /// InnoDB, in MariaDB and MySQL.
    InnoDb,
    /// File systems.
    FileSystem,
    /// Block devices.
    Device,
    /// Libraries in the processes of a database.
    Library,
}

impl Subject {
    /// As a heading.
    pub fn title(self) -> &'static str {
        match self {
            Subject::Kernel => "The embedded database",
            Subject::Sqlite => "SQLite",
            Subject::Postgres => "PostgreSQL",
            Subject::InnoDb => "InnoDB (MariaDB and MySQL)",
            Subject::FileSystem => "File systems",
            Subject::Device => "Devices",
            Subject::Library => "Libraries",
        }
    }
}

/// One line of the table.
#[derive(Debug, PartialEq, Eq)]
pub struct PromiseLine {
    /// What it speaks of.
    pub subject: Subject,
    /// When it applies, in words.
    pub when: &'static str,
    /// What is kept then.
    pub keeps: Keeps,
    /// For [`Keeps::Nothing`]: what is gone.
    pub loses: Option<Loses>,
    /// What that means: a clause.
    pub effect: &'static str,
    /// Where it is written.
    pub source: &'static str,
}

macro_rules! table {
    ($($subject:ident {
        $($name:ident: $when:literal => $keeps:ident $(of $loses:ident)?, $effect:literal, $source:expr;)*
    })*) => {
        $($(
            pub(crate) static $name: PromiseLine = PromiseLine {
                subject: Subject::$subject,
                when: $when,
                keeps: $keeps,
                loses: [$(Some($loses),)? None][0],
                effect: $effect,
                source: $source,
            };
        )*)*

        /// Every line, in the order of the documents.
        pub static TABLE: &[&PromiseLine] = &[$($(&$name,)*)*];
    };
}

const SPINDLE: &str = "docs/kernel.md#the-kernel";
const SQLITE_SYNC: &str = "https://www.sqlite.org/pragma.html#pragma_synchronous";
const SQLITE_JOURNAL: &str = "https://www.sqlite.org/pragma.html#pragma_journal_mode";
const PG_WAL: &str = "https://www.postgresql.org/docs/18/runtime-config-wal.html";
const PG_ASYNC: &str = "https://www.postgresql.org/docs/18/wal-async-commit.html";
const PG_RELIABILITY: &str = "https://www.postgresql.org/docs/18/wal-reliability.html";
const PG_UNLOGGED: &str = "https://www.postgresql.org/docs/18/sql-createtable.html";
const MYSQL_MEMORY: &str = "https://dev.mysql.com/doc/refman/8.4/en/memory-storage-engine.html";
const MARIADB_ENGINES: &str =
    "https://mariadb.com/docs/server/server-usage/storage-engines/aria/aria-storage-engine";
const MARIADB_INNODB: &str =
    "https://mariadb.com/docs/server/server-usage/storage-engines/innodb/innodb-system-variables";
const MARIADB_GROUP_COMMIT: &str = "https://mariadb.com/docs/server/server-usage/storage-engines/innodb/binary-log-group-commit-and-innodb-flushing-performance";
const MYSQL_INNODB: &str = "https://dev.mysql.com/doc/refman/8.4/en/innodb-parameters.html";
const MYSQL_BINLOG: &str = "https://dev.mysql.com/doc/refman/8.4/en/replication-options-binary-log.html#sysvar_sync_binlog";
const MYSQL_REDO: &str = "https://dev.mysql.com/doc/refman/8.4/en/innodb-redo-log.html";
const MARIADB_DOUBLEWRITE: &str =
    "https://mariadb.com/docs/server/server-usage/storage-engines/innodb/innodb-doublewrite-buffer";
const EXT4: &str = "https://www.kernel.org/doc/html/v6.12/admin-guide/ext4.html";
const XFS: &str = "https://www.kernel.org/doc/html/v6.12/admin-guide/xfs.html";
const BTRFS: &str = "https://btrfs.readthedocs.io/en/latest/ch-mount-options.html";
const F2FS: &str = "https://www.kernel.org/doc/html/v6.12/filesystems/f2fs.html";
const TMPFS: &str = "https://www.kernel.org/doc/html/v6.12/filesystems/tmpfs.html";
const OVERLAY: &str = "https://www.kernel.org/doc/html/v6.12/filesystems/overlayfs.html";
const NFS: &str = "exports(5), async";
const ZFS: &str = "https://openzfs.github.io/openzfs-docs/man/master/7/zfsprops.7.html";
const CACHE: &str = "https://www.kernel.org/doc/html/v6.12/block/writeback_cache_control.html";
const SYSFS_BLOCK: &str = "https://www.kernel.org/doc/html/v6.12/admin-guide/abi-stable.html";
const ZRAM: &str = "https://www.kernel.org/doc/html/v6.12/admin-guide/blockdev/zram.html";
const SCSI: &str = "https://www.kernel.org/doc/html/v6.12/scsi/sd-parameters.html";
const NOWHERE: &str = "docs/durability.md#how-it-is-worked-out";
const EATMYDATA: &str = "https://manpages.debian.org/eatmydata";
const LD_SO: &str = "ld.so(8), LD_PRELOAD";
const MKE2FS: &str = "mke2fs(8), has_journal";

table! {
    Kernel {
        KERNEL_WAIT: "`commit = \"wait\"`" => EveryCommit,
            "a commit returns when its redo is on stable storage", SPINDLE;
        KERNEL_NOWAIT: "`commit = \"nowait\"`" => AllButTheLast,
            "a power cut loses the commits whose redo was not yet written, usually the last few milliseconds", SPINDLE;
        KERNEL_NOT_ATOMIC: "`torn_blocks = \"atomic\"` on a device whose atomic writes are smaller than a block" => MayBeDamaged,
            "a block that is torn by a power cut stays torn", SPINDLE;
    }
    Sqlite {
        SQLITE_WAL_FULL: "`journal_mode = wal`, `synchronous = full` or `extra`" => EveryCommit,
            "the WAL is flushed after each commit", SQLITE_SYNC;
        SQLITE_WAL_NORMAL: "`journal_mode = wal`, `synchronous = normal`" => AllButTheLast,
            "a power cut loses the commits since the WAL was last flushed", SQLITE_SYNC;
        SQLITE_KEPT_JOURNAL: "`journal_mode = truncate` or `persist`, `synchronous = full` or `extra`" => EveryCommit,
            "database and journal are flushed before a commit returns", SQLITE_JOURNAL;
        SQLITE_DELETE_EXTRA: "`journal_mode = delete`, `synchronous = extra`" => EveryCommit,
            "the directory is flushed after the journal was deleted", SQLITE_SYNC;
        SQLITE_DELETE_FULL: "`journal_mode = delete`, `synchronous = full`" => AllButTheLast,
            "a power cut right after a commit can bring its journal back and roll the commit back: synchronous = extra flushes the directory, too",
            SQLITE_SYNC;
        SQLITE_JOURNAL_NORMAL: "`journal_mode = delete`, `truncate` or `persist`, `synchronous = normal`" => MayBeDamaged,
            "a power cut at the wrong moment can corrupt the database, though the chance is small", SQLITE_SYNC;
        SQLITE_OFF: "`synchronous = off`" => MayBeDamaged,
            "nothing is flushed: a power cut can corrupt the database", SQLITE_SYNC;
        SQLITE_NO_JOURNAL: "`journal_mode = off` or `memory`" => MayBeDamaged,
            "a crash in the middle of a transaction corrupts the database: its journal is gone", SQLITE_JOURNAL;
        SQLITE_UNKNOWN: "any other value, or one that SQLite does not tell" => Unknown,
            "Spindle does not know what this value keeps", SQLITE_SYNC;
    }
    Postgres {
        POSTGRES_ON: "`fsync = on`, `synchronous_commit = on`, `local`, `remote_write` or `remote_apply`" => EveryCommit,
            "a commit returns when its WAL is flushed", PG_WAL;
        POSTGRES_COMMIT_OFF: "`synchronous_commit = off`" => AllButTheLast,
            "a power cut loses the commits of up to three times wal_writer_delay", PG_ASYNC;
        POSTGRES_FSYNC_OFF: "`fsync = off`" => MayBeDamaged,
            "nothing is flushed: a power cut can leave the database corrupt beyond repair", PG_WAL;
        POSTGRES_PAGES_OFF: "`full_page_writes = off` on storage that tears pages" => MayBeDamaged,
            "a power cut can leave corrupt pages", PG_WAL;
        POSTGRES_PAGES_ATOMIC: "`full_page_writes = off` on a device with atomic writes of 8 KiB or more" => Unknown,
            "whether a page reaches the device in one write is not known", PG_RELIABILITY;
        POSTGRES_PAGES_ZFS: "`full_page_writes = off` on ZFS" => EveryCommit,
            "ZFS writes no partial pages", PG_RELIABILITY;
        POSTGRES_WAL_SYNC: "`wal_sync_method = fdatasync`, `fsync`, `open_datasync` or `open_sync`" => EveryCommit,
            "each of them flushes the WAL", PG_WAL;
        POSTGRES_UNLOGGED: "an unlogged table, materialized view or sequence" => Nothing of Tables,
            "recovery empties what is unlogged, after any crash", PG_UNLOGGED;
        POSTGRES_UNKNOWN: "any other value, or one that the server does not tell" => Unknown,
            "Spindle does not know what this value keeps", PG_WAL;
    }
    InnoDb {
        INNODB_COMMIT_FLUSHED: "`innodb_flush_log_at_trx_commit = 1`, or 3 (MariaDB)" => EveryCommit,
            "a commit returns when its redo log is flushed", MARIADB_INNODB;
        INNODB_COMMIT_LATER: "`innodb_flush_log_at_trx_commit = 0` or `2`" => AllButTheLast,
            "a power cut loses the commits since the redo log was last flushed, about once in innodb_flush_log_at_timeout", MARIADB_INNODB;
        INNODB_NO_DOUBLEWRITE: "`innodb_doublewrite = OFF` on storage that tears pages" => MayBeDamaged,
            "a page that was being written when the power went is lost", MARIADB_DOUBLEWRITE;
        INNODB_DETECT_ONLY: "`innodb_doublewrite = DETECT_ONLY` (MySQL)" => MayBeDamaged,
            "a torn page is found and not repaired", MYSQL_INNODB;
        INNODB_ATOMIC: "`innodb_doublewrite = OFF` on a device whose atomic writes cover a page" => Unknown,
            "whether a page reaches the device in one write is not known", MARIADB_DOUBLEWRITE;
        INNODB_WHOLE_PAGES: "`innodb_doublewrite = OFF` on ZFS" => EveryCommit,
            "ZFS writes no partial pages", MARIADB_DOUBLEWRITE;
        INNODB_NOSYNC: "`innodb_flush_method = nosync` or `littlesync`" => MayBeDamaged,
            "files are not flushed: a power cut can corrupt the database", MYSQL_INNODB;
        INNODB_NO_FSYNC_CACHE: "`innodb_flush_method = O_DIRECT_NO_FSYNC`, with a volatile cache in a device of the data" => MayBeDamaged,
            "datafiles stay in the device's cache, and a power cut loses them", MYSQL_INNODB;
        INNODB_NO_FSYNC: "`innodb_flush_method = O_DIRECT_NO_FSYNC`, and devices of the data without a volatile cache" => EveryCommit,
            "there is no cache that would have to be flushed", MYSQL_INNODB;
        INNODB_NO_FSYNC_UNKNOWN: "`innodb_flush_method = O_DIRECT_NO_FSYNC`, and the cache of the devices is not known" => Unknown,
            "datafiles are not flushed, and whether the device needs that is not known", MYSQL_INNODB;
        INNODB_BINLOG: "`log_bin = ON`, `sync_binlog` other than 1, `innodb_flush_log_at_trx_commit` other than 3" => AllButTheLast,
            "the binary log decides what is recovered, and is not flushed at each commit", MARIADB_GROUP_COMMIT;
        INNODB_BINLOG_SYNC: "`log_bin = ON`, `sync_binlog = 1`" => EveryCommit,
            "the binary log is flushed at each commit", MYSQL_BINLOG;
        INNODB_NO_REDO: "redo logging disabled (`ALTER INSTANCE DISABLE INNODB REDO_LOG`, MySQL)" => MayBeDamaged,
            "a server that stops unexpectedly does not start again", MYSQL_REDO;
        INNODB_OTHER_ENGINE: "`default_storage_engine` other than InnoDB" => MayBeDamaged,
            "tables are not InnoDB's, and need not survive a power cut", MARIADB_INNODB;
        INNODB_IN_MEMORY: "a table in `MEMORY` or `BLACKHOLE`" => Nothing of Tables,
            "its rows are gone when the server ends", MYSQL_MEMORY;
        INNODB_TABLES_UNSAFE: "a table in `MyISAM`, `MERGE`, `CSV`, `ARCHIVE` or `Aria`, also with `transactional=1`" => MayBeDamaged,
            "it takes no part in transactions: a power cut can leave a part of one, or a table to be repaired", MARIADB_ENGINES;
        INNODB_TABLES_ELSEWHERE: "a table in any other engine" => Unknown,
            "Spindle does not know what this engine keeps", MARIADB_ENGINES;
        INNODB_UNKNOWN: "any other value, or one that the server does not tell" => Unknown,
            "Spindle does not know what this value keeps", MARIADB_INNODB;
    }
    FileSystem {
        EXT4_JOURNALED: "ext3 and ext4 with a journal, ext4's defaults" => EveryCommit,
            "what was flushed is kept", EXT4;
        EXT4_WRITEBACK: "ext3 and ext4, `data=writeback`" => EveryCommit,
            "what was flushed is kept; blocks that were never flushed may hold old data", EXT4;
        EXT4_NO_BARRIER: "ext3 and ext4, `barrier=0` or `nobarrier`" => MayBeDamaged,
            "flushes do not reach the device: its cache is lost, and with it the order of writes", EXT4;
        EXT4_NO_JOURNAL: "ext4 without a journal, and ext2" => Unknown,
            "flushes reach the device, but a power cut may damage the file system, and e2fsck may not save all files", MKE2FS;
        XFS_DEFAULT: "XFS" => EveryCommit, "what was flushed is kept", XFS;
        XFS_NO_BARRIER: "XFS, `nobarrier` (before Linux 4.19)" => MayBeDamaged,
            "flushes do not reach the device: its cache is lost, and with it the order of writes", XFS;
        BTRFS_DEFAULT: "btrfs" => EveryCommit, "what was flushed is kept", BTRFS;
        BTRFS_NO_BARRIER: "btrfs, `nobarrier`" => MayBeDamaged,
            "flushes do not reach the device: a power cut can destroy the file system", BTRFS;
        F2FS_DEFAULT: "F2FS" => EveryCommit, "what was flushed is kept", F2FS;
        F2FS_NO_CHECKPOINT: "F2FS, `checkpoint=disable`" => AllButTheLast,
            "a power cut brings the files back as they were when it was mounted", F2FS;
        F2FS_NO_BARRIER: "F2FS, `nobarrier` or `fsync_mode=nobarrier`" => MayBeDamaged,
            "flushes do not reach the device: its cache is lost, and with it the order of writes", F2FS;
        IN_MEMORY: "tmpfs, ramfs and hugetlbfs" => Nothing of Files, "files are in memory: a power cut loses all of them", TMPFS;
        OVERLAY_DEFAULT: "overlay" => EveryCommit, "flushes go to the upper file system: see its line", OVERLAY;
        OVERLAY_VOLATILE: "overlay, `volatile`" => MayBeDamaged, "flushes are left out: a power cut can damage the files", OVERLAY;
        NETWORK: "NFS, CIFS, 9p, virtiofs and FUSE" => Unknown,
            "what its server keeps when it says that it has flushed is not seen from here", NFS;
        ZFS_SYNC: "ZFS" => Unknown, "its property sync may leave flushes out, and is not seen from here", ZFS;
        FILE_SYSTEM_UNKNOWN: "any other file system" => Unknown, "Spindle does not know what this file system keeps", NOWHERE;
    }
    Device {
        DEVICE_FLUSHED: "`queue/write_cache` is `write back`" => EveryCommit,
            "the kernel sends flushes, and the device says that it obeys them", CACHE;
        DEVICE_NO_CACHE: "`queue/write_cache` is `write through`" => EveryCommit,
            "the device says that it has no cache which could be lost", CACHE;
        DEVICE_NOT_FLUSHED: "a device or file with a cache, beneath a device that is `write through`" => MayBeDamaged,
            "flushes stop above it: its cache is lost, and with it the order of writes", CACHE;
        DEVICE_HARDWARE_CACHE: "a SCSI disk whose `cache_type` is `write back` while `queue/write_cache` is `write through`" => MayBeDamaged,
            "the kernel sends no flushes to a disk that has a volatile cache", SCSI;
        DEVICE_MEMORY: "zram, ram disks, null_blk and scsi_debug" => Nothing of Files, "the device is memory: a power cut loses all of it", ZRAM;
        DEVICE_NETWORK: "nbd without a write cache" => Unknown,
            "its server takes no flushes, and what it keeps is not seen from here", SYSFS_BLOCK;
        DEVICE_UNKNOWN: "a device or directory that cannot be looked at" => Unknown,
            "what lies there is not seen from here", NOWHERE;
        STORAGE_FOREIGN: "the storage of an existing server" => Unknown,
            "the disks of the server are not seen from here", NOWHERE;
    }
    Library {
        LIBRARY_EATS: "libeatmydata in a process of the database" => MayBeDamaged,
            "it leaves flushes out: a power cut can damage the database", EATMYDATA;
        LIBRARY_ANSWERS: "any other library in front of the C library that defines `fsync` or its like" => Unknown,
            "whether it passes flushes on is not seen from here", LD_SO;
        LIBRARIES_HIDDEN: "a process of the database whose libraries may not be looked at" => Unknown,
            "a library in it may leave flushes out", LD_SO;
    }
}
