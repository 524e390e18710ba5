//! The eight tables of TPC-H (clause 1.4 of the standard), their types in each dialect, keys and indexes. Types are the
//! standard's: `decimal(15,2)` for money, `date`, `char` and `varchar`. SQLite has neither exact numbers nor dates: it
//! keeps money as `real` and dates as ISO text, which sort and compare as dates do.

use spindle_query::Type::{self, Date, Decimal, Fixed, Integer, Key, Sum, Varying};

use crate::sql::Dialect;

/// Money: an exact number with two places.
const MONEY: Type = Decimal(2);

/// The name of a type in a dialect.
fn in_dialect(of: Type, dialect: Dialect) -> String {
    match (of, dialect) {
        (Key | Integer, Dialect::Sqlite) => "integer".to_owned(),
        (Key, _) => "bigint".to_owned(),
        (Integer, _) => "integer".to_owned(),
        (Decimal(_) | Sum(_), Dialect::Sqlite) => "real".to_owned(),
        (Decimal(scale), _) => format!("decimal(15,{scale})"),
        (Sum(scale), _) => format!("decimal(38,{scale})"),
        (Fixed(_) | Varying(_) | Date, Dialect::Sqlite) => "text".to_owned(),
        (Fixed(length), _) => format!("char({length})"),
        (Varying(length), _) => format!("varchar({length})"),
        (Date, _) => "date".to_owned(),
    }
}

/// A table.
pub(super) struct TpchTable {
    /// Its name.
    pub name: &'static str,
    /// The names of its columns.
    pub columns: &'static [&'static str],
    /// Their types.
    pub types: &'static [Type],
    /// The columns of its primary key.
    pub key: &'static [&'static str],
    /// Columns that refer to other tables, and so have an index.
    pub indexes: &'static [&'static [&'static str]],
}

pub(super) const REGION: TpchTable = TpchTable {
    name: "region",
    columns: &["r_regionkey", "r_name", "r_comment"],
    types: &[Key, Fixed(25), Varying(152)],
    key: &["r_regionkey"],
    indexes: &[],
};

pub(super) const NATION: TpchTable = TpchTable {
    name: "nation",
    columns: &["n_nationkey", "n_name", "n_regionkey", "n_comment"],
    types: &[Key, Fixed(25), Key, Varying(152)],
    key: &["n_nationkey"],
    indexes: &[&["n_regionkey"]],
};

pub(super) const PART: TpchTable = TpchTable {
    name: "part",
    columns: &[
        "p_partkey",
        "p_name",
        "p_mfgr",
        "p_brand",
        "p_type",
        "p_size",
        "p_container",
        "p_retailprice",
        "p_comment",
    ],
    types: &[
        Key,
        Varying(55),
        Fixed(25),
        Fixed(10),
        Varying(25),
        Integer,
        Fixed(10),
        MONEY,
        Varying(23),
    ],
    key: &["p_partkey"],
    indexes: &[],
};

pub(super) const SUPPLIER: TpchTable = TpchTable {
    name: "supplier",
    columns: &[
        "s_suppkey",
        "s_name",
        "s_address",
        "s_nationkey",
        "s_phone",
        "s_acctbal",
        "s_comment",
    ],
    types: &[
        Key,
        Fixed(25),
        Varying(40),
        Key,
        Fixed(15),
        MONEY,
        Varying(101),
    ],
    key: &["s_suppkey"],
    indexes: &[&["s_nationkey"]],
};

pub(super) const PARTSUPP: TpchTable = TpchTable {
    name: "partsupp",
    columns: &[
        "ps_partkey",
        "ps_suppkey",
        "ps_availqty",
        "ps_supplycost",
        "ps_comment",
    ],
    types: &[Key, Key, Integer, MONEY, Varying(199)],
    key: &["ps_partkey", "ps_suppkey"],
    indexes: &[&["ps_suppkey"]],
};

pub(super) const CUSTOMER: TpchTable = TpchTable {
    name: "customer",
    columns: &[
        "c_custkey",
        "c_name",
        "c_address",
        "c_nationkey",
        "c_phone",
        "c_acctbal",
        "c_mktsegment",
        "c_comment",
    ],
    types: &[
        Key,
        Varying(25),
        Varying(40),
        Key,
        Fixed(15),
        MONEY,
        Fixed(10),
        Varying(117),
    ],
    key: &["c_custkey"],
    indexes: &[&["c_nationkey"]],
};

pub(super) const ORDERS: TpchTable = TpchTable {
    name: "orders",
    columns: &[
        "o_orderkey",
        "o_custkey",
        "o_orderstatus",
        "o_totalprice",
        "o_orderdate",
        "o_orderpriority",
        "o_clerk",
        "o_shippriority",
        "o_comment",
    ],
    types: &[
        Key,
        Key,
        Fixed(1),
        MONEY,
        Date,
        Fixed(15),
        Fixed(15),
        Integer,
        Varying(79),
    ],
    key: &["o_orderkey"],
    indexes: &[&["o_custkey"]],
};

pub(super) const LINEITEM: TpchTable = TpchTable {
    name: "lineitem",
    columns: &[
        "l_orderkey",
        "l_partkey",
        "l_suppkey",
        "l_linenumber",
        "l_quantity",
        "l_extendedprice",
        "l_discount",
        "l_tax",
        "l_returnflag",
        "l_linestatus",
        "l_shipdate",
        "l_commitdate",
        "l_receiptdate",
        "l_shipinstruct",
        "l_shipmode",
        "l_comment",
    ],
    types: &[
        Key,
        Key,
        Key,
        Integer,
        MONEY,
        MONEY,
        MONEY,
        MONEY,
        Fixed(1),
        Fixed(1),
        Date,
        Date,
        Date,
        Fixed(25),
        Fixed(10),
        Varying(44),
    ],
    key: &["l_orderkey", "l_linenumber"],
    indexes: &[&["l_partkey", "l_suppkey"], &["l_suppkey"]],
};

/// Every table.
pub(super) const TABLES: [&TpchTable; 8] = [
    &REGION, &NATION, &PART, &SUPPLIER, &PARTSUPP, &CUSTOMER, &ORDERS, &LINEITEM,
];

impl TpchTable {
    /// The statement that makes it. InnoDB keeps rows in their primary key, and SQLite in a key of one column: those
    /// are made with the table, the others after the rows are loaded.
    pub fn create(&self, dialect: Dialect) -> String {
        let columns = self.columns.iter().zip(self.types);
        let mut lines: Vec<String> = columns
            .map(|(name, of)| format!("{name} {} not null", in_dialect(*of, dialect)))
            .collect();
        if self.key_comes_first(dialect) {
            lines.push(format!("primary key ({})", self.key.join(", ")));
        }
        // Everything that TPC-H generates is ASCII, and compares as bytes do.
        let rest = match dialect {
            Dialect::MariaDb => " character set ascii collate ascii_bin",
            Dialect::Postgres | Dialect::Sqlite => "",
        };
        format!("create table {} ({}){rest}", self.name, lines.join(", "))
    }

    fn key_comes_first(&self, dialect: Dialect) -> bool {
        match dialect {
            Dialect::Postgres => false,
            Dialect::MariaDb => true,
            Dialect::Sqlite => self.key.len() == 1,
        }
    }

    /// The statements that make its primary key, where it was not made before, and its indexes.
    pub fn create_indexes(&self, dialect: Dialect) -> Vec<String> {
        let (name, key) = (self.name, self.key.join(", "));
        let primary = match dialect {
            _ if self.key_comes_first(dialect) => None,
            Dialect::Postgres | Dialect::MariaDb => {
                Some(format!("alter table {name} add primary key ({key})"))
            }
            Dialect::Sqlite => Some(format!("create unique index {name}_key on {name} ({key})")),
        };
        let others = self.indexes.iter().map(|columns| {
            let (last, all) = (columns[columns.len() - 1], columns.join(", "));
            format!(
                "create index {name}_{last}_{} on {name} ({all})",
                columns.len()
            )
        });
        primary.into_iter().chain(others).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_table_has_a_type_for_each_column_and_a_key_of_its_own() {
        for table in TABLES {
            assert_eq!(table.columns.len(), table.types.len(), "{}", table.name);
            let mut named = table
                .key
                .iter()
                .chain(table.indexes.iter().copied().flatten());
            assert!(named.all(|column| table.columns.contains(column)));
            for dialect in [Dialect::Postgres, Dialect::MariaDb, Dialect::Sqlite] {
                let key = table.key.join(", ");
                let made = [
                    table.create(dialect),
                    table.create_indexes(dialect).join("; "),
                ];
                assert_eq!(made.join("; ").matches(&format!("({key})")).count(), 1);
            }
        }
        assert_eq!(
            NATION.create(Dialect::Sqlite),
            "create table nation (n_nationkey integer not null, n_name text not null, n_regionkey integer not null, \
             n_comment text not null, primary key (n_nationkey))"
        );
    }
}
