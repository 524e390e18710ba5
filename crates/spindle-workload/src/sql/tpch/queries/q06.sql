select
    sum(l_extendedprice * l_discount) as revenue
from
    lineitem
where
    l_shipdate >= [date :1]
    and l_shipdate < [date :1 + 1 year]
    and [l_discount within 0.01 of :2]
    and l_quantity < :3
