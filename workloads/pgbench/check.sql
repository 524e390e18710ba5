-- What history says was moved is what accounts hold, and no row came or went.
select (select sum(abalance) from pgbench_accounts) - coalesce((select sum(delta) from pgbench_history), 0);
select count(*) from pgbench_accounts;
select count(*) from pgbench_tellers;
select count(*) from pgbench_branches;
