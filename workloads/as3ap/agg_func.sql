select min(col_key) from hundred group by col_name;
