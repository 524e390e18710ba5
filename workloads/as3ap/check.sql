-- What the tests append they delete again, and what they change has as many rows as before.
select count(*), count(distinct col_code) from uniques;
select count(*), count(distinct col_code) from hundred;
select count(*), count(distinct col_code) from tenpct;
select count(*), sum(col_key), count(distinct col_name) from updates;
select count(*) from tiny;
