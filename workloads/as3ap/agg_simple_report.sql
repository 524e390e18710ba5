select avg(p.col_decim) from updates p
  where p.col_key in (select q.col_key from updates q, hundred h where h.col_key = q.col_key and q.col_decim > 980000000);
