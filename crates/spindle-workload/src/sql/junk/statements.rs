//! The table `junk`, its statements, and the procedure that inserts the rows of one commit.

use crate::sql::dialect::Dialect;

/// A workload has one of the two.
pub(super) const INSERT: usize = 0;
pub(super) const CALL: usize = 0;

/// A client's rows are numbered in `c1` and `c3`; `c2` and `c4` are the client.
pub(super) fn table(dialect: Dialect) -> String {
    let number = dialect.bigint();
    format!(
        "create table junk (c1 {number} not null, c2 {number} not null, c3 {number} not null, c4 {number} not null, \
         c5 date, c6 char(100), c7 varchar(1000), primary key (c1, c2), unique (c3, c4))"
    )
}

pub(super) fn all(procedure: bool) -> Vec<String> {
    let statement = match procedure {
        true => "call insert_junk($1, $2, $3, $4, $5)",
        false => {
            "insert into junk (c1, c2, c3, c4, c5, c6, c7) values ($1, $2, $1, $2, current_date, $3, $4)"
        }
    };
    vec![statement.to_owned()]
}

/// `None`: there are no procedures in it.
pub(super) fn procedure(dialect: Dialect) -> Option<String> {
    match dialect {
        Dialect::Postgres => Some(POSTGRES.to_owned()),
        Dialect::MariaDb => Some(MARIADB.to_owned()),
        Dialect::Sqlite => None,
    }
}

/// A call outside of a transaction is one, and commits.
const POSTGRES: &str = "\
create procedure insert_junk(first_row bigint, row_count bigint, client bigint, text_6 text, text_7 text)
language plpgsql as $body$
begin
    for n in first_row .. first_row + row_count - 1 loop
        insert into junk (c1, c2, c3, c4, c5, c6, c7)
        values (n, client, n, client, current_date, text_6, text_7);
    end loop;
end
$body$";

const MARIADB: &str = "\
create procedure insert_junk(first_row bigint, row_count bigint, client bigint, text_6 char(100), text_7 varchar(1000))
begin
    declare n bigint default first_row;
    start transaction;
    while n < first_row + row_count do
        insert into junk (c1, c2, c3, c4, c5, c6, c7)
        values (n, client, n, client, current_date, text_6, text_7);
        set n = n + 1;
    end while;
    commit;
end";
