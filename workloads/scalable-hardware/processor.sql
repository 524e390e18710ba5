-- Bound by processors: some hundred thousand multiplications and comparisons on rows that are in memory, one row of
-- answer.
\set from random(0, 8999)
select count(*), sum(a.n * b.k % 97), max(a.n * 31 + b.k * 17)
  from processor_rows a, processor_rows b
  where a.id between :from and :from + 99 and b.id < 1000 and (a.n + b.n) % 3 = 0;
