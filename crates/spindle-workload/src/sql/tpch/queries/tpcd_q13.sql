select
    o_year,
    sum(revenue) as revenue
from
    (
        select
            [year o_orderdate] as o_year,
            l_extendedprice * (1 - l_discount) as revenue
        from
            lineitem,
            orders
        where
            o_orderkey = l_orderkey
            and o_clerk = ':1'
            and l_returnflag = 'R'
    ) as perform
group by
    o_year
order by
    o_year
