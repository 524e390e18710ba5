select
    cntrycode,
    count(*) as numcust,
    sum(c_acctbal) as totacctbal
from
    (
        select
            [first 2 of c_phone] as cntrycode,
            c_acctbal
        from
            customer
        where
            [first 2 of c_phone] in
                (':1', ':2', ':3', ':4', ':5', ':6', ':7')
            and c_acctbal > (
                select
                    avg(c_acctbal)
                from
                    customer
                where
                    c_acctbal > 0.00
                    and [first 2 of c_phone] in
                        (':1', ':2', ':3', ':4', ':5', ':6', ':7')
            )
            and not exists (
                select
                    *
                from
                    orders
                where
                    o_custkey = c_custkey
            )
    ) as custsale
group by
    cntrycode
order by
    cntrycode
